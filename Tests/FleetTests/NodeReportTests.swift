import Testing

@testable import Fleet

@Suite("Fleet: what a node says of itself") struct NodeReportTests {
    static func report(
        node: String = "cache-1", run: String = "1f2e3d4c", release: String = "0.1.0", startedAt: Int64 = 1_700_000_000,
        saidAt: Int64 = 1_700_000_005_000, number: UInt64 = 2, figures: [NodeFigure: UInt64] = [.requests: 17]
    ) -> NodeReport? {
        NodeReport(
            node: node, run: run, release: release, startedAt: startedAt, saidAt: saidAt, number: number,
            figures: figures)
    }

    static func decode(
        _ bytes: [UInt8], of name: String = "cache-1", _ secret: SecretHash = hash
    ) -> Result<NodeReport, NodeReportError> {
        do { return .success(try NodeReport.decode(bytes, of: name, hash: secret)) } catch { return .failure(error) }
    }

    /// With the code that belongs to the text.
    static func sealed(_ text: String) -> [UInt8] { sealed(Array(text.utf8)) }

    static func sealed(_ content: [UInt8]) -> [UInt8] {
        let code = hash.code(Array("report\0".utf8) + content).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        return content + Array(" code=\(code.joined())".utf8)
    }

    static let usual =
        "LNOD 1 node=cache-1 run=1f2e3d4c release=0.1.0 started=1700000000 said=1700000005000 number=2 requests=17"

    static let good: [Named<NodeReport?>] = [
        Named("usual", report()),
        Named("without figures", report(number: 0, figures: [:])),
        Named(
            "the largest numbers",
            report(
                node: String(repeating: "n", count: 64), startedAt: 1 << 53 - 1, saidAt: 1 << 53 - 1, number: .max,
                figures: Dictionary(uniqueKeysWithValues: NodeFigure.allCases.map { ($0, .max) }))),
    ]

    @Test(arguments: good) func `what is written is read, and is short`(_ row: Named<NodeReport?>) throws {
        let report = try #require(row.value)
        let bytes = report.encode(hash: hash)
        #expect(Self.decode(bytes, of: report.node) == .success(report))
        #expect(bytes.count <= NodeReport.bytesMax / 2, "there is room for later figures")
    }

    @Test func `the line is the one that is written down`() throws {
        #expect(try #require(Self.report()).encode(hash: hash) == Self.sealed(Self.usual))
    }

    @Test func `names that a later release adds are passed over, and figures may be absent`() throws {
        let later = Self.sealed(Self.usual + " weather=sunny hits-from-the-moon=3 empty=")
        #expect(Self.decode(later) == .success(try #require(Self.report())))
        let earlier = Self.sealed(
            "LNOD 1 number=2 said=1700000005000 started=1700000000 release=0.1.0 run=1f2e3d4c node=cache-1")
        #expect(Self.decode(earlier) == .success(try #require(Self.report(figures: [:]))))
    }

    @Test func `what is beyond its bound makes no report`() {
        for word in ["", String(repeating: "n", count: 65), "a b", "a\nb", "ä", "a\u{7F}"] {
            #expect(Self.report(node: word) == nil && Self.report(run: word) == nil)
            #expect(Self.report(release: word) == nil)
        }
        #expect(Self.report(startedAt: -1) == nil && Self.report(saidAt: -1) == nil)
    }

    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        let error: NodeReportError

