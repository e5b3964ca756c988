import Foundation
import ProgramUnderTest
import Testing

/// curl, Larder with a PAC file, a real next proxy, and nginx.
@Suite(
    "PAC files: Squid",
    .enabled(if: Nginx.isInstalled && Squid.isInstalled, "packages nginx-light, squid"))
struct PACFileTests {
    private static func start(
        _ routes: String, in place: Workplace, variables: [String: String] = [:]
    ) async throws -> (nginx: Nginx, squid: Squid, larder: Larder) {
        let tls = try await place.certificate(for: "registry.example.test")
        let nginx = try await Nginx.start(in: place)
        try place.write("www/file", "from the origin".utf8)
        let squid = try await Squid.start(in: place, tls: tls, names: [])
        try place.write("proxy.pac", script(squid.port).utf8)
        let larder = try await Larder.start(
            in: place, access: "access: { rules: [ allow: { host: [ 127.0.0.1, localhost ], port: [ 1-65535 ] } ] }",
            more: "dns: { hosts: { localhost: 127.0.0.1 } }\n" + routes)
        return (nginx, squid, larder)
    }

    /// Addresses go through Squid, names are reached directly, and one port is an error of the script.
    private static func script(_ port: UInt16) -> String {
        """
        function FindProxyForURL(url, host) {
          if (shExpMatch(url, "*:9/")) throw new Error("port 9");
          if (isInNet(host, "127.0.0.0", "255.0.0.0") && !isPlainHostName(host)) return "PROXY 127.0.0.1:\(port)";
          return "DIRECT";
        }
        """
    }

    @Test func `the script chooses Squid for addresses, and nothing for names`() async throws {
        try await Workplace.with { place in
            let (nginx, squid, larder) = try await Self.start(
                "routes: [ { pac: \(place.path("proxy.pac")) } ]", in: place)
            for host in ["127.0.0.1", "localhost"] {
                let reply = try await place.curl("http://\(host):\(nginx.port)/file", through: larder)
                #expect(reply.text == "from the origin", "\(reply)")
            }
            try await eventually("squid logs the one for the address; it has \(squid.asked)") {
                squid.asked.contains { $0.hasPrefix("GET http://127.0.0.1:\(nginx.port)/file") }
            }
            #expect(!squid.asked.contains { $0.contains("localhost") }, "\(squid.asked)")
            let refused = try await place.curl("http://127.0.0.1:9/", through: larder)
            #expect(refused.status == 502 && refused.cacheStatus.contains("detail=route-unknown"), "\(refused)")
            #expect(larder.child.errors.contains("line 2: port 9"), "\(larder.child.errors)")
        }
    }

    @Test func `a new version of the file counts within seconds, and one that is no script changes nothing`()
        async throws
    {
        try await Workplace.with { place in
            let (nginx, squid, larder) = try await Self.start(
                "routes: [ { pac: \(place.path("proxy.pac")) } ]", in: place)
            let url = "http://127.0.0.1:\(nginx.port)/file?"
            #expect(try await place.curl(url + "1", through: larder).text == "from the origin")
            try place.write("proxy.pac", "function FindProxyForURL(".utf8)
            try await eventually("the log says that it is no script") {
                larder.child.errors.contains("the earlier version stays in use")
            }
            #expect(try await place.curl(url + "2", through: larder).text == "from the origin")
            try await eventually("squid logs both; it has \(squid.asked)") { squid.asked.count == 2 }
            try place.write("proxy.pac", "function FindProxyForURL() { return 'DIRECT'; }".utf8)
            try await eventually("the log says that it was read") {
                larder.child.errors.contains("has changed and was read")
            }
            #expect(try await place.curl(url + "3", through: larder).text == "from the origin")
            #expect(squid.asked.count == 2, "\(squid.asked)")
        }
    }

    @Test func `a reload takes another file, ends the process of the first, and refuses one that is no script`()
        async throws
    {
        try await Workplace.with { place in
            let (nginx, squid, larder) = try await Self.start(
                "routes: [ { pac: \(place.path("proxy.pac")) } ]", in: place)
            let url = "http://127.0.0.1:\(nginx.port)/file?"
            let first = try await Self.files(of: larder)
            #expect(first.map(\.path) == [place.path("proxy.pac")])
            let text = textOfFile(larder.configuration)
            try place.write("bad.pac", "no script".utf8)
            try place.write("larder.yaml", text.replacing("proxy.pac", with: "bad.pac").utf8)
            larder.child.signal(SIGHUP)
            try await eventually("the log says that nothing changed") {
                larder.child.errors.contains("bad.pac cannot be used")
                    && larder.child.errors.contains("the old configuration stays in force")
            }
            #expect(try await Self.files(of: larder).map(\.path) == [place.path("proxy.pac")])
            try place.write("other.pac", "function FindProxyForURL() { return 'DIRECT'; }".utf8)
            try place.write("larder.yaml", text.replacing("proxy.pac", with: "other.pac").utf8)
            larder.child.signal(SIGHUP)
            try await eventually("the other file is in use") {
                try await Self.files(of: larder).map(\.path) == [place.path("other.pac")]
            }
            #expect(try await place.curl(url + "1", through: larder).text == "from the origin")
            #expect(squid.asked == [], "\(squid.asked)")
            try await eventually("the process of the first file has ended") { kill(first[0].process, 0) != 0 }
        }
    }

