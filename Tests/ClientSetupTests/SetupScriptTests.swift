@testable import ClientSetup
import Foundation
import Message
import ProgramUnderTest
import TLS
import Testing

/// A directory with a script in it, and the means to run it.
struct ScriptRoom {
    let directory: String
    /// A certificate that the system does not trust.
    static let certificate = blob("larder")
    static let fingerprint = Digest.sha256(certificate).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()

    static func with(hasAuthority: Bool = true, _ body: (ScriptRoom) throws -> Void) throws {
        let room = ScriptRoom(directory: try makeTemporaryDirectory("larder-setup"))
        defer { try? FileManager.default.removeItem(atPath: room.directory) }
        let pages =
            hasAuthority
            ? Pages(
                roots: [certificate], systemRoots: [], now: WallTime(secondsSinceEpoch: 0), sha1: Digest.sha1)
            : Pages()
        // Nobody listens on port 1, so only --ca-file can give the certificate.
        let place = ProxyPlace(host: Array("127.0.0.1".utf8), port: 1)
        guard case .page(let script) = pages.answer(.setupScript, place: place) else { throw Unmade() }
        try room.write("setup.sh", text(script.body))
        try room.write("ca.pem", text(PEMCertificates.write([certificate])))
        try FileManager.default.createDirectory(atPath: room.path("home"), withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: room.path("root/etc"), withIntermediateDirectories: true)
        try body(room)
    }
    struct Unmade: Error {}

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    func write(_ name: String, _ text: String) throws {
        let path = path(name)
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    func read(_ name: String) -> String? { try? String(contentsOfFile: path(name), encoding: .utf8) }

    struct Outcome: CustomStringConvertible {
        let status: Int32
        let out: String
        let err: String
        var description: String { "status \(status)\n\(out)\n--- err\n\(err)" }
    }

    func run(_ shell: [String], _ arguments: [String], environment: [String: String] = [:]) throws -> Outcome {
        let logs = path("log-\(UUID().uuidString)")
        let settings = ["HOME=\(path("home"))", "XDG_CONFIG_HOME="] + environment.map { "\($0.key)=\($0.value)" }
        let program = try Program(["env"] + settings + shell + arguments, logs: logs)
        guard let status = program.end(within: 120) else { throw Unmade() }
        return Outcome(status: status, out: program.output, err: program.errors)
    }

    /// Runs the script with the certificate from its file.
    func setUp(_ shell: [String], _ words: [String], hex: String = fingerprint, environment: [String: String] = [:])
        throws -> Outcome
    {
        try run(
            shell, [path("setup.sh"), "--ca-file", path("ca.pem"), "--ca-sha256", hex] + words,
            environment: environment)
    }

    /// Every file below a directory with what it contains, and every directory.
    func contents(of name: String) throws -> [String: Data] {
        var found: [String: Data] = [:]
        let base = path(name)
        for case let file as String in FileManager.default.enumerator(atPath: base) ?? .init() {
            found[file] = FileManager.default.contents(atPath: "\(base)/\(file)") ?? Data()
        }
        return found
    }
}

/// The shells of this machine that the script must run in.
let shells: [[String]] = [["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"]].filter {
    FileManager.default.isExecutableFile(atPath: "/usr/bin/\($0[0])")
        || FileManager.default.isExecutableFile(atPath: "/bin/\($0[0])")
}

func has(_ program: String) -> Bool {
    ["/usr/bin", "/bin", "/usr/sbin", "/usr/local/bin"].contains {
        FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
    }
}

@Suite("setup.sh: the script")
struct SetupScriptTests {
    @Test(.enabled(if: has("shellcheck"), "package shellcheck"), arguments: [true, false])
    func `shellcheck has nothing to say`(_ hasAuthority: Bool) throws {
        try ScriptRoom.with(hasAuthority: hasAuthority) { room in
            let outcome = try room.run(["shellcheck", "-s", "sh"], [room.path("setup.sh")])
            #expect(outcome.status == 0, "\(outcome)")
        }
    }

    @Test(arguments: shells) func `a script that arrived in part changes nothing, wherever it ends`(_ shell: [String])
        throws
    {
        try ScriptRoom.with { room in
            let script = try #require(room.read("setup.sh"))
            let before = try room.contents(of: "root")
            let end = try #require(script.range(of: "\nmain \"$@\"")).lowerBound
            let length = script.distance(from: script.startIndex, to: end)
            // Everything but the call itself, and each hundredth part of it.
            for part in stride(from: 100, through: 1, by: -9) {
                try room.write("part.sh", String(script.prefix(length * part / 100)))
                _ = try room.run(
                    shell,
                    [
                        room.path("part.sh"), "--root", room.path("root"), "--ca-file", room.path("ca.pem"),
                        "--ca-sha256",
                        ScriptRoom.fingerprint,
                    ])
                #expect(try room.contents(of: "root") == before, "\(part) %")
            }
        }
    }

