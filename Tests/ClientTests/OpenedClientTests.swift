import Foundation
import ProgramUnderTest
import Testing

/// A proxy with an authority of its own, which opens nothing but `*.example.test` and the name of doctor.
private struct Opened {
    let larder: Larder
    /// The SHA-256 of the root.
    let fingerprint: String

    static func start(in place: Workplace) async throws -> Opened {
        let made = try await place.run(
            Larder.executable, ["ca", "create", "--host", "*.example.test", "--out", place.path("ca"), "--json"])
        try #require(made.status == 0, "\(made)")
        let json = try #require(try JSONSerialization.jsonObject(with: Data(made.out.utf8)) as? [String: Any])
        let root = try #require(json["root"] as? [String: Any])
        let larder = try await Larder.start(
            in: place,
            more: """
                intercept:
                  ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                  hosts: [ "*.example.test" ]
                """)
        return Opened(larder: larder, fingerprint: try #require(root["sha256"] as? String))
    }

    /// The system's own: programs of version managers need more than a path.
    static func isInstalled(_ program: String) -> Bool {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/\(program)")
    }

    /// Runs the script as a user sets it up from the proxy.
    func setUp(_ place: Workplace, hex: String, _ words: String = "") async throws -> Workplace.Output {
        try await place.run(
            "sh", ["-c", "curl -q -fsS \(larder.url)/setup.sh | sh -s -- --user --ca-sha256 \(hex) \(words)"])
    }

    /// `larder doctor` of a login of that user, where only these programs are installed.
    func doctor(_ place: Workplace, _ programs: [String], environment: [String: String] = [:]) async throws
        -> [String: Any]
    {
        let folder = try place.makeDirectory("bin-\(UUID().uuidString)")
        for program in programs {
            guard Opened.isInstalled(program) else { continue }
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/\(program)", withDestinationPath: "/usr/bin/\(program)")
        }
        let output = try await place.run(
            "sh",
            [
                "-c",
                "[ ! -e $HOME/.profile ] || . $HOME/.profile; PATH=\(folder) exec \(Larder.executable) doctor --json",
            ],
            environment: environment, within: .seconds(240))
        let json = try? JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
        return try #require(json, "\(output)")
    }
}

@Suite("Clients of a proxy that opens TLS", .enabled(if: installed("curl") != nil && installed("openssl") != nil))
struct OpenedClientTests {
    private func tool(_ name: String, in json: [String: Any]) throws -> [String: Any] {
        let tools = try #require(json["tools"] as? [[String: Any]])
        return try #require(tools.first { $0["name"] as? String == name }, "\(tools)")
    }

    @Test func `serve prints the line that sets up a client, with the fingerprint of the root that is served`()
        async throws
    {
        try await Workplace.with { place in
            let opened = try await Opened.start(in: place)
            let line = "clients: curl -fsS \(opened.larder.url)/setup.sh | sh -s -- --ca-sha256 \(opened.fingerprint)\n"
            #expect(opened.larder.child.output.hasPrefix(line), "\(opened.larder.child.output)")
            let page = try await place.curl("\(opened.larder.url)/ca.pem", through: nil)
            try place.write("served.pem", page.body)
            let seen = try await place.run(
                "openssl", ["x509", "-in", place.path("served.pem"), "-noout", "-fingerprint", "-sha256"])
            let digits = seen.out.split(separator: "=").last?.filter { $0.isHexDigit }.lowercased()
            #expect(digits == opened.fingerprint, "\(seen)")
        }
    }

    @Test func `another fingerprint changes nothing`() async throws {
        try await Workplace.with { place in
            let opened = try await Opened.start(in: place)
            let output = try await opened.setUp(place, hex: String(repeating: "0", count: 64))
            #expect(output.status == 1 && output.err.contains("Nothing was changed"), "\(output)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: place.path("home")).isEmpty)
        }
    }

    @Test func `a client that only knows the proxy does not trust it, and doctor says what mends that`() async throws {
        try await Workplace.with { place in
            let opened = try await Opened.start(in: place)
            let json = try await opened.doctor(place, ["curl"], environment: opened.larder.proxy)
            let curl = try tool("curl", in: json)
            #expect(json["opens_tls"] as? Bool == true && json["fine"] as? Bool == false, "\(json)")
            #expect(curl["proxy"] as? Bool == true && curl["trusts"] as? Bool == false, "\(curl)")
            #expect((curl["advice"] as? String)?.contains("--ca-sha256 \(opened.fingerprint)") == true, "\(curl)")
        }
    }

    static let tools: [(name: String, program: String)] = [
        ("curl", "curl"), ("wget", "wget"), ("git", "git"), ("Python: urllib, aiohttp", "python3"), ("npm", "npm"),
        ("go, and programs in Go", "go"), ("gem", "gem"), ("composer", "composer"),
    ]
    @Test func `after setup.sh every tool uses the proxy, trusts it, and is served from the cache`() async throws {
        try await Workplace.with { place in
            let opened = try await Opened.start(in: place)
            let output = try await opened.setUp(place, hex: opened.fingerprint)
            try #require(output.status == 0, "\(output)")
            let present = Self.tools.filter { Opened.isInstalled($0.program) }
            // npm, gem and composer are scripts that look for their interpreter on PATH.
            let json = try await opened.doctor(place, present.map(\.program) + ["node", "ruby", "php", "env", "sh"])
            for (name, _) in present {
                let found = try tool(name, in: json)
                #expect(found["proxy"] as? Bool == true, "\(found)")
                #expect(found["trusts"] as? Bool == true, "\(found)")
                #expect(name == "git" || found["cached"] as? Bool == true, "\(found)")
            }
            #expect((json["findings"] as? [Any])?.isEmpty == true, "\(json)")
            #expect(present.contains { $0.name == "curl" })
        }
    }
}
