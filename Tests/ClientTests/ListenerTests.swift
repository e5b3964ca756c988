import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

private let fileText = "what the origin has"

extension Workplace {
    /// A listener with a certificate for 127.0.0.1: keys for the configuration.
    fileprivate func listenerTLS(_ authority: TestAuthority, more: String = "") async throws -> String {
        let own = try await authority.issue("proxy", for: "IP:127.0.0.1")
        guard unsafe chmod(own.key, 0o600) == 0 else { throw Failure(description: "chmod: errno \(errno)") }
        return ", name: front, tls: { certificate: \(own.certificate), key: \(own.key)\(more) }"
    }
}

@Suite(
    "curl: a listener with TLS, SOCKS5, the PROXY protocol",
    .enabled(if: installed("curl") != nil && Nginx.isInstalled, "packages curl, nginx-light"))
struct ListenerTests {
    private static func with(
        access: String = Larder.openLoopback, tlsKeys: String? = nil, listener: String = "",
        _ body: (Workplace, Nginx, Larder, TestAuthority) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let authority = try await TestAuthority.make("authority", in: place)
            var keys = listener
            if let tlsKeys { keys += try await place.listenerTLS(authority, more: tlsKeys) }
            let nginx = try await Nginx.start(in: place, server: "add_header Cache-Control 'max-age=600';")
            try place.write("www/file", fileText.utf8)
            let larder = try await Larder.start(in: place, access: access, listener: keys)
            try await body(place, nginx, larder, authority)
        }
    }

    @Test(arguments: [[], ["-p"]]) func `--proxy https:// with --proxy-cacert`(_ more: [String]) async throws {
        try await Self.with(tlsKeys: "") { place, nginx, larder, authority in
            let words = ["-x", "https://127.0.0.1:\(larder.port)", "\(nginx.url)/file"] + more
            let reply = try await place.curl(words + ["--proxy-cacert", authority.certificate], through: nil)
            #expect(reply.exit == 0 && reply.text == fileText, "\(reply)")
            let stranger = try await TestAuthority.make("stranger", in: place)
            let refused = try await place.curl(words + ["--proxy-cacert", stranger.certificate], through: nil)
            #expect(refused.exit == 60, "\(refused)")
            let careless = try await place.curl(words + ["--proxy-insecure"], through: nil)
            #expect(careless.text == fileText, "\(careless)")
            let plain = try await place.curl("\(nginx.url)/file", through: larder)
            #expect(plain.isHit == more.isEmpty || !more.isEmpty, "\(plain)")
            #expect(try await larder.statistic("closes", "proxy-handshake-failed") == 1)
        }
    }

    @Test func `--proxy-cert shows who the client is, and the log has it`() async throws {
        try await Workplace.with { place in
            let authority = try await TestAuthority.make("authority", in: place)
            let keys = try await place.listenerTLS(authority, more: ", client_ca: \(authority.certificate)")
            let nginx = try await Nginx.start(in: place, server: "add_header Cache-Control 'max-age=600';")
            try place.write("www/file", fileText.utf8)
            let larder = try await Larder.start(
                in: place,
                access: """
                    access:
                      authentication: { certificates: { map: [ { san: "*.builders.example", user: "{*}" } ] } }
                      rules: [ allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ], user: [ b7 ] } ]
                    """, listener: keys)
            let words = [
                "-x", "https://127.0.0.1:\(larder.port)", "--proxy-cacert", authority.certificate, "\(nginx.url)/file",
            ]
            let own = try await authority.issue("b7", for: "DNS:b7.builders.example")
            for more in [[], ["-p"]] {
                let reply = try await place.curl(
                    words + ["--proxy-cert", own.certificate, "--proxy-key", own.key] + more, through: nil)
                #expect(reply.exit == 0 && reply.text == fileText, "\(reply)")
            }
            let other = try await authority.issue("c", for: "DNS:c.example")
            let unknown = try await place.curl(
                words + ["--proxy-cert", other.certificate, "--proxy-key", other.key], through: nil)
            #expect(unknown.status == 403, "\(unknown)")
            let without = try await place.curl(words, through: nil)
            #expect(without.exit != 0, "\(without)")
            let lines = try await eventually("all is logged") { () async throws -> [Substring]? in
                let lines = textOfFile(larder.accessLog).split(separator: "\n")
                return lines.count >= 4 ? lines : nil
            }
            #expect(lines.count { $0.contains("\"user\":\"b7\"") } == 2, "\(lines)")
            #expect(lines.contains { $0.contains("\"close\":\"client-certificate-refused\"") }, "\(lines)")
        }
    }

    @Test func `a revoked certificate is refused as soon as the list is there`() async throws {
        try await Workplace.with { place in
            let authority = try await TestAuthority.make("authority", in: place)
            let crl = try await authority.revocationList()
            let keys = try await place.listenerTLS(
                authority, more: ", client_ca: \(authority.certificate), crl: \(crl)")
            let nginx = try await Nginx.start(in: place, server: "")
            try place.write("www/file", fileText.utf8)
            let larder = try await Larder.start(in: place, listener: keys)
            let own = try await authority.issue("b7", for: "DNS:b7.builders.example")
            let words = [
                "-x", "https://127.0.0.1:\(larder.port)", "--proxy-cacert", authority.certificate, "--proxy-cert",
                own.certificate, "--proxy-key", own.key, "\(nginx.url)/file",
            ]
            let before = try await place.curl(words, through: nil)
            #expect(before.text == fileText, "\(before)")
            _ = try await authority.revocationList(revoking: own.certificate)
            _ = try await eventually("the list is read") { () async throws -> Bool? in
                try await place.curl(words, through: nil).exit != 0 ? true : nil
            }
            #expect(try await larder.statistic("closes", "client-certificate-refused") >= 1)
        }
    }

    @Test(arguments: [nil, "ali:sesame", "ali:wrong"])
    func `--socks5-hostname, without a user and with one`(_ credentials: String?) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: "")
            try place.write("www/file", fileText.utf8)
            let larder =
                credentials == nil
                ? try await Larder.start(in: place) : try await Larder.startWithUsers(in: place)
            let user = credentials.map { ["--proxy-user", $0] } ?? []
            let words = ["--socks5-hostname", "127.0.0.1:\(larder.port)"] + user
            let url = "http://localhost:\(nginx.port)/file"
            let reply = try await place.curl(words + [url], through: nil)
            guard credentials != "ali:wrong" else {
                #expect(reply.exit == 97, "\(reply)")
                return
            }
            #expect(reply.exit == 0 && reply.text == fileText, "\(reply)")
            let denied = try await place.curl(words + ["http://10.0.0.1/"], through: nil)
            #expect(denied.exit == 97 && denied.errors.contains("(2)"), "\(denied)")
            if credentials != nil {
                let nobody = try await place.curl(["--socks5-hostname", "127.0.0.1:\(larder.port)", url], through: nil)
                #expect(nobody.exit == 97, "\(nobody)")
            }
        }
    }

    @Test func `--haproxy-protocol names the client, and only load balancers may`() async throws {
        try await Self.with(listener: ", proxy_protocol: 127.0.0.1") { place, nginx, larder, _ in
            let reply = try await place.curl("--haproxy-protocol", "\(nginx.url)/file", through: larder)
            #expect(reply.text == fileText, "\(reply)")
            let without = try await place.curl("\(nginx.url)/file", through: larder)
            #expect(without.status == 403, "\(without)")
        }
        try await Self.with { place, nginx, larder, _ in
            let reply = try await place.curl("--haproxy-protocol", "\(nginx.url)/file", through: larder)
            #expect(reply.status == 403, "\(reply)")
            #expect(try await larder.statistic("closes", "proxy-header-untrusted") == 1)
        }
    }

    @Test func `a tunnel of a client with TLS is opened up: TLS inside TLS`() async throws {
        try await Workplace.with { place in
            let authority = try await TestAuthority.make("authority", in: place)
            let host = try await ProxiedHost.start(in: place, listener: try await place.listenerTLS(authority))
            let content = noise(300_000)
            try place.write("www/file", content)
            for round in 1...2 {
                let reply = try await place.curl(
                    "-x", "https://127.0.0.1:\(host.larder.port)", "--proxy-cacert", authority.certificate, "--cacert",
                    try #require(host.root), "\(host.url)/file", through: nil)
                #expect(reply.exit == 0 && reply.body == content, "\(reply)")
                #expect(reply.isHit == (round == 2), "\(reply)")
            }
            #expect(try await host.larder.statistic("tunnels", "intercepted") == 2)
        }
    }

    @Test func `Python speaks SOCKS by hand`() async throws {
        try await Self.with { place, nginx, larder, _ in
            let script = """
                import socket, struct
                s = socket.create_connection(("127.0.0.1", \(larder.port)))
                s.sendall(b"\\x05\\x01\\x00")
                assert s.recv(2) == b"\\x05\\x00"
                s.sendall(b"\\x05\\x01\\x00\\x03\\x09localhost" + struct.pack(">H", \(nginx.port)))
                assert s.recv(10)[1] == 0
                s.sendall(b"GET /file HTTP/1.0\\r\\n\\r\\n")
                print(s.makefile().read().splitlines()[-1])
                """
            let output = try await place.run("python3", ["-c", script])
            #expect(output.status == 0 && output.out.contains(fileText), "\(output)")
        }
    }

    static let wrong: [(keys: String, message: String)] = [
        (", tls: { certificate: /nowhere.pem, key: /nowhere.key }", "listen.tls.key: /nowhere.key: No such file"),
        (", tls: { certificate: PLACE/proxy.crt, key: PLACE/exposed.key }", "others can read the key"),
        (", tls: { certificate: PLACE/proxy.key, key: PLACE/proxy.key }", "listen.tls.certificate: "),
        (", tls: { certificate: PLACE/proxy.crt, key: PLACE/authority.key }", "listen.tls.key: "),
        (
            ", tls: { certificate: PLACE/proxy.crt, key: PLACE/proxy.key, client_ca: PLACE/proxy.key }",
            "listen.tls.client_ca: "
        ),
    ]

    @Test(arguments: wrong) func `files that do not fit are named`(_ row: (keys: String, message: String)) async throws
    {
        try await Workplace.with { place in
            let authority = try await TestAuthority.make("authority", in: place)
            _ = try await place.listenerTLS(authority)
            for (name, mode) in [("exposed.key", mode_t(0o644)), ("authority.key", 0o600)] {
                if name == "exposed.key" { try place.write(name, place.bytes("proxy.key")) }
                guard unsafe chmod(place.path(name), mode) == 0 else { throw Failure(description: "chmod") }
            }
            let file = try place.write(
                "larder.yaml",
                Larder.configuration(
                    in: place, adminPort: FreePort.take(),
                    listener: row.keys.replacingOccurrences(of: "PLACE", with: place.directory)
                ).utf8)
            let output = try await place.run(Larder.executable, ["serve", "--config", file])
            #expect(output.status != 0 && output.err.contains(row.message), "\(output)")
        }
    }
}

