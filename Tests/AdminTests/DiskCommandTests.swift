import Admin
import Disk
import DiskTools
import Settings
import EventLoop
import Testing

@testable import larder
import JSON

private let disk = ZoneDisk(zone: "default", path: "/srv/larder", size: 1 << 30, pinned: 1 << 29, sync: .seconds(2))

@Suite("larder verify")
struct VerifyCommandTests {
    @Test func `an intact store takes few lines`() {
        var report = VerifyReport()
        report.objectsGood = 1234
        report.largeGood = 12
        report.segmentsRead = 40
        report.blocksRead = 23_456
        report.bytesRead = 3 << 30
        report.bookBytes = 1 << 20
        report.wasInUse = true
        let outcome = VerifyOutcome(disk: disk, report: report)
        #expect(outcome.isFine)
        #expect(
            outcome.text == """
                zone default, /srv/larder (in use by a proxy)
                  objects  1,234 whole, 12 of them large
                  read     3.0 GiB in 40 files, 23,456 blocks; book 1.0 MiB
                  all is fine
                """)
    }

    /// With findings, of which some were put right and most are not listed.
    static func damaged(repaired: UInt64) -> VerifyReport {
        var report = VerifyReport()
        report.findings = [
            VerifyFinding(
                .recordDamaged, key: Array("http://a/\u{1B}[31m".utf8), file: "segments/00000001.seg", offset: 4096,
                text: "its checksum is wrong"),
            VerifyFinding(.bookDamaged, text: "page 7: no page", isRepaired: true),
        ]
        report.findingCount = 5
        report.repairedCount = repaired
        return report
    }

    @Test func `findings are lines without control characters`() {
        let text = VerifyOutcome(disk: disk, report: Self.damaged(repaired: 0)).text ?? ""
        #expect(
            text.contains(
                "\n  record-damaged   segments/00000001.seg at 4096  http://a/\\u001b[31m: its checksum is wrong\n"),
            "\(text)")
        #expect(text.contains("\n  book-damaged     page 7: no page (repaired)\n"), "\(text)")
        #expect(text.contains("\n  and 3 more\n"))
        #expect(text.hasSuffix("5 findings: stop the proxy and run larder verify --repair"))
    }

    @Test func `a store is fine if all findings were repaired, and not if some were`() {
        let whole = VerifyOutcome(disk: disk, report: Self.damaged(repaired: 5))
        #expect(whole.isFine && whole.text?.hasSuffix("5 findings, all repaired") == true)
        let part = VerifyOutcome(disk: disk, report: Self.damaged(repaired: 4))
        #expect(!part.isFine && part.text?.hasSuffix("5 findings, 4 of them repaired") == true)
    }

    @Test func `a repair while the proxy runs says what to do`() {
        let refusal = DiskRefusal.inUse(path: "/srv/larder")
        let repair = VerifyOutcome(disk: disk, refusal: refusal, repair: true)
        #expect(!repair.isFine && repair.text == nil)
        #expect(repair.problem?.hasPrefix("/srv/larder is in use by another process: stop the proxy to repair") == true)
        let look = VerifyOutcome(disk: disk, refusal: .foreign(path: "/srv/larder"), repair: false)
        #expect(look.problem == "/srv/larder contains other files and is not a store of Larder")
    }

    @Test func `larder verify --json prints all zones in one object`() throws {
        let outcomes = [
            VerifyOutcome(disk: disk, report: Self.damaged(repaired: 1)),
            VerifyOutcome(disk: disk, refusal: .inUse(path: "/p"), repair: true),
        ]
        let json = try JSONValue(parsing: Array(VerifyOutcome.json(outcomes).utf8))
        #expect(json["fine"] == .bool(false))
        let zones = try #require(json["zones"]?.elements)
        #expect(zones[0]["finding_count"] == .integer(5) && zones[0]["repaired"] == .integer(1))
        #expect(zones[0]["findings"]?.elements?.first?["kind"] == .string("record-damaged"))
        #expect(zones[1]["error"]?.text?.contains("stop the proxy") == true && zones[1]["findings"] == nil)
    }
}