        init(_ name: String, _ bytes: [UInt8], _ error: NodeReportError) {
            testDescription = name
            self.bytes = bytes
            self.error = error
        }
    }

    static let faults = [
        Fault("nothing", [], .notAReport),
        Fault("no code", Array(usual.utf8), .notAReport),
        Fault("the code alone", Array(sealed("").dropFirst()), .notAReport),
        Fault("another magic", sealed("LNOT 1 node=cache-1"), .notAReport),
        Fault("too long", sealed(usual + " x=" + String(repeating: "1", count: 4096)), .tooLong),
        Fault("a wrong code", Array("\(usual) code=\(String(repeating: "0", count: 64))".utf8), .wrongCode),
        Fault(
            "a code of the stream", Array(usual.utf8) + Array(" code=".utf8) + Array(repeating: 0x30, count: 64),
            .wrongCode),
        Fault("another version", sealed("LNOD 2 whatever it says"), .unknownVersion),
        Fault("no version", sealed("LNOD "), .unknownVersion),
        Fault("words missing", sealed("LNOD 1 node=cache-1 run=1"), .malformed),
        Fault("a word without a value", sealed(usual + " requests"), .malformed),
        Fault("a value without a name", sealed(usual + " =1"), .malformed),
        Fault("two spaces", sealed(usual + "  disk-hits=1"), .malformed),
        Fault("a name twice", sealed(usual + " requests=17"), .malformed),
        Fault("a figure that is no number", sealed(usual + " disk-hits=-1"), .malformed),
        Fault("a figure beyond 64 bits", sealed(usual + " disk-hits=18446744073709551616"), .malformed),
        Fault(
            "a time that no clock has", sealed(usual.replacing("=1700000000 ", with: "=9007199254740992 ")), .malformed),
        Fault("one of 63 bits", sealed(usual.replacing("=1700000005000", with: "=9223372036854775807")), .malformed),
        Fault("one of 64 bits", sealed(usual.replacing("=1700000005000", with: "=18446744073709551615")), .malformed),
        Fault("a name that is not UTF-8", sealed(Array("\(usual) ".utf8) + [0xFF, 0x3D, 0x31]), .malformed),
        Fault("another node", sealed(usual.replacing("cache-1", with: "cache-2")), .wrongNode),
    ]

    @Test(arguments: faults) func `each fault has its own error`(_ fault: Fault) {
        #expect(Self.decode(fault.bytes) == .failure(fault.error))
    }

    @Test func `whatever is changed, the report is refused`() {
        let bytes = Self.sealed(Self.usual)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            guard case .failure(let error) = Self.decode(changed) else {
                Issue.record("byte \(index)")
                continue
            }
            #expect(error == .wrongCode || error == .notAReport, "byte \(index)")
            #expect(Self.decode(Array(bytes.prefix(index))) != Self.decode(bytes))
        }
        #expect(Self.decode(bytes, of: "cache-1", otherHash) == .failure(.wrongCode))
    }

    @Test func `names of figures are words of the line, and none is that of another word`() {
        let names = NodeFigure.allCases.map(\.rawValue)
        #expect(Set(names + ["node", "run", "release", "started", "said", "number", "code"]).count == names.count + 7)
        for name in names { #expect(name.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x2D }, "\(name)") }
    }
}

@Suite("Fleet: the nodes that one node knows") struct SeenNodesTests {
    static let second: UInt64 = 1_000_000_000
    static let start: UInt64 = 1_000 * second

    static func report(_ node: String, run: String = "a", startedAt: Int64 = 100, _ number: UInt64) throws -> NodeReport
    {
        try #require(NodeReportTests.report(node: node, run: run, startedAt: startedAt, number: number))
    }

    /// Listens from the start, and has heard one report of a.
    static func seen() throws -> SeenNodes {
        var seen = SeenNodes()
        seen.listens(now: start)
        #expect(seen.hear(try report("a", 1), now: start))
        return seen
    }

    private func state(_ seen: SeenNodes, _ now: UInt64) -> [SeenNodes.State] { seen.nodes(now: now).map(\.state) }

    @Test func `a node is here for 15 seconds after its last report, and silent then`() throws {
        var seen = try Self.seen()
        #expect(state(seen, Self.start + 15 * Self.second) == [.here])
        #expect(state(seen, Self.start + 15 * Self.second + 1) == [.silent])
        #expect(seen.hear(try Self.report("a", 2), now: Self.start + 20 * Self.second))
        #expect(state(seen, Self.start + 21 * Self.second) == [.here])
        #expect(seen.nodes(now: Self.start + 25 * Self.second).first?.ageSeconds == 5)
    }

