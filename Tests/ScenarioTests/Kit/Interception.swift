import EventLoop
import Foundation
import Rules
import Server
import Settings
import TLS

/// An authority for tests, as `larder ca create --unconstrained` makes it. Made once: it is only read.
struct MadeAuthority: Sendable {
    let issued: RootAuthority.Issued
    let root: [UInt8]

    static let shared = Result { try MadeAuthority() }
    /// Others trust this one, in place of the one in use.
    static let stranger = Result { try MadeAuthority() }

    private init() throws {
        let now = Int64(Date().timeIntervalSince1970)
        let made = try RootAuthority(constraints: nil, at: now, days: 30)
        issued = try made.issue(node: nil, at: now, days: 30)
        root = made.certificate.pem
    }
}

extension Scenario.Files {
    /// Opens tunnels to these hosts, with the authority that `Scenario.tunnel` trusts.
    func intercept(_ hosts: String..., in configuration: inout Configuration) throws {
        let authority = try MadeAuthority.shared.get()
        configuration.intercept.certificateFile = try write(
            "authority.pem", String(decoding: authority.issued.certificates, as: UTF8.self))
        let key = try write("authority.key", String(decoding: authority.issued.key, as: UTF8.self))
        guard unsafe chmod(key, 0o600) == 0 else { throw WireError("chmod") }
        configuration.intercept.keyFile = key
        configuration.intercept.hosts = hosts.compactMap { HostPattern($0) }
        configuration.access.connectPorts = [1...65535]
    }
}

extension Scenario {
    /// The proxy opens tunnels with the authority that the configuration names.
    static func interceptor(_ configuration: Configuration) throws -> Interceptor? {
        guard let certificate = configuration.intercept.certificateFile, let key = configuration.intercept.keyFile
        else {
            return nil
        }
        return try Interceptor(
            CertificateAuthority(
                certificateFile: certificate, keyFile: key, at: Int64(Date().timeIntervalSince1970)))
    }

    /// A client's settings for TLS in tunnels.
    func trust(_ authority: Result<MadeAuthority, any Error> = MadeAuthority.shared) throws -> TLSClientContext {
        let files = Files(directory: directory, origin: origin)
        let path = try files.write(
            "trust-\(UUID().uuidString).pem", String(decoding: authority.get().root, as: UTF8.self))
        return try TLSClientContext(authorities: .file(path))
    }

    /// A client that has a tunnel. Nothing was sent in it.
    func tunnel(to authority: String, _ fields: String...) throws -> ScriptedClient {
        let client = try client()
        try client.ask("CONNECT", authority, fields)
        let answer = try client.response(to: "CONNECT")
        guard answer.status == 200 else { throw WireError("CONNECT \(authority): \(answer)") }
        return client
    }

    /// A client that speaks TLS in a tunnel.
    ///
    /// - Parameter name: whom it asks for by SNI, and expects the certificate to name.
    func secureTunnel(
        to authority: String, name: String? = nil, trusting context: TLSClientContext? = nil
    ) throws -> ScriptedClient {
        let client = try tunnel(to: authority)
        let host = authority.prefix(upTo: authority.lastIndex(of: ":") ?? authority.endIndex)
        try client.wire.secure(try context ?? trust(), name: name ?? String(host))
        return client
    }
}

extension ScriptedClient {
    /// A request in origin-form, as clients send it inside a tunnel.
    func askInside(_ method: String, _ path: String, host: String, _ fields: String..., body: String? = nil) throws {
        let lines = ["Host: \(host)"] + fields + (body.map { ["Content-Length: \($0.utf8.count)"] } ?? [])
        try send("\(method) \(path) HTTP/1.1\r\n" + lines.map { "\($0)\r\n" }.joined() + "\r\n" + (body ?? ""))
    }

    func getInside(_ path: String, host: String, _ fields: String...) throws -> SeenMessage {
        let lines = ["Host: \(host)"] + fields
        try send("GET \(path) HTTP/1.1\r\n" + lines.map { "\($0)\r\n" }.joined() + "\r\n")
        return try response()
    }
}
