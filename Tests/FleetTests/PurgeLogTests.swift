import Testing

@testable import Fleet

@Suite("Fleet: what purges concern of a record") struct PurgeLogTests {
    /// A purge concerns the record with its name. Nil: it cannot be read.
    typealias Log = PurgeLog<String>

    static let epoch = StreamEpoch([1])!
    static let otherEpoch = StreamEpoch([2])!

    static func id(_ number: UInt64) -> StreamID { StreamID(milliseconds: number, sequence: 0) }

    static func at(_ number: UInt64, _ epoch: StreamEpoch = epoch) -> StreamPosition {
        StreamPosition(epoch: epoch, id: id(number))
    }

    static func stream(
        _ epoch: StreamEpoch = epoch, first: UInt64? = nil, last: UInt64 = 0, maxDeleted: UInt64 = 0
    ) -> StreamState {
        StreamState(epoch: epoch, first: first.map(id), last: id(last), maxDeleted: id(maxDeleted))
    }

    /// A log of a stream that is whole, with purges of a, b and c at 10, 20 and 30.
    static func log(countMax: Int = 100) -> Log {
        var log = Log(countMax: countMax)
        log.begin(stream(first: 10, last: 30), isTrimmed: false)
        for (number, name) in [(UInt64(10), "a"), (20, "b"), (30, "c")] { log.add(id(number), name) }
        return log
    }

    static func concerns(_ log: Log, _ name: String, _ position: StreamPosition) -> Bool {
        log.concerns(recordAt: position, of: Array(name.utf8)) { $0 == name }
    }

    @Test func `nothing is known before the log begins`() {
        var log = Log()
        #expect(Self.concerns(log, "x", Self.at(50)))
        log.add(Self.id(10), "a")
        log.pass(Self.id(20))
        #expect(log.count == 0 && log.start == nil && log.end == .zero)
    }

    static let rows: [(name: String, position: UInt64, isConcerned: Bool)] = [
        ("a", 0, true), ("a", 9, true), ("a", 10, false), ("a", 11, false), ("b", 0, true), ("b", 10, true),
        ("b", 19, true),
        ("b", 20, false), ("c", 29, true), ("c", 30, false), ("c", 31, false), ("d", 0, false), ("d", 31, false),
    ]
    @Test(arguments: rows) func `a purge concerns what was written before it`(
        _ row: (name: String, position: UInt64, isConcerned: Bool)
    ) {
        #expect(Self.concerns(Self.log(), row.name, Self.at(row.position)) == row.isConcerned)
    }

    @Test func `the latest purge that is known is that of the log, or a position beyond it`() {
        #expect(Log().latest(nil) == nil && Log().latest(Self.at(7)) == Self.at(7))
        let log = Self.log()
        #expect(log.latest(nil) == Self.at(30) && log.latest(Self.at(20)) == Self.at(30))
        #expect(log.latest(Self.at(40)) == Self.at(40))
        #expect(log.latest(Self.at(40, Self.otherEpoch)) == Self.at(30))
    }

    /// The node that follows has come to the other data before it reads on.
    @Test func `with other data nothing of the earlier data is known any more`() {
        var log = Self.log()
        log.examined(Self.stream(Self.otherEpoch, first: 5, last: 8))
        #expect(log.latest(Self.at(8, Self.otherEpoch)) == Self.at(8, Self.otherEpoch))
        #expect(log.latest(Self.at(30)) == Self.at(8, Self.otherEpoch))
    }

    @Test func `a stream that was deleted does not make earlier purges unknown`() {
        let lost = Self.stream(last: 0)
        var (examined, begun) = (Self.log(), Self.log())
        examined.examined(lost)
        begun.begin(lost, isTrimmed: false)
        for log in [examined, begun] {
            #expect(log.latest(Self.at(0)) == Self.at(30))
            #expect(log.beginnings == 2)
            #expect(Self.concerns(log, "d", Self.at(29)) && !Self.concerns(log, "d", Self.at(30)))
        }
    }

    @Test func `a purge that cannot be read concerns everything before it`() {
        var log = Self.log()
        log.add(Self.id(40), nil)
        #expect(Self.concerns(log, "d", Self.at(39)) && !Self.concerns(log, "d", Self.at(40)))
    }

    @Test func `a record of other data is not used`() {
        #expect(Self.concerns(Self.log(), "d", Self.at(31, Self.otherEpoch)))
    }

