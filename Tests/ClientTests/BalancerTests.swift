import Foundation
import ProgramUnderTest
import Testing

/// HAProxy in front of Larder: it balances connections, and says with the PROXY protocol whose they are.
@Suite(
    "HAProxy in front of Larder",
    .enabled(
        if: installed("haproxy") != nil && installed("curl") != nil && Nginx.isInstalled,
        "packages haproxy, curl, nginx-light"))
struct BalancerTests {
    /// - Parameter header: how HAProxy announces clients.
    private static func with(
        _ header: String, tls: Bool = false, _ body: (Workplace, Nginx, Larder, UInt16) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            try place.write("www/file", "what the origin has".utf8)
            let nginx = try await Nginx.start(in: place)
            var keys = ", proxy_protocol: 127.0.0.1"
            if tls { keys += try await place.ownTLS() }
            let larder = try await Larder.start(
                in: place,
                access: """
                    access:
                      rules: [ allow: { client: [ 127.0.0.7 ], address: [ 127.0.0.1 ], port: [ 1-65535 ] } ]
                    """, listener: keys)
            let socket = try LoopbackListener()
            let file = try place.write(
                "haproxy.cfg",
                """
                defaults
                    mode tcp
                    timeout connect 20s
                    timeout client 60s
                    timeout server 60s
                listen front
                    bind fd@3
                    server larder 127.0.0.1:\(larder.port) \(header)

                """.utf8)
            let balancer = try await place.start("haproxy", ["-db", "-f", file], inherited: socket.fd)
            try await body(place, nginx, larder, socket.port)
            #expect(balancer.isRunning, "\(balancer.errors)")
        }
    }

    static let headers = ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"]

    @Test(arguments: headers) func `requests, tunnels and SOCKS have the address of the client`(_ header: String)
        async throws
    {
        try await Self.with(header) { place, nginx, larder, port in
            func curl(_ words: String..., from address: String) async throws -> Workplace.Reply {
                try await place.curl(words + ["--interface", address, "\(nginx.url)/file"], through: nil)
            }
            for words in [["-x", "http://127.0.0.1:\(port)"], ["-p", "-x", "http://127.0.0.1:\(port)"]] {
                let reply = try await place.curl(
                    words + ["--interface", "127.0.0.7", "\(nginx.url)/file"], through: nil)
                #expect(reply.exit == 0 && reply.text == "what the origin has", "\(reply)")
                let other = try await place.curl(
                    words + ["--interface", "127.0.0.8", "\(nginx.url)/file"], through: nil)
                #expect(other.heads.hasPrefix("HTTP/1.1 403") && other.text != "what the origin has", "\(other)")
            }
            let socks = try await curl("--socks5-hostname", "127.0.0.1:\(port)", from: "127.0.0.7")
            #expect(socks.exit == 0 && socks.text == "what the origin has", "\(socks)")
            let refused = try await curl("--socks5-hostname", "127.0.0.1:\(port)", from: "127.0.0.8")
            #expect(refused.exit == 97, "\(refused)")
            try await eventually("all is logged under the clients' own addresses") {
                let lines = textOfFile(larder.accessLog).split(separator: "\n")
                return lines.count { $0.contains("\"client\":\"127.0.0.7\"") } == 3
                    && lines.count { $0.contains("\"client\":\"127.0.0.8\"") } == 3
            }
        }
    }

    @Test func `TLS to the proxy goes through behind the header`() async throws {
        try await Self.with("send-proxy-v2", tls: true) { place, nginx, _, port in
            let reply = try await place.curl(
                "-x", "https://localhost:\(port)", "--proxy-cacert", place.path("certificate.pem"), "--interface",
                "127.0.0.7", "\(nginx.url)/file", through: nil)
            #expect(reply.exit == 0 && reply.text == "what the origin has", "\(reply)")
        }
    }

    /// Without the header a health check would look like a client that speaks nothing.
    @Test func `a health check with a header of its own (LOCAL) is answered and no client`() async throws {
        try await Self.with("send-proxy-v2 check inter 50ms fall 1 rise 1") { _, _, larder, _ in
            try await eventually("checks were made") { try await larder.statistic("clients", "accepted") >= 5 }
            let statistics = try await larder.command("stats", "--json")
            #expect(!statistics.out.contains("proxy-header"), "\(statistics)")
            #expect(textOfFile(larder.accessLog).isEmpty, "\(textOfFile(larder.accessLog))")
        }
    }
}
