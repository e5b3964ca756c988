/// The clock of the Redis, as a node knows it. It is the one clock that all nodes of a fleet can compare theirs with, so what one node dates another one can read, whatever
/// their own clocks say.
///
/// A reading is uncertain by the time that the question took. So there are two readings of now, and who uses them takes the one with which no age is underestimated. Moments
/// are nanoseconds of a clock that never goes back; times are milliseconds since 1970.
package struct ServerClock: Equatable, Sendable {
    private struct Reading: Equatable, Sendable {
        let time: Int64
        let askedAt: UInt64
        let answeredAt: UInt64
    }

    private var reading: Reading?
    /// By how much the clock was set back since the connection was opened. Who dated something before that gave it a later time than it would have now.
    private var setBackBy: Int64 = 0

    /// A question that took longer says too little.
    package static let uncertaintyMax: UInt64 = 1_000_000_000
    /// Differences up to this are those of machines that are busy.
    package static let differenceMax: Int64 = 1_000
    private static let millisecond: UInt64 = 1_000_000

    package init() {}

    /// There is a new connection, perhaps to another server.
    package mutating func forget() { self = ServerClock() }

    /// Takes what the server says.
    ///
    /// - Parameters:
    ///   - microseconds: its time since 1970.
    ///   - askedAt, answeredAt: when it was asked, and when the answer came.
    package mutating func read(microseconds: Int64, askedAt: UInt64, answeredAt: UInt64) {
        guard (0...(1 << 60)).contains(microseconds), answeredAt >= askedAt,
            answeredAt - askedAt <= ServerClock.uncertaintyMax
        else { return }
        let new = Reading(time: microseconds / 1000, askedAt: askedAt, answeredAt: answeredAt)
        if let expected = earliest(now: answeredAt) {
            let missing = expected - (new.time + Int64((answeredAt - askedAt) / ServerClock.millisecond))
            if missing > ServerClock.differenceMax { setBackBy += missing }
        }
        reading = new
    }

    /// The server's time is at least this. Nil: it is not known.
    package func earliest(now: UInt64) -> Int64? {
        reading.map { $0.time + Int64((now - min($0.answeredAt, now)) / ServerClock.millisecond) }
    }

    /// The server's time is at most this, or was so before it was set back.
    package func latest(now: UInt64) -> Int64? {
        reading.map { $0.time + Int64((now - min($0.askedAt, now)) / ServerClock.millisecond) + 1 + setBackBy }
    }

    /// By how many milliseconds another clock is certainly ahead of the server's; below zero: behind. Nil: the server's time is not known.
    package func difference(of time: Int64, now: UInt64) -> Int64? {
        guard let earliest = earliest(now: now), let latest = latest(now: now) else { return nil }
        if time > latest { return time - latest }
        return time < earliest ? time - earliest : 0
    }
}
