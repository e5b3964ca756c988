import Admin
import Settings
import EventLoop
import Testing

@testable import larder
import JSON

/// Runs a command line and keeps what it said.
private func larderRun(_ words: String...) -> (status: Int32, out: String, err: String) {
    let (out, err) = (Lines(), Lines())
    let console = Console(print: { out.add($0) }, error: { err.add($0) })
    let status = run(words, console)
    return (status, out.text, err.text)
}

private final class Lines: Sendable {
    private let lines = Locked<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var text: String { lines.withLock { $0.joined(separator: "\n") } }
}

@Suite("Command line: words and options")
struct CommandLineTests {
    static let wrong: [(words: [String], says: String, hint: String?)] = [
        (["purg"], "unknown command \"purg\"", "did you mean purge?"),
        (["sevre"], "unknown command \"sevre\"", "did you mean serve?"),
        (["xyzzy"], "unknown command \"xyzzy\"", "see larder help"),
        (["stats", "--jsno"], "unknown option \"--jsno\"", "did you mean --json?"),
        (["stats", "--dry-run"], "unknown option \"--dry-run\"", nil),
        (["stats", "extra"], "stats takes no \"extra\"", nil),
        (["stats", "--json", "--json"], "--json is given twice", nil),
        (["stats", "--json=yes"], "--json takes no value", nil),
        (["stats", "--watch", "--cancel", "f0-1-1"], "--watch and --cancel cannot be given together", nil),
        (["stats", "--cancel"], "--cancel needs a value: --cancel ID", nil),
        (["check", "--config"], "--config needs a value: --config FILE", nil),
        (["check", "--config="], "--config needs a value: --config FILE", nil),
        (["purge"], "purge needs a URL, a condition or --all", nil),
        (["purge", "http://a/", "--all"], "--all cannot be combined with a URL or a condition", nil),
        (["purge", "http://a/", "http://b/"], "purge takes one URL at a time", nil),
        (["purge", "--soft"], "purge needs a URL, a condition or --all", nil),
        (["purge", "a"], "\"url\" must be an absolute URL", nil),
        (["purge", "--tpye", "a/b"], "unknown option \"--tpye\"", "did you mean --type?"),
        (["ls", "--storage", "disk"], "\"storage\" must be one of", nil), (["ls", "--by", "x"], "unknown option", nil),
        (
            ["ls", "http://a/", "--prefix", "http://b/"], "--prefix and an argument without an option mean the same",
            nil
        ),
        (["du", "http://a/", "http://b/"], "only one prefix", nil), (["du", "a"], "\"prefix\" must be", nil),
        (["top", "--by", "size"], "--by takes hits or bytes, not \"size\"", nil),
        (["top", "-n", "0"], "--count takes a number from 1 to 10000", nil), (["explain"], "explain takes a URL", nil),
        (["explain", "GET", "http://a/", "x"], "explain takes a URL", nil),
        (["explain", "http://a/", "-H", "x"], "\"x\" is not a header", nil),
        (["warm"], "warm needs a URL, --from or --page", nil),
        (["warm", "x"], "\"x\" is not an absolute URL", nil), (["wram"], "unknown command", "did you mean warm?"),
        (["warm", "http://a/", "--proxy", "x"], "--proxy takes host:port", nil),
        (["passwd", "file"], "passwd takes a file and a user", nil),
        (["passwd", "file", "a:b"], "a user name cannot be empty or contain colons or control characters", nil),
        (["help", "purg"], "unknown command \"purg\"", "did you mean purge?"),
    ]
    @Test(arguments: wrong)
    func `a mistake is reported with the most similar word and status 2`(
        _ row: (words: [String], says: String, hint: String?)
    ) {
        let lines = Lines()
        let status = run(row.words, Console(print: { _ in }, error: { lines.add($0) }))
        #expect(status == 2)
        #expect(lines.text.hasPrefix("larder: \(row.says)"), "\(lines.text)")
        if let hint = row.hint { #expect(lines.text.hasSuffix(hint)) }
    }

    @Test func `no command shows help as an error`() {
        let result = larderRun()
        #expect(result.status == 2)
        #expect(result.err == helpText)
    }

    @Test func `help names every command, and lists those of later versions apart`() {
        for command in Command.allCases {
            #expect(helpText.contains("\n  \(command.rawValue) "))
            #expect(larderRun("help", command.rawValue).out.hasPrefix("Usage: larder \(command.rawValue)"))
        }
        #expect(larderRun("--help").status == 0)
        #expect(larderRun("purge", "-h").out == helpText(of: .purge))
    }

    @Test func `every command takes the configuration file`() {
        for command in Command.allCases {
            #expect(command.options.contains(.config) && command.options.contains(.help))
        }
    }

    @Test func `options can be anywhere before two dashes, with or without an equals sign`() throws {
        let arguments = try Arguments(["a", "--host=h", "-c", "f", "--", "--all"], for: .purge)
        #expect(arguments.words == ["a", "--all"])
        #expect(arguments[.host] == "h")
        #expect(arguments[.config] == "f")
        #expect(!arguments.has(.all))
    }

    static let distances: [(a: String, b: String, distance: Int)] = [
        ("", "", 0), ("", "ab", 2), ("purge", "purge", 0), ("purg", "purge", 1), ("pruge", "purge", 1),
        ("stats", "state", 1), ("kitten", "sitting", 3),
    ]
    @Test(arguments: distances) func `the distance between words counts edits`(
        _ row: (a: String, b: String, distance: Int)
    ) {
        #expect(editDistance(Array(row.a.utf8), Array(row.b.utf8)) == row.distance)
        #expect(editDistance(Array(row.b.utf8), Array(row.a.utf8)) == row.distance)
    }

    @Test func `an option may contain its value, and some can be repeated`() throws {
        let arguments = try Arguments(["-j8", "-HA: b", "-H", "C: d", "--header=E: =f"], for: .warm)
        #expect(arguments[.jobs] == "8")
        #expect(arguments.all(.header) == ["A: b", "C: d", "E: =f"])
        #expect(throws: UsageError.self) { try Arguments(["-j8", "-j", "9"], for: .warm) }
        #expect(throws: UsageError.self) { try Arguments(["-vx"], for: .warm) }
    }

    @Test func `every option is explained, and a letter stands for one option of a command`() {
        for command in Command.allCases {
            let letters = command.options.compactMap(\.short)
            #expect(Set(letters).count == letters.count)
            #expect(Set(command.options).count == command.options.count)
            for option in command.options { #expect(helpText(of: command).contains(option.meaning(in: command))) }
        }
    }

    @Test(arguments: Command.allCases) func `the help of a command names its own options alone, and no other command`(
        _ command: Command
    ) {
        let words = helpText(of: command).split { !($0.isLetter || $0 == "-") }.map(String.init)
        let known = Set(command.options.map(\.long))
        for word in words where word.hasPrefix("--") { #expect(known.contains(word), "\(word)") }
        for option in command.options {
            let first = option.meaning(in: command).prefix { $0.isLetter }
            let isOfAnother = Command.names.contains(String(first)) && String(first) != command.rawValue
            #expect(!isOfAnother, "\(option.long): \(option.meaning(in: command))")
        }
    }

    @Test func `the help names every command that asks the admin socket`() {
        let line = helpText.split(separator: "\n").first { $0.hasPrefix("  purge, stats, ") } ?? ""
        let named = Set(line.split { !$0.isLetter }.map(String.init))
        #expect(named == Set(Command.allCases.filter { $0.options.contains(.socket) }.map(\.rawValue)), "\(line)")
    }

    @Test func `version prints one line, or JSON`() throws {
        #expect(larderRun("version").out == "larder \(larderVersion)")
        let json = try JSONValue(parsing: Array(larderRun("version", "--json").out.utf8))
        #expect(json["version"] == .string(larderVersion))
    }

    @Test func `a configuration file that does not exist is status 2`() {
        let result = larderRun("check", "--config", "/nonexistent/larder.yaml")
        #expect(result.status == 2)
        #expect(result.err == "/nonexistent/larder.yaml: cannot be read: No such file or directory")
    }

    static let selections: [(words: [String], body: String)] = [
        (["http://a/b"], #"{"url":"http://a/b","soft":false,"dry_run":false}"#),
        (["--prefix", "http://a/"], #"{"prefix":"http://a/","soft":false,"dry_run":false}"#),
        (["--host", "a", "--dry-run"], #"{"host":"a","soft":false,"dry_run":true}"#),
        (["--all", "--soft"], #"{"all":true,"soft":true,"dry_run":false}"#),
        (
            [
                "--type", "image/*", "--host=a", "--tag", "t", "--zone", "z", "--storage", "pinned", "--older-than",
                "7d",
            ],
            #"{"host":"a","tag":"t","type":"image/*","zone":"z","storage":"pinned","older_than":"7d","soft":false,"#
                + #""dry_run":false}"#
        ),
    ]
    @Test(arguments: selections) func `purge sends its selection`(_ row: (words: [String], body: String)) throws {
        let body = try purgeBody(Arguments(row.words[...], for: .purge))
        #expect(String(decoding: body, as: UTF8.self) == row.body)
    }

    @Test(arguments: [
        ["stats"], ["purge", "--all"], ["ls"], ["du"], ["top"], ["explain", "http://a/"],
    ]) func `if no Larder runs, the message names the socket`(_ words: [String]) {
        let lines = Lines()
        let console = Console(print: { _ in }, error: { lines.add($0) })
        #expect(run(words + ["--socket", "/nonexistent/admin.sock"], console) == 1)
        #expect(lines.text == "larder: no Larder is running: nothing answers at /nonexistent/admin.sock")
    }
}

@Suite("Command line: the path of the admin socket")
struct AdminSocketPathTests {
    static let rows: [(environment: [String: String], paths: [String])] = [
        ([:], ["/run/larder/admin.sock"]),
        (
            ["XDG_RUNTIME_DIR": "/run/user/7", "HOME": "/home/a"],
            ["/run/larder/admin.sock", "/run/user/7/larder/admin.sock"]
        ),
        (["HOME": "/home/a"], ["/run/larder/admin.sock", "/home/a/.cache/larder/admin.sock"]),
        (["XDG_RUNTIME_DIR": "relative", "HOME": "/"], ["/run/larder/admin.sock"]),
    ]
    @Test(arguments: rows)
    func `the configured path comes first, then the user's own`(_ row: (environment: [String: String], paths: [String]))
    {
        #expect(adminSocketPaths(Configuration().admin, environment: { row.environment[$0] }) == row.paths)
    }
}

@Suite("larder stats")
struct StatisticsTableTests {
    @Test func `larder stats shows the numbers of the answer`() throws {
        let table = statisticsTable(try JSONValue(parsing: sampleStatistics.json()))
        for line in [
            "larder 1.2.3, up 1 h 1 min", "hit 70", "by requests 76.0 %", "by bytes 75.0 %", "saved 700 B",
            "budget 256.0 MiB", "te-with-cl 27", "dns_error 25", "to clients 1000 B", "to clients 51 B/s", "open 8",
        ] {
            let squeezed = table.split(separator: "\n").map {
                $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
            }
            #expect(squeezed.contains(line), "\(line) is not in\n\(table)")
        }
    }

    @Test func `before the first request there is no ratio`() throws {
        let table = statisticsTable(try JSONValue(parsing: Statistics().json()))
        #expect(table.contains("by requests"))
        #expect(!table.contains("%"))
    }

    static let sizes: [(bytes: Double, text: String)] = [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_048_576, "1.0 MiB"), (3.25 * 1_073_741_824, "3.3 GiB"),
        (0x1p53, "8.0 PiB"), (1e300, "922337203685477580.7 PiB"), (.infinity, "922337203685477580.7 PiB"),
        (.nan, "0 B"), (-1e300, "-9223372036854775808 B"),
    ]
    @Test(arguments: sizes) func `sizes are binary`(_ row: (bytes: Double, text: String)) {
        #expect(binarySize(row.bytes) == row.text)
    }

    @Test func `long numbers are grouped`() {
        #expect(grouped(0) == "0")
        #expect(grouped(999) == "999")
        #expect(grouped(1_234_567) == "1,234,567")
        #expect(grouped(-1000) == "-1,000")
    }
}

@Suite("larder stats --watch")
struct WatchTests {
    private func picture(
        _ pictures: inout TrafficPictures, total: Int, transfers: String, columns: Int = 200, rows: Int = 50
    ) throws -> [String] {
        let stats = try JSONValue(
            parsing: Array(
                """
                {"version":"1.2.3","uptime_seconds":61,"draining":false,"requests":{"total":\(total)},
                 "bandwidth":{"to_clients":2048,"from_origins":1024},"hit_ratio":{"requests":0.5},
                 "bandwidth_limits":[{"limit":"total","rate":2097152,"average":1048576,"flows":1}]}
                """.utf8))
        let list = try JSONValue(parsing: Array("{\"transfers\":[\(transfers)]}".utf8))
        return pictures.next(stats, list, after: .seconds(2), columns: columns, rows: rows)
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    private func fetch(_ id: String, received: Int, expected: String, sent: Int = 0, age: Int = 1000) -> String {
        """
        {"id":"\(id)","kind":"fetch","request_id":"0123456789abcdef","method":"GET","url":"http://a/","client":null,"state":"waiting",
         "age_milliseconds":\(age),"received_bytes":\(received),"expected_bytes":\(expected),"sent_bytes":\(sent),
         "readers":1,"stored":true}
        """
    }

    @Test func `rates are those since the picture before`() throws {
        var pictures = TrafficPictures()
        let first = try picture(&pictures, total: 100, transfers: fetch("f0-1-1", received: 1024, expected: "8192"))
        #expect(first[0] == "larder 1.2.3, up 1 min 1 s")
        #expect(first[1] == "- requests/s, 2.0 KiB/s to clients, 1.0 KiB/s from origins, hit ratio 50.0 %")
        #expect(first[2] == "total: 1.0 MiB/s of 2.0 MiB/s")
        #expect(
            first[4]
                == "f0-1-1     [##------------------]  12 % 1.0 KiB of 8.0 KiB            1.0 KiB/s 7 s left         0123456789abcdef GET http://a/"
        )
        let second = try picture(&pictures, total: 125, transfers: fetch("f0-1-1", received: 5120, expected: "8192"))
        #expect(second[1].hasPrefix("12.5 requests/s"))
        #expect(second[4].contains("  62 % 5.0 KiB of 8.0 KiB            2.0 KiB/s 1 s left "))
    }

    @Test func `without a length there is no bar; uploads show what was sent`() throws {
        var pictures = TrafficPictures()
        let lines = try picture(
            &pictures, total: 1, transfers: fetch("f0-1-1", received: 0, expected: "null", sent: 2048, age: 2000))
        #expect(
            lines[4]
                == "f0-1-1     waiting                      0 B, sent 2.0 KiB             1.0 KiB/s 2 s              0123456789abcdef GET http://a/"
        )
    }

    @Test func `a narrow terminal gets short lines, and sees the URL`() throws {
        var pictures = TrafficPictures()
        let list =
            fetch("f0-1-1", received: 4096, expected: "8192") + ","
            + fetch("f0-2-1", received: 1, expected: "null", age: 1)
        let lines = try picture(&pictures, total: 1, transfers: list, columns: 81)
        #expect(lines[4] == "f0-1-1     [####----]  50 % 4.0 KiB of 8.0 KiB            4.0 KiB/s GET http://a/")
        #expect(lines[5].hasPrefix("f0-2-1     waiting          1 B "))
    }

    @Test func `the oldest come first, and what has no room is counted`() throws {
        var pictures = TrafficPictures()
        let list = (1...9).map { fetch("f0-\($0)-1", received: 0, expected: "null", age: $0 * 1000) }
        let lines = try picture(&pictures, total: 1, transfers: list.joined(separator: ","), columns: 30, rows: 8)
        #expect(lines.count == 7 && lines.allSatisfy { $0.count <= 30 })
        #expect(lines[4].hasPrefix("f0-9-1 ") && lines[5].hasPrefix("f0-8-1 ") && lines[6] == "… and 7 more")
    }

    @Test(arguments: [
        "0", "-1", "9007199254740991", "9007199254740992", "9223372036854775807", "-9223372036854775808",
        "18446744073709551615", "1e300", "-1e300", "0.5", "null", "\"1\"",
    ])
    func `numbers at their bounds make a picture`(_ number: String) throws {
        var pictures = TrafficPictures()
        for other in [number, "1", number] {
            let stats = """
                {"version":"1","uptime_seconds":\(number),"requests":{"total":\(other)},"hit_ratio":{"requests":\(number)},
                 "bandwidth":{"to_clients":\(number),"from_origins":\(number)},
                 "bandwidth_limits":[{"limit":"total","rate":\(number),"average":\(number)}]}
                """
            let list = [(number, other), (other, number)].enumerated().map { index, pair in
                """
                {"id":"f\(index)","method":"GET","url":"http://a/","state":"waiting","age_milliseconds":\(number),
                 "received_bytes":\(pair.0),"expected_bytes":\(pair.1),"sent_bytes":\(number)}
                """
            }
            let text = pictures.next(
                try JSONValue(parsing: Array(stats.utf8)),
                try JSONValue(parsing: Array("{\"transfers\":[\(list.joined(separator: ","))]}".utf8)),
                after: .seconds(1), columns: 200, rows: 50)
            #expect(text.split(separator: "\n").count == 5)
        }
    }

    @Test func `without a transfer it says so`() throws {
        var pictures = TrafficPictures()
        #expect(try picture(&pictures, total: 1, transfers: "").last == "no transfer is under way")
    }
}

@Suite("larder passwd")
struct PasswdTests {
    static let edits: [(before: String, hash: String?, after: String?)] = [
        ("", "h", "anna:h\n"), ("otto:x\n", "h", "otto:x\nanna:h\n"), ("otto:x", "h", "otto:x\nanna:h\n"),
        ("# ours\nanna:old\n\notto:x\n", "h", "# ours\nanna:h\n\notto:x\n"),
        ("anna:1\notto:x\nanna:2\n", "h", "anna:h\notto:x\n"), ("annabel:x\n", "h", "annabel:x\nanna:h\n"),
        ("otto:x\nanna:old\n", nil, "otto:x\n"), ("otto:x\n", nil, nil), ("annabel:x\n", nil, nil),
    ]
    @Test(arguments: edits)
    func `setting a password changes one line and keeps the others`(
        _ row: (before: String, hash: String?, after: String?)
    ) {
        let after = htpasswd(Array(row.before.utf8), settingLineOf: "anna", to: row.hash)
        #expect(after.map { String(decoding: $0, as: UTF8.self) } == row.after)
    }

    @Test(arguments: ["", "a:b", "a\nb", "#a", "a\u{7F}"]) func `a name that cannot be a user is refused`(
        _ name: String
    ) {
        #expect(!isUserName(name))
    }

    @Test(arguments: ["anna", "anna@example.org", "Änne", "a b"]) func `a name that can be a user is accepted`(
        _ name: String
    ) {
        #expect(isUserName(name))
    }
}
