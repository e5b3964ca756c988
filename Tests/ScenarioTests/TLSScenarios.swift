import Origins
import Server
import Settings
import Testing

@Suite("https: absolute-form to origins with TLS")
struct TLSScenarios {
    /// - Parameters:
    ///   - names: whom the origin's certificate is for.
    ///   - trusts: whether `tls.ca_file` holds that certificate, or another.
    private func withTLS(
        names: String = "IP:127.0.0.1,DNS:localhost", trusts: Bool? = true, minimum: TLSVersion = .v1_2,
        _ behaviour: TLSOrigin.Behaviour, _ play: (Scenario, TLSOrigin) throws -> Void
    ) throws {
        let own = try MadeCertificate(for: names)
        let other = try MadeCertificate(for: names)
        let origin = try TLSOrigin(own, behaviour)
        defer { origin.end() }
        try scenario(
            { configuration, files in
                configuration.tls.minVersion = minimum
                guard let trusts else { return }
                configuration.tls.caFile = try files.write("ca.pem", trusts ? own.certificate : other.certificate)
            },
            { try play($0, origin) })
    }

    static let stored = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nsecret"
    static let fleeting = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 6\r\n\r\nsecret"

    @Test(arguments: ["127.0.0.1", "localhost"], TLSVersion.allCases)
    func `an origin with a valid certificate is asked and its response stored`(_ host: String, _ minimum: TLSVersion)
        throws
    {
        try withTLS(minimum: minimum, .answers(TLSScenarios.stored)) { s, origin in
            let client = try s.client()
            let url = "https://\(host):\(origin.port)/a"
            let first = try client.get(url)
            #expect(first.status == 200, "\(first)")
            #expect(first.text == "secret")
            #expect(try client.get(url).cacheStatus.hasPrefix("larder; hit"))
            #expect(origin.heads.count == 1)
            #expect(origin.heads.first?.hasPrefix("GET /a HTTP/1.1\r\nHost: \(host):\(origin.port)\r\n") == true)
        }
    }

    @Test func `a connection with TLS is used again`() throws {
        try withTLS(.answers(TLSScenarios.fleeting)) { s, origin in
            let client = try s.client()
            for path in ["/a", "/b", "/c"] { #expect(try client.get(origin.url(path)).text == "secret") }
            #expect(origin.heads.count == 3)
            #expect(origin.connectionCount == 1)
        }
    }

    /// TLS has read that record with the response, so that no event of the socket announces it.
    @Test(arguments: [TLSScenarios.stored, TLSScenarios.fleeting])
    func `a record behind a response does not answer the next request`(_ answer: String) throws {
        let forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
        try withTLS(.goesOn(answer, behind: forged)) { s, origin in
            let client = try s.client()
            for path in ["/a", "/b", "/c"] { #expect(try client.get(origin.url(path)).text == "secret") }
            #expect(origin.connectionCount == 3)
        }
    }

    /// http: and https: of one authority are two keys, and two kinds of connection.
    @Test func `a response received over TLS is not served for http`() throws {
        try withTLS(.answers(TLSScenarios.stored)) { s, origin in
            #expect(try s.client().get(origin.url("/a")).status == 200)
            let plain = try s.client().get("http://127.0.0.1:\(origin.port)/a")
            #expect(plain.status == 502)
            #expect(origin.heads.count == 1)
        }
    }

    static let refused: [(what: String, names: String, trusts: Bool?)] = [
        ("the name of another host", "DNS:other.test", true), ("another address", "IP:127.0.0.2", true),
        ("an address as if it were a name", "DNS:127.0.0.1", true), ("self-signed", "IP:127.0.0.1", nil),
        ("another authority is trusted", "IP:127.0.0.1", false),
    ]
    @Test(arguments: refused)
    func `an origin that cannot prove its name gets no request`(_ row: (what: String, names: String, trusts: Bool?))
        throws
    {
        try withTLS(names: row.names, trusts: row.trusts, .answers(TLSScenarios.stored)) { s, origin in
            let answer = try s.client().get(origin.url("/a"))
            #expect(answer.status == 502, "\(row.what)")
            #expect(answer["Proxy-Status"]?.contains("error=tls_certificate_error") == true, "\(answer)")
            #expect(!answer.text.contains("secret"))
            #expect(origin.heads.isEmpty)
            #expect(origin.connectionCount == 1)
            try s.expect(.originConnectionsClosed, s.count(.originConnectionsOpened))
        }
    }

    @Test func `an origin without TLS is reported`() throws {
        try withTLS(.speaksPlainly) { s, origin in
            let answer = try s.client().get(origin.url("/a"))
            #expect(answer.status == 502)
            #expect(answer["Proxy-Status"]?.contains("error=tls_protocol_error") == true, "\(answer)")
        }
    }

    /// Whoever sits between could end a connection anywhere: without `close_notify` the end is none (RFC 9112 §9.8).
    @Test(arguments: ["max-age=60", "no-store"])
    func `a body up to the end of the connection needs close_notify`(_ cacheControl: String) throws {
        try withTLS(.breaksOff("HTTP/1.1 200 OK\r\nCache-Control: \(cacheControl)\r\n\r\nhalf")) { s, origin in
            let answer = try s.client().get(origin.url("/a"))
            #expect(answer.status == 200)
            #expect(!answer.isWhole, "\(answer)")
            try s.expect(.originConnectionsClosed, 1)
            #expect(s.count(.stored) == 0)
            try s.client().get(origin.url("/a"))
            #expect(origin.heads.count == 2)
        }
    }
}
