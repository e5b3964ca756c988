import Message
import Routing
import Origins
import Testing

@Suite("Retry-After: origins that want no requests for a while (RFC 9110 §10.2.3)") struct OriginPausesTests {
    private func origin(_ number: Int) -> Endpoint { Endpoint(host: "\(number).example", port: 80) }

    @Test func `an origin is paused until the time is over, and others are not`() {
        var pauses = OriginPauses()
        pauses.pause(origin(1), for: .seconds(5), status: 429, now: .seconds(10))
        #expect(pauses.isPaused(origin(1), now: .seconds(14)) && !pauses.isPaused(origin(2), now: .seconds(14)))
        #expect(!pauses.isPaused(origin(1), now: .seconds(15)))
        pauses.pause(origin(1), for: .zero, status: 429, now: .seconds(20))
        #expect(!pauses.isPaused(origin(1), now: .seconds(20)))
    }

    @Test func `nobody is paused for longer than an hour`() {
        var pauses = OriginPauses()
        pauses.pause(origin(1), for: .seconds(1 << 31), status: 429, now: .zero)
        #expect(pauses.isPaused(origin(1), now: .seconds(3599)) && !pauses.isPaused(origin(1), now: .seconds(3600)))
    }

    @Test func `what is stored stands in for five minutes at most, and only for who takes the status for a failure`() {
        var pauses = OriginPauses()
        pauses.pause(origin(1), for: .seconds(3600), status: 429, now: .zero)
        func standsIn(_ number: Int, at second: Int, _ statuses: [UInt16]) -> Bool {
            pauses.letStandIn(for: origin(number), now: .seconds(second), countsAsFailure: statuses.contains)
        }
        #expect(standsIn(1, at: 299, [429]) && !standsIn(1, at: 300, [429]))
        #expect(!standsIn(1, at: 1, [503]) && !standsIn(2, at: 1, [429]))
        pauses.pause(origin(2), for: .seconds(10), status: 503, now: .zero)
        #expect(standsIn(2, at: 9, [503]) && !standsIn(2, at: 10, [503]))
    }

    @Test func `the table is bounded, and forgets what is over`() {
        var pauses = OriginPauses(countMax: 2)
        for number in 1...3 { pauses.pause(origin(number), for: .seconds(5), status: 429, now: .zero) }
        #expect(pauses.isPaused(origin(2), now: .seconds(1)) && !pauses.isPaused(origin(3), now: .seconds(1)))
        pauses.pause(origin(3), for: .seconds(5), status: 429, now: .seconds(5))
        #expect(pauses.isPaused(origin(3), now: .seconds(6)))
    }

    @Test(
        arguments: [
            ("0", 0), ("120", 120), ("99999999999", 1 << 31), ("9223372036854775808", 1 << 31),
            ("18446744073709551616", 1 << 31), ("999999999999999999999999999999", 1 << 31), ("0005", 5), ("1e3", nil),
            ("+1", nil), ("Fri, 31 Dec 9999 23:59:59 GMT", 252_455_615_999), ("Sat, 01 Jan 0000 00:00:00 GMT", 0),
            ("Sat, 01 Jan 2000 00:01:00 GMT", 60),
            ("Fri, 31 Dec 1999 23:59:59 GMT", 0), ("-1", nil), ("soon", nil), ("", nil), ("1.5", nil),
        ] as [(String, Int?)])
    func `the value is seconds or a date`(text: String, seconds: Int?) {
        let now = WallTime(secondsSinceEpoch: 946_684_800)
        #expect(parseRetryAfter(Array(text.utf8)[...], now: now) == seconds.map { .seconds($0) })
    }

    @Test func `it counts with the statuses that may come with it`() {
        let statuses = [408, 425, 429, 503, 200, 301, 404, 413, 500, 502, 504] as [UInt16]
        #expect(statuses.filter(OriginPauses.concerns) == [408, 425, 429, 503])
    }
}
