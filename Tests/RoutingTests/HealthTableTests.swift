import Message
import Routing
import Testing

@Suite("Health: which of many subjects have failed lately") struct HealthTableTests {
    private typealias Table = HealthTable<String, Int>
    private static let terms = Circuit.Terms(failuresMax: 2, pause: .seconds(5), pauseMax: .seconds(15))
    private static func time(_ second: Int) -> WallTime { WallTime(secondsSinceEpoch: Int64(second)) }

    @discardableResult
    private static func fail(_ name: String, _ failure: Int, at second: Int, in table: inout Table) -> Bool {
        table.failed(name, failure, now: .seconds(second), wallTime: time(second), terms)
    }

    @Test func `a subject has its last failure, its first time, and the time that is left`() {
        var table = Table()
        let first = Self.fail("a", 1, at: 10, in: &table)
        #expect(!first && table.entry(of: "a", now: .seconds(10), Self.terms)?.isDown == false)
        let second = Self.fail("a", 2, at: 12, in: &table)
        #expect(second)
        let entry = table.entry(of: "a", now: .seconds(14), Self.terms)
        #expect(entry?.failure == 2 && entry?.since == Self.time(10) && entry?.isDown == true)
        #expect(entry?.pauseLeft == .seconds(3))
        #expect(table.entry(of: "a", now: .seconds(20), Self.terms)?.pauseLeft == .zero)
        #expect(table.entry(of: "b", now: .seconds(14), Self.terms) == nil)
    }

    @Test func `those that are down come in the order in which they failed`() {
        var table = Table()
        for name in ["c", "a", "b"] { Self.fail(name, 0, at: name == "c" ? 1 : name == "a" ? 2 : 3, in: &table) }
        #expect(table.down(now: .seconds(4), Self.terms).isEmpty)
        for name in ["b", "c"] { Self.fail(name, 0, at: 4, in: &table) }
        #expect(table.down(now: .seconds(4), Self.terms).map(\.subject) == ["c", "b"])
        let worked = table.succeeded("c", Self.terms)
        #expect(worked && table.down(now: .seconds(4), Self.terms).map(\.subject) == ["b"])
    }

    @Test func `a full table forgets one that is tried anyway`() {
        var table = Table(countMax: 2)
        for _ in 1...2 { Self.fail("a", 0, at: 1, in: &table) }
        for name in ["b", "c", "d"] { Self.fail(name, 0, at: 2, in: &table) }
        #expect(table.entry(of: "a", now: .seconds(3), Self.terms)?.isDown == true)
        let others = ["b", "c", "d"].filter { table.entry(of: $0, now: .seconds(3), Self.terms) != nil }
        #expect(others == ["d"])
    }
}
