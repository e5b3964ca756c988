import Foundation
import Testing
import Upstream

/// The library with the servers and the proxy that it is made for.
@Suite(
    "Upstream with nginx",
    .enabled(if: Nginx.isInstalled && installed("openssl") != nil, "packages nginx-light, openssl"))
struct UpstreamWithNginxTests {
    @Test func `files arrive whole, over one connection`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            let content = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            try place.write("www/large", content)
            try place.write("www/small", "hello".utf8)
            let client = try Client(.direct())
            #expect(try await client.send(Request(.get, "\(nginx.url)/large")).body.collect() == content)
            let head = try await client.send(Request(.head, "\(nginx.url)/large"))
            #expect(head.fields["content-length"] == "\(content.count)")
            #expect(try await head.body.collect().isEmpty)
            #expect(try await client.send(Request(.get, "\(nginx.url)/none")).status == 404)
            let small = try await client.send(Request(.get, "\(nginx.url)/small"))
            #expect(try await small.body.collect() == Array("hello".utf8))
        }
    }

    @Test func `servers prove their name, straight and through a tunnel`() async throws {
        try await Workplace.with { place in
            let authority = try await TestAuthority.make("good", in: place)
            let other = try await TestAuthority.make("other", in: place)
            let nginx = try await Nginx.start(in: place, tls: try await authority.issue("server", for: "IP:127.0.0.1"))
            try place.write("www/small", "hello".utf8)
            let larder = try await Larder.start(in: place, access: Larder.openLoopback)
            let url = "https://127.0.0.1:\(nginx.port)/small"
            func ways(_ authorities: String) -> [Client.Way] {
                [
                    .direct(authorities: authorities),
                    .proxy(host: "127.0.0.1", port: larder.port, https: .tunnel(authorities: authorities)),
                ]
            }
            for way in ways(authority.certificate) {
                let response = try await Client(way).send(Request(.get, url))
                #expect(try await response.body.collect() == Array("hello".utf8))
                #expect(response.fields["via"] == nil, "Larder does not see what is in a tunnel")
            }
            for way in ways(other.certificate) {
                await #expect(
                    throws: ClientError.insecure(host: "127.0.0.1", reason: "the certificate's issuer is not known")
                ) { try await Client(way).send(Request(.get, url)) }
            }
        }
    }

    @Test func `the engine opens TLS itself, and refuses a certificate that it does not trust`() async throws {
        try await Workplace.with { place in
            let authority = try await TestAuthority.make("good", in: place)
            let other = try await TestAuthority.make("other", in: place)
            let nginx = try await Nginx.start(in: place, tls: try await authority.issue("server", for: "IP:127.0.0.1"))
            try place.write("www/small", "hello".utf8)
            let request = Request(.get, "https://127.0.0.1:\(nginx.port)/small")
            func engine(_ authorities: String) throws -> Client {
                try Client(
                    .engine(.text("access: { private_destinations: allow }\ntls: { ca_file: \(authorities) }\n")))
            }
            let response = try await engine(authority.certificate).send(request)
            #expect(try await response.body.collect() == Array("hello".utf8))
            #expect(response.fields["via"] == "1.1 larder")
            await #expect {
                try await engine(other.certificate).send(request)
            } throws: { error in
                guard case .refused(let refusal) = error as? ClientError else { return false }
                return refusal.reason == "tls-certificate" && refusal.error == "tls_certificate_error"
            }
        }
    }
}