@Suite("Command line: selecting disks and objects")
struct DiskSelectionTests {
    static let configuration: Configuration = {
        var configuration = Configuration()
        configuration.cache.writtenDiskSize = 1 << 30
        configuration.cache.zones = [
            .init(name: "layers", memory: 1 << 20, diskPath: "/srv/layers", diskSize: 1 << 30),
            .init(name: "pages", memory: 1 << 20),
        ]
        return configuration
    }()

    @Test func `all disks are chosen, or that of the named zone`() throws {
        let all = try zoneDisks(named: nil, in: Self.configuration, name: "x.yaml")
        #expect(all.map(\.zone) == ["default", "layers"])
        #expect(try zoneDisks(named: "layers", in: Self.configuration, name: "x.yaml").map(\.path) == ["/srv/layers"])
    }

    static let wrong: [(zone: String?, configuration: Configuration, error: UsageError)] = [
        (
            nil, Configuration(),
            UsageError("no zone has a disk in x.yaml", hint: "use --config for another configuration file")
        ),
        ("layres", configuration, UsageError("unknown zone \"layres\"", hint: "did you mean layers?")),
        ("pages", configuration, UsageError("zone pages has no disk", hint: "zones with one: default, layers")),
    ]
    @Test(arguments: wrong.indices) func `a zone that does not exist or has no disk is reported`(_ index: Int) {
        let row = Self.wrong[index]
        #expect(throws: row.error) { try zoneDisks(named: row.zone, in: row.configuration, name: "x.yaml") }
    }

