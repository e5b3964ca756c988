import Foundation
import Testing

/// How a client reaches an origin.
enum Way: String, CaseIterable, Sendable {
    /// In plain text.
    case http
    /// In tunnels that Larder opens.
    case https
    /// The same, and the proxy wants a password.
    case password
}

/// An origin with a name, and Larder before it. If tunnels are opened, nobody but Larder trusts the origin, and `root` is what a client has to trust.
struct ProxiedHost: Sendable {
    static let name = "registry.example.test"
    /// The same origin by another name: the store that a registry redirects to. In plain text only.
    static let storeName = "store.example.test"

    let way: Way
    let place: Workplace
    let nginx: Nginx
    let larder: Larder
    private let names: LoopbackNames

    /// - Parameters:
    ///   - recipe: what stands in an entry of `recipes`, without its hosts.
    ///   - server: directives of nginx.
    ///   - more: sections of Larder's configuration.
    ///   - listener: more keys of the entry of `listen`, with a comma in front.
    static func start(
        _ way: Way = .https, in place: Workplace, recipe: String? = nil,
        server: String = "add_header Cache-Control 'max-age=600';", more: String = "", listener: String = ""
    ) async throws -> ProxiedHost {
        let names = try LoopbackNames()
        var sections = ["dns: { servers: [ \"127.0.0.1:\(names.port)\" ] }", more]
        if let recipe { sections.append("recipes: [ { use: \(recipe), hosts: [ \(name), \(storeName) ] } ]") }
        let nginx: Nginx
        if way == .http {
            nginx = try await Nginx.start(in: place, server: server)
        } else {
            let certificate = try await place.certificate(for: name)
            nginx = try await Nginx.start(in: place, server: server, tls: certificate)
            let made = try await place.run(
                Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", name])
            try #require(made.status == 0, "\(made)")
            sections.append(
                """
                tls: { ca_file: \(certificate.certificate) }
                intercept:
                  ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                  hosts: [ \(name) ]
                """)
        }
        let access = way == .password ? try await Larder.accessForAli(in: place) : Larder.openLoopback
        let larder = try await Larder.start(
            in: place, access: access, more: sections.joined(separator: "\n"), listener: listener)
        return ProxiedHost(way: way, place: place, nginx: nginx, larder: larder, names: names)
    }

    var url: String { "\(way == .http ? "http" : "https")://\(authority)" }
    var storeURL: String { "http://\(Self.storeName):\(nginx.port)" }
    /// Name and port.
    var authority: String { "\(Self.name):\(nginx.port)" }

    /// The root of Larder's authority. Nil if nothing is opened.
    var root: String? { way == .http ? nil : place.path("ca/root.pem") }
    /// The SHA-256 of that certificate, as setup.sh wants it.
    func fingerprint() async throws -> String {
        let shown = try await larder.command("ca", "show", "--json")
        return String(try #require(shown.out.firstMatch(of: /"roots":\[\{[^}]*"sha256":"([0-9a-f]{64})"/)).1)
    }
    /// The same as Java wants it; the password is `changeit`.
    func trustStore() async throws -> String {
        let reply = try await place.curl("\(larder.url)/truststore.jks", through: nil)
        try #require(reply.status == 200, "\(reply)")
        return try place.write("truststore.jks", reply.body)
    }

    /// `user:password` for the proxy. Nil if it wants none.
    var credentials: String? { way == .password ? "ali:sesame" : nil }
    /// The proxy as a client is told of it.
    var proxyURL: String { larder.url(as: credentials) }
    /// The variables that tell a client of the proxy. Nothing leads past it.
    var proxy: [String: String] {
        Dictionary(uniqueKeysWithValues: ["http_proxy", "https_proxy", "HTTPS_PROXY"].map { ($0, proxyURL) })
    }

    /// The same for Java, which does without Basic in front of a tunnel unless it is told otherwise. A program finds user and password in
    /// properties of the test's own.
    var javaOptions: String {
        let login = credentials == nil ? "" : " -Dtest.user=ali -Dtest.password=sesame"
        return "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=\(larder.port) "
            + "-Djdk.http.auth.tunneling.disabledSchemes=\(login)"
    }
}
