import Fleet
import Testing

@Suite("Fleet: purges that have not come back") struct PurgesUnderWayTests {
    private typealias Logs = PurgeLogTests

    private func concerns(_ purges: PurgesUnderWay<String>, _ name: String) -> Bool { purges.concerns { $0 == name } }

    @Test func `a purge concerns what it is of until the log has it`() {
        var purges = PurgesUnderWay<String>()
        var log = Logs.log()
        let ticket = purges.begin("d")
        #expect(concerns(purges, "d") && !concerns(purges, "e"))
        purges.settle(log)
        #expect(!purges.isEmpty)
        purges.sent(ticket, as: Logs.id(40), log)
        purges.settle(log)
        #expect(concerns(purges, "d"))
        log.add(Logs.id(40), "d")
        purges.settle(log)
        #expect(purges.isEmpty && !concerns(purges, "d"))
    }

    @Test func `a purge that was lost with the data of the server ends when the log begins anew`() {
        var purges = PurgesUnderWay<String>()
        var log = Logs.log()
        let sent = purges.begin("d")
        _ = purges.begin("e")
        purges.sent(sent, as: Logs.id(40), log)
        log.begin(Logs.stream(Logs.otherEpoch), isTrimmed: false)
        purges.settle(log)
        // The server has not taken this one.
        #expect(!concerns(purges, "d") && concerns(purges, "e"))
    }

    @Test func `a purge for which another one stands is forgotten`() {
        var purges = PurgesUnderWay<String>()
        let first = purges.begin("d")
        _ = purges.begin(nil)
        purges.forget(first)
        #expect(purges.count == 1 && concerns(purges, "anything"))
    }

    @Test func `too many that were sent become one of everything`() {
        var purges = PurgesUnderWay<String>(sentMax: 2)
        let log = Logs.log()
        for number in UInt64(1)...3 { purges.sent(purges.begin("d"), as: Logs.id(40 + number), log) }
        #expect(purges.count == 1 && concerns(purges, "anything"))
        var later = Logs.log()
        later.add(Logs.id(42), "d")
        purges.settle(later)
        #expect(!purges.isEmpty)
        later.add(Logs.id(43), "d")
        purges.settle(later)
        #expect(purges.isEmpty)
    }
}