    @Test func `entries that come again are passed over, and so are those that concern nothing`() {
        var log = Self.log()
        log.add(Self.id(20), "d")
        #expect(log.count == 3 && !Self.concerns(log, "d", Self.at(0)))
        log.pass(Self.id(40))
        #expect(log.end == Self.id(40))
        log.add(Self.id(35), "d")
        #expect(log.count == 3)
    }

    @Test func `a record from before the first entry of a trimmed stream is not used`() {
        var log = Log()
        log.begin(Self.stream(first: 10, last: 30), isTrimmed: true)
        #expect(Self.concerns(log, "d", Self.at(9)) && !Self.concerns(log, "d", Self.at(10)))
        log.begin(Self.stream(last: 30), isTrimmed: true)
        #expect(Self.concerns(log, "d", Self.at(29)) && !Self.concerns(log, "d", Self.at(30)))
    }

    @Test func `a record from before an entry that somebody deleted is not used`() {
        var log = Log()
        log.begin(Self.stream(first: 10, last: 30, maxDeleted: 20), isTrimmed: true)
        #expect(Self.concerns(log, "d", Self.at(19)) && !Self.concerns(log, "d", Self.at(20)))
    }

    @Test func `a log that is too long forgets its older half`() {
        var log = Self.log(countMax: 3)
        log.add(Self.id(40), "d")
        #expect(log.count == 1 && log.start == Self.id(30))
        #expect(Self.concerns(log, "x", Self.at(29)))
        #expect(!Self.concerns(log, "x", Self.at(30)) && Self.concerns(log, "d", Self.at(30)))
    }

    // MARK: holes

    @Test func `reading on from the end of the log or from before it leaves it as it is`() {
        for number in [UInt64(0), 15, 30] {
            var log = Self.log()
            log.examined(Self.stream(first: 10, last: 30))
            log.resume(at: Self.at(number))
            #expect(log.count == 3 && Self.concerns(log, "c", Self.at(20)))
        }
    }

    @Test func `a node that passes over entries does not use what was written before it went on`() {
        var log = Self.log()
        log.examined(Self.stream(first: 50, last: 60))
        log.resume(at: Self.at(60))
        #expect(Self.concerns(log, "d", Self.at(59)) && !Self.concerns(log, "d", Self.at(60)))
    }

    /// After FLUSHALL another node is the first to be back, and purges. This one begins behind that purge.
    @Test func `with other data the log begins where the node does`() {
        var log = Self.log()
        log.examined(Self.stream(Self.otherEpoch, first: 40, last: 40))
        log.resume(at: Self.at(40, Self.otherEpoch))
        #expect(Self.concerns(log, "d", Self.at(0, Self.otherEpoch)) && Self.concerns(log, "d", Self.at(50)))
        #expect(!Self.concerns(log, "d", Self.at(40, Self.otherEpoch)))
    }

    @Test func `after the stream was deleted nothing that was written before is used`() {
        var log = Self.log()
        log.examined(Self.stream())
        log.resume(at: Self.at(0))
        #expect(Self.concerns(log, "d", Self.at(0)) && Self.concerns(log, "d", Self.at(29)))
        log.add(Self.id(40), "a")
        #expect(!Self.concerns(log, "d", Self.at(40)) && Self.concerns(log, "a", Self.at(30)))
    }

    // MARK: keys

    @Test func `an unsafe request concerns what was written before it under its keys`() {
        var log = Self.log()
        log.add(Self.id(40), keys: [Array("d".utf8), Array("e".utf8)])
        log.add(Self.id(50), keys: [Array("d".utf8)])
        log.add(Self.id(50), keys: [Array("f".utf8)])
        #expect(log.end == Self.id(50) && log.keyCount == 2)
        #expect(Self.concerns(log, "d", Self.at(49)) && !Self.concerns(log, "d", Self.at(50)))
        #expect(Self.concerns(log, "e", Self.at(39)) && !Self.concerns(log, "e", Self.at(40)))
        #expect(!Self.concerns(log, "f", Self.at(0)))
        #expect(Self.concerns(log, "a", Self.at(9)), "purges are as before")
    }

    @Test func `a log with too many keys forgets its older half`() {
        var log = Log(countMax: 100, keysMax: 4)
        log.begin(Self.stream(first: 1, last: 1), isTrimmed: false)
        for number in 1...5 { log.add(Self.id(UInt64(number)), keys: [Array("\(number)".utf8)]) }
        #expect(log.keyCount == 2 && log.start == Self.id(3))
        #expect(Self.concerns(log, "x", Self.at(2)) && !Self.concerns(log, "x", Self.at(3)))
        #expect(Self.concerns(log, "5", Self.at(4)))
    }
}