extension TestAuthority {
    /// A list of what is revoked, at a path that stays the same.
    fileprivate func revocationList(revoking certificate: String? = nil) async throws -> String {
        let folder = place.path("crl-\(name)")
        let list = place.path("\(name).crl")
        if !FileManager.default.fileExists(atPath: folder) {
            try place.write("crl-\(name)/index", [])
            try place.write(
                "crl-\(name)/openssl.cnf",
                """
                [ca]
                default_ca = own
                [own]
                database = \(folder)/index
                default_md = sha256
                default_crl_days = 2
                """.utf8)
        }
        let common = [
            "ca", "-config", "\(folder)/openssl.cnf", "-cert", self.certificate, "-keyfile", place.path("\(name).key"),
        ]
        if let certificate {
            let output = try await place.run("openssl", common + ["-revoke", certificate])
            try #require(output.status == 0, "\(output)")
        }
        let output = try await place.run("openssl", common + ["-gencrl", "-out", "\(list).new"])
        try #require(output.status == 0, "\(output)")
        guard unsafe rename("\(list).new", list) == 0 else { throw Failure(description: "rename: errno \(errno)") }
        return list
    }
}

@Suite("systemd: sockets that are passed, and what it is told")
struct ServiceManagerTests {
    /// A datagram socket as the service manager has it.
    private final class Listener: Sendable {
        let fd: CInt