    /// `pac_files` of the statistics.
    private static func files(of larder: Larder) async throws -> [(path: String, process: Int32)] {
        let output = try await larder.command("stats", "--json")
        let value = try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
        let files = try #require(value?["pac_files"] as? [[String: Any]], "\(output)")
        return files.map { ($0["path"] as? String ?? "", ($0["process"] as? NSNumber)?.int32Value ?? 0) }
    }

    @Test func `check names a script that is none, and warns of one that fails for an example`() async throws {
        try await Workplace.with { place in
            for (script, status, text) in [
                ("function FindProxyForURL(", 2, "SyntaxError"), ("var a;", 2, "it has no function FindProxyForURL"),
                ("function FindProxyForURL() { return 'SOCKS a:1'; }", 0, "has no route for http://example.com/"),
                ("function FindProxyForURL() { return 'DIRECT'; }", 0, "no errors"),
                ("function FindProxyForURL() { while (true) {} }", 0, "it did not answer within pac.timeout"),
            ] as [(String, Int32, String)] {
                try place.write("check.pac", script.utf8)
                try place.write(
                    "check.yaml", "pac: { timeout: 200ms }\nroutes: [ { pac: \(place.path("check.pac")) } ]\n".utf8)
                let output = try await place.run(Larder.executable, ["check", "--config", place.path("check.yaml")])
                #expect(output.status == status && (output.out + output.err).contains(text), "\(script): \(output)")
                if text != "no errors" { #expect(output.err.contains(place.path("check.pac")), "\(output)") }
            }
            try place.write("check.yaml", "routes: [ { pac: /nowhere/a.pac } ]\n".utf8)
            for command in ["check", "serve"] {
                let output = try await place.run(Larder.executable, [command, "--config", place.path("check.yaml")])
                #expect(output.status != 0 && output.err.contains("routes[1].pac: /nowhere/a.pac"), "\(output)")
            }
        }
    }

    @Test func `the proxies of Larder's own environment are taken, and what no_proxy names is reached directly`()
        async throws
    {
        try await Workplace.with { place in
            let tls = try await place.certificate(for: "registry.example.test")
            let nginx = try await Nginx.start(in: place)
            try place.write("www/file", "from the origin".utf8)
            let squid = try await Squid.start(in: place, tls: tls)
            let adminPort = FreePort.take()
            let text = Larder.configuration(
                in: place, adminPort: adminPort,
                access: "access: { rules: [ allow: { host: [ 127.0.0.1, localhost ], port: [ 1-65535 ] } ] }",
                more: "dns: { hosts: { localhost: 127.0.0.1 } }\nroutes: [ { via: environment } ]")
            let larder = try await Larder.start(
                in: place, text: text, adminPort: adminPort,
                environment: [
                    "http_proxy": "http://127.0.0.1:\(squid.port)/", "no_proxy": "a.example,localhost:\(nginx.port)",
                    "HTTP_PROXY": "http://127.0.0.1:1",
                ])
            for host in ["127.0.0.1", "localhost"] {
                let reply = try await place.curl("http://\(host):\(nginx.port)/file", through: larder)
                #expect(reply.text == "from the origin", "\(reply)")
            }
            try await eventually("squid logs the one for the address; it has \(squid.asked)") {
                squid.asked.contains { $0.hasPrefix("GET http://127.0.0.1:\(nginx.port)/file") }
            }
            #expect(squid.asked.count == 1, "\(squid.asked)")
        }
    }

    @Test func `a proxy of the environment has a user in its URL, or gets a credential, and not both`() async throws {
        try await Workplace.with { place in
            let file = try place.write(
                "environment.yaml",
                """
                credentials: [ { name: corp, scheme: basic, user: fleet, password: right } ]
                routes: [ { via: environment, credential: corp, proxies: "http://proxy.example:3128" } ]

                """.utf8)
            for (user, status, text) in [
                ("", 0, "no errors"),
                (
                    "me:hidden@", 2,
                    "routes[1].proxies: the URL of http://proxy.example:3128 in the environment has a user"
                ),
            ] as [(String, Int32, String)] {
                let output = try await place.run(
                    Larder.executable, ["check", "--config", file],
                    environment: ["https_proxy": "http://\(user)proxy.example:3128"])
                #expect(output.status == status && (output.out + output.err).contains(text), "\(output)")
                #expect(!output.err.contains("hidden"), "\(output)")
            }
        }
    }

    @Test func `a variable that cannot be used is named, without its password`() async throws {
        try await Workplace.with { place in
            let file = try place.write("environment.yaml", "routes: [ { via: environment } ]\n".utf8)
            for command in ["check", "serve"] {
                let output = try await place.run(
                    Larder.executable, [command, "--config", file],
                    environment: ["https_proxy": "http://me:hidden@proxy.example"])
                #expect(output.status != 0 && output.err.contains("the variable https_proxy"), "\(output)")
                #expect(!output.err.contains("hidden"), "\(output)")
            }
        }
    }
}
