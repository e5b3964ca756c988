import Fleet
import Testing

@Suite("Fleet: the clock of the Redis") struct ServerClockTests {
    private static let second: UInt64 = 1_000_000_000
    private static let noon: Int64 = 1_700_000_000_000

    private func clock() -> ServerClock {
        var clock = ServerClock()
        clock.read(microseconds: Self.noon * 1000, askedAt: Self.second, answeredAt: Self.second + 10_000_000)
        return clock
    }

    @Test func `the time lies between what it was at the question and what it was at the answer`() {
        let clock = clock()
        let now = 11 * Self.second
        #expect(clock.earliest(now: now) == Self.noon + 9990)
        #expect(clock.latest(now: now) == Self.noon + 10_001)
        #expect(ServerClock().earliest(now: now) == nil && ServerClock().latest(now: now) == nil)
    }

    @Test func `a difference is what is certain of it`() {
        let clock = clock()
        let now = 11 * Self.second
        #expect(clock.difference(of: Self.noon + 9995, now: now) == 0)
        #expect(clock.difference(of: Self.noon + 12_001, now: now) == 2000)
        #expect(clock.difference(of: Self.noon, now: now) == -9990)
        #expect(ServerClock().difference(of: 0, now: now) == nil)
    }

    @Test func `an answer that was late, or makes no sense, is not used`() {
        var clock = clock()
        let before = clock
        for time in [-1, Int64.max] { clock.read(microseconds: time, askedAt: Self.second, answeredAt: Self.second) }
        clock.read(microseconds: 0, askedAt: Self.second, answeredAt: 3 * Self.second)
        clock.read(microseconds: 0, askedAt: 3 * Self.second, answeredAt: 2 * Self.second)
        #expect(clock == before)
    }

    @Test func `where the server's clock is set back no age becomes less`() {
        var clock = clock()
        let (asked, answered) = (11 * Self.second, 11 * Self.second)
        // It should say ten seconds later, and says a minute earlier.
        clock.read(microseconds: (Self.noon - 60_000) * 1000, askedAt: asked, answeredAt: answered)
        #expect(clock.earliest(now: answered) == Self.noon - 60_000)
        #expect(clock.latest(now: answered) == Self.noon + 9991)
        clock.forget()
        #expect(clock == ServerClock())
    }

    @Test func `a clock that is set forward is believed`() {
        var clock = clock()
        clock.read(microseconds: (Self.noon + 99_000) * 1000, askedAt: 11 * Self.second, answeredAt: 11 * Self.second)
        #expect(clock.earliest(now: 11 * Self.second) == Self.noon + 99_000)
        #expect(clock.latest(now: 11 * Self.second) == Self.noon + 99_001)
    }
}