    @Test(arguments: shells) func `the last line runs the script`(_ shell: [String]) throws {
        try ScriptRoom.with { room in
            #expect(room.read("setup.sh")?.hasSuffix("\nmain \"$@\"\n") == true)
            let help = try room.run(shell, [room.path("setup.sh"), "--help"]).out
            #expect(help.contains("--ca-sha256"))
        }
    }

    static let misuses: [[String]] = [
        ["--nonsense"], ["--ca-sha256"], ["--ca-sha256", "12"], ["--ca-sha256", String(repeating: "g", count: 64)],
        ["--print", "html"], ["--no-proxy", "a b"], ["--no-proxy", "$(id)"], ["--no-proxy", "a'b"],
        ["--root", "/nowhere/at/all"], ["word"],
    ]
    @Test(arguments: misuses) func `misuse is refused with status 2`(_ words: [String]) throws {
        try ScriptRoom.with { room in
            let outcome = try room.run(shells[0], [room.path("setup.sh")] + words)
            #expect(outcome.status == 2 && !outcome.err.isEmpty, "\(outcome)")
        }
    }

    @Test func `a directory whose name needs quotes is refused`() throws {
        try ScriptRoom.with { room in
            for home in ["/home/a b", "/home/$(id)", "/home/a'b", "relative"] {
                let outcome = try room.setUp(shells[0], ["--user"], environment: ["XDG_CONFIG_HOME": home])
                #expect(outcome.status == 1, "\(home): \(outcome)")
            }
        }
    }
}

@Suite("setup.sh --print")
struct SetupPrintTests {
    static let forms: [(form: String, line: String)] = [
        ("sh", "export https_proxy='http://127.0.0.1:1'"), ("fish", "set -gx https_proxy 'http://127.0.0.1:1'"),
        ("env", "https_proxy=http://127.0.0.1:1"), ("systemd", "Environment=\"https_proxy=http://127.0.0.1:1\""),
        ("dockerfile", "ENV https_proxy=\"http://127.0.0.1:1\""), ("java", "-Dhttps.proxyHost=127.0.0.1"),
        ("github", "sudo sh /tmp/larder-setup.sh --ca-sha256 \(ScriptRoom.fingerprint)"),
        ("gitlab", "| sh -s -- --ca-sha256 \(ScriptRoom.fingerprint)"),
    ]
    @Test(arguments: forms) func `each form is printed, and nothing is written`(_ row: (form: String, line: String))
        throws
    {
        try ScriptRoom.with { room in
            for shell in shells {
                let outcome = try room.setUp(shell, ["--user", "--print", row.form])
                #expect(outcome.status == 0 && outcome.err.isEmpty, "\(outcome)")
                #expect(outcome.out.contains(row.line), "\(outcome)")
                #expect(try room.contents(of: "home").isEmpty)
            }
        }
    }

    @Test func `every variable of the table is printed`() throws {
        try ScriptRoom.with { room in
            let lines = try room.setUp(shells[0], ["--user", "--print", "env"]).out.split(separator: "\n")
            let names = lines.map { $0.prefix { $0 != "=" } }
            for variable in SetupVariable.all where variable.value != .javaOptions {
                #expect(names.contains(Substring(variable.name)), "\(variable.name)")
            }
            #expect(lines.contains("SSL_CERT_FILE=\(room.path("home"))/.config/larder/ca-bundle.pem"))
        }
    }

    @Test func `without an authority no variable names a file`() throws {
        try ScriptRoom.with(hasAuthority: false) { room in
            let out = try room.run(shells[0], [room.path("setup.sh"), "--print", "env"]).out
            #expect(out.contains("https_proxy=") && !out.contains("CERT") && !out.contains("CA_BUNDLE"), "\(out)")
        }
    }

    @Test(.enabled(if: has("java"), "a JRE")) func `exceptions have Java's form in the options of Java`() throws {
        try ScriptRoom.with { room in
            let words = ["--print", "java", "--no-proxy", ".corp.test,build.test,10.0.0.0/8,192.0.2.1,::2"]
            let form = try room.run(shells[0], [room.path("setup.sh")] + words).out
            let list = "localhost|*.localhost|127.0.0.1|[::1]|*.corp.test|build.test|*.build.test|192.0.2.1|[::2]"
            #expect(form.contains("-Dhttp.nonProxyHosts=\(list)\n"))
        }
    }

    @Test(.enabled(if: has("fish"), "package fish")) func `fish reads its form`() throws {
        try ScriptRoom.with { room in
            let form = try room.setUp(shells[0], ["--print", "fish"]).out
            try room.write("settings.fish", form)
            let outcome = try room.run(["fish", "-c"], ["source \(room.path("settings.fish")); echo $no_proxy"])
            #expect(outcome.out == "localhost,127.0.0.1,::1\n", "\(outcome)")
        }
    }
}
