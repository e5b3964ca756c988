import ClientSetup
import Foundation
import TLS
import Testing

@Suite("setup.sh sets up a tree, and takes it back")
struct SetupRunTests {
    /// Files such as a system has before, one of them without an end of its last line.
    static let before = [
        "root/etc/environment": "LANG=\"C\"", "root/etc/dnf/dnf.conf": "[main]\ngpgcheck=1\n",
        "root/etc/maven/settings.xml": "<settings>\n  <proxies>\n  </proxies>\n</settings>\n",
        "root/etc/apt/apt.conf.d/10own": "x\n", "root/usr/local/share/ca-certificates/own.crt": "own\n",
        "root/etc/ssl/certs/ca-certificates.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ]

    func with(_ body: (ScriptRoom, [String: Data]) throws -> Void) throws {
        try ScriptRoom.with { room in
            for (name, text) in Self.before { try room.write(name, text) }
            try body(room, try room.contents(of: "root"))
        }
    }

    @Test(arguments: shells) func `it writes files, and --undo restores each byte`(_ shell: [String]) throws {
        try with { room, before in
            let outcome = try room.setUp(shell, ["--root", room.path("root")])
            #expect(outcome.status == 0 && outcome.err.isEmpty, "\(outcome)")
            let pem = text(PEMCertificates.write([ScriptRoom.certificate]))
            #expect(room.read("root/etc/larder/ca.pem") == pem)
            #expect(room.read("root/usr/local/share/ca-certificates/larder.crt") == pem)
            #expect(
                room.read("root/etc/larder/ca-bundle.pem")
                    == Self.before["root/etc/ssl/certs/ca-certificates.crt"]! + pem)
            #expect(
                room.read("root/etc/profile.d/larder.sh")?.contains("export https_proxy='http://127.0.0.1:1'") == true)
            #expect(room.read("root/etc/environment")?.hasPrefix("LANG=\"C\"\n# larder setup: begin\n") == true)
            #expect(
                room.read("root/etc/apt/apt.conf.d/90larder")?.contains("Acquire::https::Proxy \"http://127.0.0.1:1\";")
                    == true)
            #expect(
                room.read("root/etc/dnf/dnf.conf")
                    == "[main]\n# larder setup: begin\nproxy=http://127.0.0.1:1\n# larder setup: end\ngpgcheck=1\n")
            let maven = try #require(room.read("root/etc/maven/settings.xml"))
            #expect(maven.components(separatedBy: "<proxy>").count == 3, "\(maven)")

            let undone = try room.run(shell, [room.path("setup.sh"), "--undo", "--root", room.path("root")])
            #expect(undone.status == 0 && undone.err.isEmpty, "\(undone)")
            #expect(try room.contents(of: "root") == before)
        }
    }

    @Test(arguments: shells) func `a second run changes nothing, and one --undo takes back both`(_ shell: [String])
        throws
    {
        try with { room, before in
            _ = try room.setUp(shell, ["--root", room.path("root")])
            let first = try room.contents(of: "root")
            _ = try room.setUp(shell, ["--root", room.path("root")])
            #expect(try room.contents(of: "root") == first)
            _ = try room.setUp(shell, ["--root", room.path("root"), "--no-proxy", "build.test"])
            #expect(room.read("root/etc/environment")?.contains("build.test") == true)
            _ = try room.run(shell, [room.path("setup.sh"), "--undo", "--root", room.path("root")])
            #expect(try room.contents(of: "root") == before)
        }
    }

    @Test(arguments: shells) func `another certificate than the one that was named is refused, and nothing is changed`(
        _ shell: [String]
    ) throws {
        try with { room, before in
            let other = String(ScriptRoom.fingerprint.map { $0 == "0" ? "1" : "0" })
            let outcome = try room.setUp(shell, ["--root", room.path("root")], hex: other)
            #expect(outcome.status == 1 && outcome.err.contains("Nothing was changed"), "\(outcome)")
            #expect(outcome.err.contains(ScriptRoom.fingerprint) && outcome.err.contains(other), "\(outcome)")
            #expect(try room.contents(of: "root") == before)
        }
    }

    @Test func `the certificate must be named`() throws {
        try with { room, before in
            let outcome = try room.run(
                shells[0], [room.path("setup.sh"), "--root", room.path("root"), "--ca-file", room.path("ca.pem")])
            #expect(outcome.status == 1 && outcome.err.contains("--ca-sha256"), "\(outcome)")
            #expect(try room.contents(of: "root") == before)
        }
    }

    static let spellings = [
        ScriptRoom.fingerprint.uppercased(),
        stride(from: 0, to: 64, by: 2).map { String(Array(ScriptRoom.fingerprint)[$0...$0 + 1]) }.joined(
            separator: ":"),
        String(repeating: "0", count: 64) + "," + ScriptRoom.fingerprint,
    ]
    @Test(arguments: spellings) func `fingerprints have many spellings`(_ hex: String) throws {
        try with { room, _ in
            let outcome = try room.setUp(shells[0], ["--root", room.path("root")], hex: hex)
            #expect(outcome.status == 0, "\(outcome)")
        }
    }

    /// Programs could decode these to different certificates, so that one is checked and another trusted.
    static let damaged = [
        "-----BEGIN CERTIFICATE-----\nAA==AAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAAA\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAA*A\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nProc-Type: 4\n\nAAAA\n-----END CERTIFICATE-----\n",
        "", "nothing\n",
    ]
    @Test(arguments: damaged) func `a file that is not plainly certificates is refused`(_ file: String) throws {
        try with { room, before in
            try room.write("ca.pem", file)
            let outcome = try room.setUp(shells[0], ["--root", room.path("root")])
            #expect(outcome.status == 1, "\(outcome)")
            #expect(try room.contents(of: "root") == before)
        }
    }

    @Test func `of several certificates only those are used that were named`() throws {
        try with { room, _ in
            try room.write("ca.pem", text(PEMCertificates.write([blob("evil"), ScriptRoom.certificate])))
            #expect(try room.setUp(shells[0], ["--root", room.path("root")]).status == 0)
            #expect(PEMCertificates.read(room.read("root/etc/larder/ca.pem")!.utf8) == [ScriptRoom.certificate])
            #expect(!PEMCertificates.read(room.read("root/etc/larder/ca-bundle.pem")!.utf8).contains(blob("evil")))
        }
    }

    @Test func `while one root replaces another, both are used`() throws {
        try with { room, before in
            let next = blob("next")
            let hex = Digest.sha256(next).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            try room.write("ca.pem", text(PEMCertificates.write([ScriptRoom.certificate, next])))
            let outcome = try room.setUp(
                shells[0], ["--root", room.path("root")], hex: "\(ScriptRoom.fingerprint),\(hex)")
            #expect(outcome.status == 0, "\(outcome)")
            let store = "root/usr/local/share/ca-certificates"
            #expect(PEMCertificates.read(room.read("\(store)/larder.crt")!.utf8) == [ScriptRoom.certificate])
            #expect(PEMCertificates.read(room.read("\(store)/larder-2.crt")!.utf8) == [next])
            #expect(PEMCertificates.read(room.read("root/etc/larder/ca.pem")!.utf8) == [ScriptRoom.certificate, next])
            _ = try room.run(shells[0], [room.path("setup.sh"), "--undo", "--root", room.path("root")])
            #expect(try room.contents(of: "root") == before)
        }
    }

    @Test(arguments: [["sha256sum", "base64"], ["openssl"], ["python3"]])
    func `whichever program there is computes SHA-256`(_ programs: [String]) throws {
        try with { room, _ in
            // A path with nothing else that could do it.
            let needed = [
                "sh", "awk", "cat", "tr", "cut", "id", "mktemp", "rm", "mkdir", "cp", "grep", "sort", "cmp", "env",
                "rmdir", "sed",
            ]
            try FileManager.default.createDirectory(atPath: room.path("bin"), withIntermediateDirectories: true)
            for program in needed + programs {
                let place = ["/usr/bin", "/bin"].map { "\($0)/\(program)" }.first {
                    FileManager.default.isExecutableFile(atPath: $0)
                }
                guard let place else { return }
                try FileManager.default.createSymbolicLink(
                    atPath: room.path("bin/\(program)"), withDestinationPath: place)
            }
            let outcome = try room.setUp(
                ["/bin/sh"], ["--root", room.path("root")], environment: ["PATH": room.path("bin")])
            #expect(outcome.status == 0, "\(outcome)")
        }
    }

    @Test func `a file of another's is kept and restored, and what was added to ours stays`() throws {
        try with { room, _ in
            try room.write("root/etc/apt/apt.conf.d/90larder", "mine\n")
            _ = try room.setUp(shells[0], ["--root", room.path("root")])
            #expect(room.read("root/etc/apt/apt.conf.d/90larder") != "mine\n")
            let environment = try #require(room.read("root/etc/environment"))
            try room.write("root/etc/environment", environment + "TZ=\"UTC\"\n")
            _ = try room.run(shells[0], [room.path("setup.sh"), "--undo", "--root", room.path("root")])
            #expect(room.read("root/etc/apt/apt.conf.d/90larder") == "mine\n")
            #expect(room.read("root/etc/environment") == "LANG=\"C\"\nTZ=\"UTC\"\n")
        }
    }

    @Test func `a setting of the operator's is left alone`() throws {
        try with { room, _ in
            try room.write("root/etc/dnf/dnf.conf", "[main]\nproxy = http://other.test:1\n")
            let outcome = try room.setUp(shells[0], ["--root", room.path("root")])
            #expect(outcome.status == 0 && outcome.err.contains("dnf.conf was left alone"), "\(outcome)")
            #expect(room.read("root/etc/dnf/dnf.conf") == "[main]\nproxy = http://other.test:1\n")
        }
    }

    @Test func `without an authority only the proxy is set`() throws {
        try ScriptRoom.with(hasAuthority: false) { room in
            for (name, text) in Self.before { try room.write(name, text) }
            let before = try room.contents(of: "root")
            let outcome = try room.run(shells[0], [room.path("setup.sh"), "--root", room.path("root")])
            #expect(outcome.status == 0, "\(outcome)")
            #expect(room.read("root/etc/larder/ca.pem") == nil)
            #expect(room.read("root/etc/environment")?.contains("SSL_CERT_FILE") == false)
            _ = try room.run(shells[0], [room.path("setup.sh"), "--undo", "--root", room.path("root")])
            #expect(try room.contents(of: "root") == before)

            let named = try room.run(
                shells[0], [room.path("setup.sh"), "--root", room.path("root"), "--ca-sha256", ScriptRoom.fingerprint])
            #expect(named.status == 1 && named.err.contains("no certificate authority"), "\(named)")
            #expect(try room.contents(of: "root") == before)
        }
    }

    @Test(arguments: shells) func `a user sets up what is the user's`(_ shell: [String]) throws {
        try ScriptRoom.with { room in
            try room.write("home/.bashrc", "alias x=y")
            try room.write("home/.wgetrc", "tries = 2\n")
            try room.write("home/.m2/settings.xml", "<settings>\n</settings>\n")
            let before = try room.contents(of: "home")
            let outcome = try room.setUp(shell, ["--user"])
            #expect(outcome.status == 0, "\(outcome)")
            #expect(try room.contents(of: "root").keys.sorted() == ["etc"])
            let settings = "home/.config/larder/settings.sh"
            #expect(room.read(settings)?.contains("NODE_EXTRA_CA_CERTS") == true)
            if has("wget") { #expect(room.read("home/.wgetrc")?.contains("ca_certificate = ") == true) }
            if has("mvn") { #expect(room.read("home/.m2/settings.xml")?.contains("<id>larder-https</id>") == true) }
            // A login shell has the variables.
            let login = try room.run(shell, ["-c", ". \"$HOME/.profile\"; echo $https_proxy $SSL_CERT_FILE"])
            #expect(login.out == "http://127.0.0.1:1 \(room.path("home"))/.config/larder/ca-bundle.pem\n", "\(login)")

            let undone = try room.run(shell, [room.path("setup.sh"), "--user", "--undo"])
            #expect(undone.status == 0, "\(undone)")
            #expect(try room.contents(of: "home") == before)
        }
    }

    @Test func `there is nothing to undo where nothing was done`() throws {
        try with { room, before in
            let outcome = try room.run(shells[0], [room.path("setup.sh"), "--undo", "--root", room.path("root")])
            #expect(outcome.status == 0 && outcome.out.contains("nothing to undo"), "\(outcome)")
            #expect(try room.contents(of: "root") == before)
        }
    }
}
