package import Message

/// What a limit of the rate holds for.
package enum BandwidthBound: Hashable, Sendable {
    case total
    case client(IPAddress)
    /// A class of `bandwidth.classes`, by its name.
    case named(String)
    /// A rule of `origins`, by its position, from 1.
    case origin(Int)
}

extension BandwidthBound: CustomStringConvertible {
    /// `total`, `client 192.0.2.1`, `class nightly`, `origins[2]`.
    package var description: String {
        switch self {
        case .total: "total"
        case .client(let address): "client \(address)"
        case .named(let name): "class \(name)"
        case .origin(let rule): "origins[\(rule)]"
        }
    }
}

/// One of the limits under which a flow of bytes is.
package struct BandwidthShare: Equatable, Sendable {
    package let bound: BandwidthBound
    /// In bytes per second.
    package let rate: UInt64

    package init(_ bound: BandwidthBound, rate: UInt64) {
        precondition(rate > 0, "a flow without a rate would never end")
        self.bound = bound
        self.rate = rate
    }
}

/// Who may move how many bytes, and when, for all flows that share limits.
///
/// A flow reserves a small quantity before it moves it. Each limit has a time at which its next byte is due; a reservation moves that time
/// on. So flows take turns in the order in which they ask, nobody looks for bytes that were never there, and the rate is exact over any
/// time that is long against a reservation. Who comes late, because a thread was busy, catches up on at most `credit`.
///
/// Times are those of a clock that never goes back, since any moment.
package struct BandwidthLedger: Sendable {
    package struct Grant: Equatable, Sendable {
        /// How many bytes may be moved.
        package let count: Int
        /// From when on.
        package let from: Duration
    }

    /// How a limit is used.
    package struct Usage: Equatable, Sendable {
        package let bound: BandwidthBound
        /// Flows that are under way.
        package let flows: Int
        /// Bytes per second, over the last five seconds.
        package let average: UInt64
    }

    private struct Account {
        /// When the next byte is due.
        var next: Duration
        var flows = 0
        var meter = RateMeter()
    }

    /// What a limit that was not used for a while may catch up on.
    static let credit: Duration = .milliseconds(100)
    /// All flows under a limit together take so long for one reservation each, so that none waits for longer than 100 ms.
    private static let roundsPerSecond: UInt64 = 20
    /// A reservation is at least so many bytes. Fewer would cost more than they smooth.
    private static let countMin: UInt64 = 256
    private static let countMax: UInt64 = 64 << 10

    private var accounts: [BandwidthBound: Account] = [:]
    /// How many accounts there may be before those without flows are removed.
    private var accountsMax = 64

    package init() {}

    package mutating func begin(_ shares: [BandwidthShare], now: Duration) {
        if accounts.count >= accountsMax {
            accounts = accounts.filter { $0.value.flows > 0 || $0.value.next > now }
            accountsMax = max(64, 2 * accounts.count)
        }
        for share in shares { accounts[share.bound, default: Account(next: now)].flows += 1 }
    }

    /// - Parameters:
    ///   - moved: bytes since the last reservation.
    ///   - unused: bytes that were reserved and not moved. Negative if more were moved than reserved.
    package mutating func end(_ shares: [BandwidthShare], moved: Int, unused: Int, now: Duration) {
        for share in shares {
            precondition(accounts[share.bound] != nil, "a flow ends once, and has begun before")
            accounts[share.bound]!.flows -= 1
            accounts[share.bound]!.meter.add(moved, now: now)
            accounts[share.bound]!.next -= time(of: unused, at: share.rate)
        }
    }

    /// Pays for the next bytes of a flow, under all its limits.
    ///
    /// - Parameters:
    ///   - moved: bytes since the last reservation.
    ///   - overdrawn: bytes that were moved without having been reserved.
    package mutating func reserve(_ shares: [BandwidthShare], moved: Int, overdrawn: Int, now: Duration) -> Grant {
        let count = shares.map { quantity(under: $0) }.min() ?? Int(BandwidthLedger.countMax)
        var from = now
        for share in shares {
            precondition(accounts[share.bound] != nil, "a flow begins before it reserves")
            let due = max(accounts[share.bound]!.next, now - BandwidthLedger.credit)
            // What is overdrawn is paid first, and the flow waits for that.
            let start = due + time(of: overdrawn, at: share.rate)
            accounts[share.bound]!.next = start + time(of: count, at: share.rate)
            accounts[share.bound]!.meter.add(moved, now: now)
            from = max(from, start)
        }
        return Grant(count: count, from: from)
    }

    /// The limits that are used now, or were in the last five seconds.
    package func usage(now: Duration) -> [Usage] {
        accounts.filter { $0.value.flows > 0 || $0.value.meter.isUsed(now: now) }.map {
            Usage(bound: $0.key, flows: $0.value.flows, average: $0.value.meter.average(now: now))
        }
    }

    /// For tests.
    package var accountCount: Int { accounts.count }

    private func quantity(under share: BandwidthShare) -> Int {
        let flows = UInt64(max(1, accounts[share.bound]?.flows ?? 1))
        // With very many flows each takes half a millisecond: a turn that costs more than it moves helps nobody.
        let fair = max(share.rate / BandwidthLedger.roundsPerSecond / flows, share.rate / 2000)
        return Int(min(max(fair, BandwidthLedger.countMin), BandwidthLedger.countMax))
    }

    private func time(of count: Int, at rate: UInt64) -> Duration { .seconds(Double(count) / Double(rate)) }
}

/// How many bytes were moved in each half second of the last five and a half.
private struct RateMeter: Sendable {
    private static let slotCount = 11
    private var counts = [UInt64](repeating: 0, count: slotCount)
    /// The half second, since the clock began, that is being counted.
    private var latest = 0

    mutating func add(_ count: Int, now: Duration) {
        guard count > 0 else { return }
        advance(to: now)
        counts[latest % RateMeter.slotCount] += UInt64(count)
    }

    /// Bytes per second, over the last five seconds that are complete.
    func average(now: Duration) -> UInt64 {
        var meter = self
        meter.advance(to: now)
        return (meter.counts.reduce(0, +) - meter.counts[meter.latest % RateMeter.slotCount]) / 5
    }

    /// Whether bytes were moved in the last five seconds.
    func isUsed(now: Duration) -> Bool {
        var meter = self
        meter.advance(to: now)
        return meter.counts.contains { $0 > 0 }
    }

    private mutating func advance(to now: Duration) {
        let present = Int(now.components.seconds * 2 + (now.components.attoseconds >= 500_000_000_000_000_000 ? 1 : 0))
        guard present > latest else { return }
        for slot in max(latest + 1, present - RateMeter.slotCount + 1)...present {
            counts[slot % RateMeter.slotCount] = 0
        }
        latest = present
    }
}