    static let selections: [(words: [String], text: String, range: BookRange, holds: [String], holdsNot: [String])] = [
        ([], "all", .all, ["http://a/", "what"], []),
        (
            ["--host", "Example.org"], "host example.org", .host(Array("example.org".utf8)),
            ["http://example.org/a", "https://example.org:8443/"],
            ["http://www.example.org/", "example.org", "http://example.orgs/"]
        ),
        (
            ["--host", "*.example.org"], "host *.example.org", .below(Array("example.org".utf8)),
            ["http://www.example.org/", "http://a.b.example.org/"], ["http://example.org/", "http://anexample.org/"]
        ),
        (
            ["--prefix", "HTTP://Example.org:80/pool"], "prefix http://example.org/pool",
            .keyPrefix(Array("http://example.org/pool".utf8)),
            ["http://example.org/pool/a", "http://example.org/pools"],
            ["http://example.org/", "https://example.org/pool"]
        ),
    ]
    @Test(arguments: selections.indices) func `export and import select objects as purge does`(_ index: Int) throws {
        let row = Self.selections[index]
        let selection = try KeySelection(Arguments(row.words[...], for: .export))
        #expect(selection.text == row.text && selection.range == row.range)
        for key in row.holds { #expect(selection.holds(Array(key.utf8)), "\(key)") }
        for key in row.holdsNot { #expect(!selection.holds(Array(key.utf8)), "\(key)") }
    }

    @Test func `host and prefix cannot be combined`() throws {
        let arguments = try Arguments(["--host", "a", "--prefix", "http://a/"], for: .import)
        #expect(throws: UsageError.self) { try KeySelection(arguments) }
    }

    static let usage: [(words: [String], says: String)] = [
        (["export"], "export takes one file"), (["import", "a", "b"], "import takes one file"),
        (["verify", "x"], "verify takes no \"x\""), (["export", "--repair", "a"], "unknown option \"--repair\""),
        (["import", "a.tar", "--host", "a/b"], "\"host\" must be"),
        (["verify", "--config", "/nonexistent/larder.yaml"], "/nonexistent/larder.yaml: cannot be read"),
    ]
    @Test(arguments: usage.indices) func `a mistake is status 2`(_ index: Int) {
        let said = Locked<[String]>([])
        let console = Console(print: { _ in }, error: { line in said.withLock { $0.append(line) } })
        #expect(run(Self.usage[index].words, console) == 2)
        let text = said.withLock { $0.joined(separator: "\n") }
        #expect(text.contains(Self.usage[index].says), "\(text)")
    }
}

@Suite("larder export and import: messages")
struct ArchiveTextTests {
    @Test func `an export reports what it contains and what it left out`() throws {
        var report = ExportReport()
        report.objects = 1
        report.bytes = 2048
        #expect(
            exportText(report, disk, "x.tar", isDryRun: false)
                == "exported 1 object, 2.0 KiB, from zone default to x.tar")
        #expect(exportText(report, disk, "x.tar", isDryRun: true).hasPrefix("would export 1 object"))
        report.objectsBefore = 1000
        report.damaged = 2
        #expect(
            exportText(report, disk, "x.tar", isDryRun: false) == """
                exported 1 object, 2.0 KiB, from zone default to x.tar
                  1,000 were in it already from an earlier run
                  2 damaged ones were left out
                  run larder verify for details
                """)
        let json = try JSONValue(parsing: Array(exportJSON(report, disk, "x.tar", isDryRun: false).utf8))
        #expect(
            json["damaged"] == .integer(2) && json["fine"] == .bool(false) && json["objects_before"] == .integer(1000))
    }

    @Test func `an import reports what is wrong with the archive`() throws {
        var report = ImportReport()
        report.objects = 3
        report.isWhole = true
        report.isDigestRight = true
        #expect(
            importText(report, disk, "x.tar", isDryRun: false)
                == "imported 3 objects, 0 B, from x.tar into zone default")
        report.isDigestRight = false
        #expect(importText(report, disk, "x.tar", isDryRun: false).hasSuffix("its digest is wrong"))
        report.isWhole = false
        report.isDigestRight = nil
        #expect(importText(report, disk, "x.tar", isDryRun: false).contains("the archive is incomplete"))
        let json = try JSONValue(parsing: Array(importJSON(report, disk, "x.tar", isDryRun: true).utf8))
        #expect(json["whole"] == .bool(false) && json["digest_right"] == nil && json["dry_run"] == .bool(true))
    }

    static let errors: [(error: ArchiveError, text: String)] = [
        (.noStore("/p"), "zone z: /p has no disk store yet"),
        (
            .store(.inUse(path: "/p")),
            "zone z: /p is in use by another process: stop the proxy before you import (export and verify work while it runs)"
        ),
        (.store(.notAllowed(path: "/p", errno: 13)), "zone z: /p: Permission denied"),
        (.book("/p", .failed(errno: 5)), "/p/book: Input/output error"),
        (.archive("x.tar", errno: 28), "x.tar: No space left on device"),
        (.notAnExport("x.tar"), "x.tar is not an export of Larder"),
        (.storeOff(reason: "full"), "zone z: nothing can be written: full"),
    ]
    @Test(arguments: errors.indices) func `an error says which file, and why`(_ index: Int) {
        #expect(text(of: Self.errors[index].error, zone: "z") == Self.errors[index].text)
    }
}

@Suite("Progress on a terminal")
struct ProgressTests {
    static let rows: [(done: UInt64, total: UInt64, seconds: Int, text: String)] = [
        (0, 0, 0, "[------------------------]   0 %  0 B"),
        (1 << 20, 4 << 20, 0, "[######------------------]  25 %  1.0 MiB of 4.0 MiB  x"),
        (1 << 20, 4 << 20, 2, "[######------------------]  25 %  1.0 MiB of 4.0 MiB  512.0 KiB/s  6 s left  x"),
        (4 << 20, 4 << 20, 2, "[########################] 100 %  4.0 MiB of 4.0 MiB  2.0 MiB/s  x"),
        (9, 4, 0, "[########################] 100 %  9 B of 4 B  x"),
    ]
    @Test(arguments: rows.indices) func `the bar shows share, bytes, rate and remaining time`(_ index: Int) {
        let row = Self.rows[index]
        let note = row.total == 0 ? "" : "x"
        #expect(progressLine(row.done, of: row.total, after: .seconds(row.seconds), note) == row.text)
    }
}
