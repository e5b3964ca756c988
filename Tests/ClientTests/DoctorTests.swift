import Foundation
import ProgramUnderTest
import Testing

@Suite("larder doctor")
struct DoctorTests {
    /// `larder doctor` where only these programs are installed.
    private func doctor(
        _ place: Workplace, _ programs: [String], _ words: [String] = [], environment: [String: String]
    ) async throws -> (output: Workplace.Output, json: [String: Any]) {
        let folder = try place.makeDirectory("bin-\(UUID().uuidString)")
        for program in programs {
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/\(program)", withDestinationPath: try #require(installed(program)))
        }
        // Only doctor gets the short path: what starts it needs the usual one.
        let output = try await place.run(
            "env", ["PATH=\(folder)", Larder.executable, "doctor", "--json"] + words, environment: environment,
            within: .seconds(120))
        let json = try? JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any]
        return (output, json ?? [:])
    }

    private func tool(_ name: String, in json: [String: Any]) throws -> [String: Any] {
        let tools = try #require(json["tools"] as? [[String: Any]])
        return try #require(tools.first { $0["name"] as? String == name }, "\(tools)")
    }

    @Test func `tools that use the proxy are found, and the cache answers them the second time`() async throws {
        try await Workplace.with { place in
            let larder = try await Larder.start(in: place)
            let (output, json) = try await doctor(
                place, ["curl", "wget", "git"], environment: larder.proxy.merging(["no_proxy": "localhost"]) { $1 })
            #expect(output.status == 0, "\(output)")
            for name in ["curl", "wget", "git"] {
                #expect(try tool(name, in: json)["proxy"] as? Bool == true, "\(name): \(output)")
            }
            #expect(try tool("curl", in: json)["cached"] as? Bool == true, "\(output)")
            #expect(try tool("git", in: json)["cached"] is NSNull)
            #expect(json["opens_tls"] as? Bool == false && json["fine"] as? Bool == true)
            #expect((json["tools"] as? [Any])?.count == 3)
        }
    }

    @Test func `a tool that goes past the proxy is named, with what mends it`() async throws {
        try await Workplace.with { place in
            let larder = try await Larder.start(in: place)
            let environment = ["HTTP_PROXY": larder.url, "https_proxy": larder.url]
            let (output, json) = try await doctor(place, ["curl"], environment: environment)
            #expect(output.status == 1, "\(output)")
            let curl = try tool("curl", in: json)
            #expect(curl["proxy"] as? Bool == false, "\(output)")
            #expect((curl["advice"] as? String)?.contains("http_proxy=\(larder.url)") == true, "\(output)")
            #expect((curl["said"] as? String)?.contains("check.larder.internal") == true, "\(output)")
            let findings = try #require(json["findings"] as? [[String: String]])
            #expect(findings.contains { $0["problem"]?.contains("http_proxy is not") == true }, "\(output)")
        }
    }

    @Test func `a program that cannot be started is not tested`() async throws {
        try await Workplace.with { place in
            let larder = try await Larder.start(in: place)
            try place.makeDirectory("tools")
            try place.write("tools/poetry", "#!/nowhere/python\n".utf8)
            let json = try await doctor(place, standIn: "poetry", larder)
            let poetry = try tool("poetry", in: json)
            #expect(poetry["proxy"] is NSNull && poetry["said"] as? String != nil, "\(poetry)")
        }
    }

    /// Debian does not have every tool. A stand-in asks for the first URL of doctor among its words, variables and files: it shows that the
    /// row of the table leads to a request, and nothing about the tool.
    @Test(arguments: ["poetry", "pdm", "aws", "pnpm", "conda"])
    func `a stand-in for a tool asks for what the probe names`(_ name: String) async throws {
        try await Workplace.with { place in
            let larder = try await Larder.start(in: place)
            let program = """
                #!/bin/sh
                url=$({ echo "$*"; env; cat ./*; } 2>/dev/null | grep -o 'http://check.larder.internal/[^ ",]*' | head -n 1)
                exec \(try #require(installed("curl"))) -sS "$url"

                """
            try place.write("tools/\(name)", program.utf8)
            let row = try #require(
                try tool(name == "conda" ? "conda, mamba" : name, in: try await doctor(place, standIn: name, larder)))
            #expect(row["proxy"] as? Bool == true, "\(row)")
        }
    }

    /// `larder doctor` where this program of the workplace is the only tool.
    private func doctor(_ place: Workplace, standIn name: String, _ larder: Larder) async throws -> [String: Any] {
        // Copied by another process: a child that this one forks at the wrong moment holds what this one writes, and the kernel starts no file
        // that is open for writing.
        let tool = place.path("tools/\(name)")
        let made = try await place.run(
            "sh", ["-c", "cp \(tool) \(tool).new && chmod 755 \(tool).new && mv \(tool).new \(tool)"])
        try #require(made.status == 0, "\(made)")
        for program in ["sh", "env", "cat", "grep", "head"] {
            try FileManager.default.createSymbolicLink(
                atPath: place.path("tools/\(program)"), withDestinationPath: try #require(installed(program)))
        }
        let output = try await place.run(
            "env", ["PATH=\(place.path("tools"))", Larder.executable, "doctor", "--json"],
            environment: larder.proxy.merging(["no_proxy": "localhost"]) { $1 }, within: .seconds(120))
        return try #require(
            try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any], "\(output)")
    }

    @Test func `--proxy names the proxy, and a password is taken from its URL`() async throws {
        try await Workplace.with { place in
            let larder = try await Larder.startWithUsers(in: place)
            let right = try await doctor(
                place, ["curl"], ["--proxy", larder.url(as: "ali:sesame")], environment: larder.proxy(as: "ali:sesame"))
            #expect(right.output.status == 0, "\(right.output)")
            let wrong = try await doctor(place, ["curl"], ["--proxy", larder.url], environment: [:])
            #expect(wrong.output.status == 1 && wrong.output.err.contains("wants a password"), "\(wrong.output)")
        }
    }

    @Test func `without a proxy, or with one that is not there, it says so`() async throws {
        try await Workplace.with { place in
            let none = try await place.run(Larder.executable, ["doctor"])
            #expect(none.status == 1 && none.err.contains("no variable names a proxy"), "\(none)")
            let gone = try await place.run(Larder.executable, ["doctor", "--proxy", "127.0.0.1:1"])
            #expect(gone.status == 1 && gone.err.contains("cannot be reached"), "\(gone)")
        }
    }

    @Test func `nothing is left behind`() async throws {
        try await Workplace.with { place in
            let larder = try await Larder.start(in: place)
            let folder = try place.makeDirectory("temporary")
            _ = try await doctor(place, ["curl"], environment: larder.proxy.merging(["TMPDIR": folder]) { $1 })
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        }
    }

    @Test func `--server looks at the machine of the proxy`() async throws {
        try await Workplace.with { place in
            let users = try place.write("users", "ann:x\n".utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: users)
            let file = try place.write(
                "doctor.yaml",
                """
                cache: { memory: 64MiB, disk: { path: \(place.path("store")), size: 1GiB } }
                access: { authentication: { basic: { realm: r, users: \(users) } } }
                dns: { servers: [ "127.0.0.1:9" ] }
                """.utf8)
            let output = try await place.run(Larder.executable, ["doctor", "--server", "--json", "--config", file])
            let json = try #require(
                try JSONSerialization.jsonObject(with: Data(output.out.utf8)) as? [String: Any], "\(output)")
            let checks = try #require(json["checks"] as? [[String: String]])
            let state = { (name: String) in checks.first { $0["name"] == name }?["state"] }
            #expect(output.status == 1 && json["fine"] as? Bool == false, "\(output)")
            #expect(state("configuration") != nil && state("disk") == "ok" && state("users") == "warning", "\(output)")
            #expect(
                state("name server") == "wrong" && state("descriptors") != nil && state("clock") != nil, "\(output)")
        }
    }
}
