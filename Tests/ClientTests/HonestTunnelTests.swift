import Foundation
import Testing

/// Real clients in tunnels that are passed on unread. The origin has two names: a rule allows one of them.
@Suite("Honest tunnels: real clients", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct HonestTunnelTests {
    private struct Site {
        let nginx: Nginx
        let larder: Larder
        let root: String
    }

    /// One server for `allowed.test` and `denied.test`, as a content network has it.
    private static func site(in place: Workplace, tunnel: String = "") async throws -> Site {
        let certificate = try await place.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-keyout", place.path("key.pem"), "-out", place.path("root.pem"), "-subj", "/CN=site", "-addext",
                "subjectAltName=DNS:allowed.test,DNS:denied.test",
            ])
        try #require(certificate.status == 0, "\(certificate)")
        let nginx = try await Nginx.start(
            in: place, server: "location / { add_header Name $ssl_server_name; return 200 \"$ssl_server_name\"; }",
            tls: (place.path("root.pem"), place.path("key.pem")))
        let larder = try await Larder.start(
            in: place,
            access: """
                access:
                  private_destinations: allow
                  rules:
                    - allow: { host: [ allowed.test ], port: [ \(nginx.port) ] \(tunnel) }
                dns: { hosts: { "*.test": 127.0.0.1 } }
                """)
        return Site(nginx: nginx, larder: larder, root: place.path("root.pem"))
    }

    @Test func `curl gets what it is allowed, by its own name alone`() async throws {
        try await Workplace.with { place in
            let site = try await Self.site(in: place)
            let port = site.nginx.port
            let allowed = try await place.curl(
                "--cacert", site.root, "https://allowed.test:\(port)/", through: site.larder)
            #expect(allowed.text == "allowed.test", "\(allowed)")
            let fronted = try await place.curl(
                "--cacert", site.root, "--connect-to", "denied.test:\(port):allowed.test:\(port)",
                "https://denied.test:\(port)/", through: site.larder)
            #expect(fronted.exit == 35, "\(fronted)")
            #expect(fronted.errors.contains("unrecognized name"), "\(fronted)")
            #expect(site.nginx.asked.count == 1)
            _ = try await eventually("it is counted") {
                try await site.larder.statistic("closes", "server-name-mismatch") == 1 ? true : nil
            }
        }
    }

    @Test func `the same curl passes where the rule says tunnel: any`() async throws {
        try await Workplace.with { place in
            let site = try await Self.site(in: place, tunnel: ", tunnel: any")
            let port = site.nginx.port
            let fronted = try await place.curl(
                "--cacert", site.root, "--connect-to", "denied.test:\(port):allowed.test:\(port)",
                "https://denied.test:\(port)/", through: site.larder)
            #expect(fronted.text == "denied.test", "\(fronted)")
        }
    }

    @Test func `curl tunnels no plain HTTP to a host that a rule names`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: "location / { return 200 \"$host\"; }")
            let larder = try await Larder.start(
                in: place,
                access: """
                    access:
                      private_destinations: allow
                      rules: [ allow: { host: [ allowed.test ], port: [ \(nginx.port) ] } ]
                    dns: { hosts: { "*.test": 127.0.0.1 } }
                    """)
            let url = "http://allowed.test:\(nginx.port)/"
            #expect(try await place.curl(url, through: larder).text == "allowed.test")
            let tunnelled = try await place.curl("-p", "-H", "Host: denied.test", url, through: larder)
            #expect(tunnelled.exit == 52, "an empty reply: \(tunnelled)")
            #expect(nginx.asked.count == 1)
        }
    }

    static let names: [(words: [String], alert: String?)] = [
        (["-servername", "allowed.test"], nil), (["-servername", "denied.test"], "unrecognized name"),
        (["-noservername"], "missing extension"), (["-tls1_2", "-servername", "denied.test"], "unrecognized name"),
    ]

    @Test(arguments: names)
    func `openssl s_client is told by an alert`(_ row: (words: [String], alert: String?)) async throws {
        try await Workplace.with { place in
            let site = try await Self.site(in: place)
            let output = try await place.run(
                "openssl",
                [
                    "s_client", "-proxy", "127.0.0.1:\(site.larder.port)", "-connect",
                    "allowed.test:\(site.nginx.port)", "-CAfile", site.root,
                ] + row.words)
            if let alert = row.alert {
                #expect(output.status != 0 && output.err.contains(alert), "\(output)")
            } else {
                #expect(output.status == 0 && output.out.contains("Verify return code: 0"), "\(output)")
            }
        }
    }

    /// A proxy command as administrators write it. The server says who it is, and ends: no more is needed to see that both may speak.
    @Test(.enabled(if: installed("ssh") != nil, "package openssh-client"))
    func `ssh finds its server through the proxy`() async throws {
        try await Workplace.with { place in
            let server = try await place.start("python3", [try Script.server(in: place)])
            let port = try await eventually("the server has a port; it said: \(server.errors)") {
                server.output.split(separator: "\n").first.flatMap { UInt16($0) }
            }
            let larder = try await Larder.start(
                in: place,
                access: """
                    access:
                      private_destinations: allow
                      rules: [ allow: { host: [ allowed.test ], port: [ \(port) ] } ]
                    dns: { hosts: { "*.test": 127.0.0.1 } }
                    """)
            let output = try await place.run(
                "ssh",
                [
                    "-v", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-p", "\(port)", "-o",
                    "ProxyCommand=python3 \(try Script.tunnel(in: place)) \(larder.port) %h %p", "allowed.test",
                ])
            #expect(output.err.contains("larder_test"), "\(output)")
            #expect(server.output.contains("SSH-2.0-OpenSSH"), "\(server.output)")
        }
    }
}

private enum Script {
    /// What `nc -X connect` does, in Python, because Debian has several programs of that name.
    static func tunnel(in place: Workplace) throws -> String {
        let text = """
            import os, socket, sys, threading
            port, host, target = sys.argv[1:4]
            s = socket.create_connection(("127.0.0.1", int(port)))
            s.sendall(f"CONNECT {host}:{target} HTTP/1.1\\r\\nHost: {host}:{target}\\r\\n\\r\\n".encode())
            head = b""
            while not head.endswith(b"\\r\\n\\r\\n"):
                head += s.recv(1)
            if b" 200 " not in head:
                sys.exit(head.decode())
            def up():
                while data := os.read(0, 65536):
                    s.sendall(data)
            threading.Thread(target=up, daemon=True).start()
            while data := s.recv(65536):
                os.write(1, data)

            """
        return try place.write("tunnel.py", text.utf8)
    }

    /// Says that it is a server of SSH, reads who the client is, and ends. It prints its port and what it read.
    static func server(in place: Workplace) throws -> String {
        let text = """
            import socket
            listener = socket.create_server(("127.0.0.1", 0))
            print(listener.getsockname()[1], flush=True)
            client, _ = listener.accept()
            client.sendall(b"SSH-2.0-larder_test\\r\\n")
            print(client.recv(255).decode(errors="replace"), flush=True)

            """
        return try place.write("server.py", text.utf8)
    }
}
