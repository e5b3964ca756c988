import Foundation
import Rules
import Settings
import TLS

/// Issues certificates for clients. Unlike the authority of opened tunnels, it may.
let clientAuthority = Result { try MadeCertificate(for: "DNS:authority.test") }

extension Scenario.Files {
    /// What a listener of 127.0.0.1 shows to clients.
    func listenerTLS(_ made: MadeCertificate, name: String = "listener") throws -> ListenerTLSSettings {
        let certificate = try write("\(name).pem", made.certificate)
        let key = try write("\(name).key", made.key)
        guard unsafe chmod(key, 0o600) == 0 else { throw WireError("chmod") }
        return ListenerTLSSettings(certificateFile: certificate, keyFile: key)
    }

    /// A listener that shows a certificate and asks for one that the authority of the tests has issued.
    func listenerThatAsks(_ made: MadeCertificate, _ demand: ClientCertificateDemand) throws -> ListenerTLSSettings {
        var tls = try listenerTLS(made)
        tls.clientAuthorityFile = try write("clients.pem", try clientAuthority.get().certificate)
        tls.clientCertificate = demand
        return tls
    }
}

extension Scenario {
    /// A client that speaks TLS with the proxy, whose listener shows this certificate.
    func securedClient(trusting made: MadeCertificate) throws -> ScriptedClient {
        let client = try client()
        let files = Files(directory: directory, origin: origin)
        let path = try files.write("listener-trust.pem", made.certificate)
        try client.wire.secure(try TLSClientContext(authorities: .file(path)), name: "127.0.0.1")
        return client
    }
}

extension Configuration {
    /// The only listener, with TLS.
    mutating func secure(_ tls: ListenerTLSSettings) { listen[0].tls = tls }

    /// Whoever is on this machine has to send a PROXY header.
    mutating func trustLoopback() { listen[0].proxyProtocol = AddressRange.loopback }
}