    @Test func `a report that is put back is no news, and does not make a node look alive`() throws {
        var seen = try Self.seen()
        let late = Self.start + 60 * Self.second
        #expect(!seen.hear(try Self.report("a", 1), now: late))
        #expect(!seen.hear(try Self.report("a", 0), now: late))
        #expect(state(seen, late) == [.silent] && seen.nodes(now: late).first?.ageSeconds == 60)
    }

    @Test func `another run is taken if it began later, or the present one is silent`() throws {
        var seen = try Self.seen()
        #expect(!seen.hear(try Self.report("a", run: "b", startedAt: 99, 9), now: Self.start + 1))
        #expect(seen.hear(try Self.report("a", run: "b", startedAt: 100, 1), now: Self.start + 1))
        #expect(!seen.hear(try Self.report("a", run: "c", startedAt: 50, 1), now: Self.start + 2))
        #expect(seen.hear(try Self.report("a", run: "c", startedAt: 50, 1), now: Self.start + 16 * Self.second))
    }

    @Test func `without a connection nobody is silent who was not before`() throws {
        var seen = try Self.seen()
        #expect(seen.hear(try Self.report("b", 1), now: Self.start + 20 * Self.second))
        seen.isDeaf(now: Self.start + 21 * Self.second)
        let later = Self.start + 7200 * Self.second
        seen.isDeaf(now: later)
        #expect(state(seen, later) == [.silent, .unknown])
        seen.forget(now: later)
        #expect(seen.names == ["a", "b"], "nobody is forgotten meanwhile")
        // Back again: all have a moment to say something.
        seen.listens(now: later)
        #expect(state(seen, later + 15 * Self.second) == [.here, .here])
        #expect(state(seen, later + 16 * Self.second) == [.silent, .silent])
    }

    @Test func `a node that was silent for an hour is forgotten`() throws {
        var seen = try Self.seen()
        seen.forget(now: Self.start + 3600 * Self.second)
        #expect(seen.names == ["a"])
        seen.forget(now: Self.start + 3600 * Self.second + 1)
        #expect(seen.names.isEmpty)
    }

    @Test func `before the first connection nobody knows`() throws {
        var seen = SeenNodes()
        seen.isDeaf(now: Self.start)
        seen.forget(now: Self.start)
        #expect(seen.nodes(now: Self.start).isEmpty)
        seen.hear(try Self.report("a", 1), now: Self.start)
        #expect(state(seen, Self.start) == [.unknown])
    }

    @Test func `256 nodes are remembered, and one that is silent makes room`() throws {
        var seen = try Self.seen()
        for index in 1..<256 {
            #expect(seen.hear(try Self.report("n\(index)", 1), now: Self.start + Self.second))
        }
        #expect(!seen.hear(try Self.report("more", 1), now: Self.start + 2 * Self.second))
        #expect(seen.names.count == 256)
        #expect(seen.hear(try Self.report("more", 1), now: Self.start + 16 * Self.second))
        #expect(seen.names.count == 256 && !seen.names.contains("a"))
    }

    @Test func `names that are made up do not keep the known ones out, nor others for good`() throws {
        let seen = try Self.seen()
        let madeUp = (0..<2000).map { "x\($0)" } + ["", String(repeating: "y", count: 65)]
        var generator = SeededNumbers(state: 7)
        var found = 0
        for _ in 0..<100 {
            let choice = seen.choice(among: madeUp + ["a", "new"], using: &generator)
            #expect(choice.count == 256 && Set(choice).count == 256 && choice.first == "a")
            #expect(!choice.contains(""))
            if choice.contains("new") { found += 1 }
        }
        #expect(found > 0 && found < 100)
        #expect(seen.choice(among: ["b", "a"], using: &generator) == ["a", "b"])
    }
}
