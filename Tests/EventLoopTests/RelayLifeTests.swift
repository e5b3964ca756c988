import Glibc
import Testing

@testable import EventLoop

@Suite("The life of a relay")
struct RelayLifeTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000)
    private static let late = start.advanced(by: RelayLife.cutLimit)
    private var life = RelayLife(idle: .seconds(60))

    @Test mutating func `a side that fails is drained, and the other is reset when it has the last bytes`() {
        #expect(life.isOpen)
        #expect(life.failed(.b, errno: ECONNRESET, now: Self.start) == .drain(.b))
        #expect(!life.isOpen)
        #expect(life.drained(isDelivered: false, now: Self.start) == .wait(RelayLife.cutInterval))
        #expect(life.timerFired(isHeld: false) == .drain(.b))
        #expect(life.drained(isDelivered: true, now: Self.start) == .end(.failed(.b, errno: ECONNRESET)))
        #expect(life.timerFired(isHeld: false) == .nothing && life.cancelled() == .nothing)
    }

    @Test mutating func `a side that does not take the last bytes is waited for until the limit`() {
        #expect(life.failed(.a, errno: EPIPE, now: Self.start) == .drain(.a))
        let before = Self.start.advanced(by: RelayLife.cutLimit - .nanoseconds(1))
        #expect(life.drained(isDelivered: false, now: before) == .wait(RelayLife.cutInterval))
        #expect(life.drained(isDelivered: false, now: Self.late) == .end(.failed(.a, errno: EPIPE)))
    }

    @Test mutating func `a tunnel that is cancelled while it is cut has ended by the failure`() {
        #expect(life.failed(.a, errno: ECONNRESET, now: Self.start) == .drain(.a))
        #expect(life.cancelled() == .end(.failed(.a, errno: ECONNRESET)))
        #expect(life.cancelled() == .nothing)
    }

    @Test mutating func `a tunnel that a rate holds is not idle, nor is one that is cut`() {
        #expect(life.timerFired(isHeld: true) == .wait(.seconds(60)))
        #expect(life.timerFired(isHeld: false) == .end(.idle))
        var cut = RelayLife(idle: .seconds(60))
        _ = cut.failed(.b, errno: ECONNRESET, now: Self.start)
        #expect(cut.timerFired(isHeld: true) == .drain(.b))
    }

    @Test mutating func `other ends are final`() {
        #expect(life.closed() == .end(.closed))
        #expect(!life.isOpen && life.cancelled() == .nothing && life.timerFired(isHeld: false) == .nothing)
        var other = RelayLife(idle: .seconds(60))
        #expect(other.cancelled() == .end(.cancelled))
        #expect(!other.isOpen)
    }
}