        init(path: String) throws {
            fd = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
            let status = unsafe try SocketAddress(unixPath: path).withSockaddr {
                unsafe Glibc.bind(fd, $0.assumingMemoryBound(to: sockaddr.self), $1)
            }
            guard status == 0 else { throw Failure(description: "bind: errno \(errno)") }
        }

        deinit { close(fd) }

        /// What has come. Nil if there is nothing.
        func message() -> String? {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = unsafe recv(fd, &buffer, buffer.count, CInt(MSG_DONTWAIT))
            return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
        }

        func next() async throws -> String {
            try await eventually("larder says something") { () async throws -> String? in
                while let text = message() {
                    if text != "WATCHDOG=1" { return text }
                }
                return nil
            }
        }
    }

    @Test(.enabled(if: installed("systemd-socket-activate") != nil && installed("curl") != nil, "package systemd"))
    func `sockets are taken, and READY, RELOADING and STOPPING follow`() async throws {
        try await Workplace.with { place in
            let manager = try Listener(path: place.path("notify"))
            let port = FreePort.take()
            let text = """
                listen: [ { address: "systemd:proxy" } ]
                admin: { address: off, socket: off }
                cache: { memory: 64MiB, disk: { size: 0 } }
                workers: 2

                """
            let file = try place.write("larder.yaml", text.utf8)
            let child = try await place.start(
                "systemd-socket-activate",
                [
                    "-l", "127.0.0.1:\(port)", "--fdname=proxy", "-E", "NOTIFY_SOCKET=\(place.path("notify"))",
                    "-E", "WATCHDOG_USEC=2000000", Larder.executable, "serve", "--config", file,
                ])
            // The first client makes it start; it waits until it is served.
            let reply = try await eventually("the socket is open") { () async throws -> Workplace.Reply? in
                let reply = try await place.curl("-x", "http://127.0.0.1:\(port)", "http://10.0.0.1/", through: nil)
                return reply.exit == 7 ? nil : reply
            }
            #expect(reply.status == 403, "\(reply) \(child.errors)")
            #expect(try await manager.next().hasPrefix("READY=1\nSTATUS=0"))
            child.signal(SIGHUP)
            let reloading = try await manager.next()
            #expect(reloading.wholeMatch(of: /RELOADING=1\nMONOTONIC_USEC=[0-9]+/) != nil, "\(reloading)")
            #expect(try await manager.next().hasPrefix("READY=1"))
            _ = try await eventually("a sign of life") { () async throws -> Bool? in
                manager.message() == "WATCHDOG=1" ? true : nil
            }
            child.signal(SIGTERM)
            #expect(try await manager.next().hasPrefix("STOPPING=1"))
            #expect(try await child.end(within: .seconds(20)) == 0)
        }
    }

    @Test func `without the socket that is named, Larder does not start`() async throws {
        try await Workplace.with { place in
            let text = "listen: \"systemd:proxy\"\nadmin: { address: off, socket: off }\ncache: { disk: { size: 0 } }\n"
            let file = try place.write("larder.yaml", text.utf8)
            let output = try await place.run(Larder.executable, ["serve", "--config", file])
            #expect(
                output.status == 1 && output.err.contains("systemd:proxy: the service manager has passed no such"),
                "\(output)")
        }
    }
}
