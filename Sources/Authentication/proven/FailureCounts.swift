package import Message

/// How often clients failed to prove who they are: by address and by name, for the whole process and every scheme.
///
/// Who fails is answered later each time; who fails too often has to wait, right or wrong. A name has a limit of its own, against guesses
/// from many addresses. It does not lock out an address from which the name proved right lately.
package struct FailureCounts: Sendable {
    package struct Bounds: Sendable, Equatable {
        /// How often an address may fail within `window`.
        package var perSourceMax = 10
        package var window: Duration = .seconds(10)
        /// How often a name may fail within `nameWindow`, from all addresses together.
        package var perNameMax = 50
        package var nameWindow: Duration = .seconds(60)
        /// How long an address from which a name proved right is not concerned by the limit of that name.
        package var trust: Duration = .seconds(86_400)
        /// The most addresses, the most names, and the most pairs of both that are remembered. The oldest are forgotten first.
        package var countMax = 16_384
        /// How long the answer to the second failure of an address is held back. Each further one waits twice as long, up to `delayMax`:
        /// who tries one password after the other still comes to the limit within the window.
        package var delay: Duration = .milliseconds(50)
        package var delayMax: Duration = .seconds(1)
        package init() {}
    }

    private struct Pair: Hashable, Sendable {
        let source: Source
        let name: String
    }

    private let bounds: Bounds
    private var sources: ExpiringTable<Source, Int>
    private var names: ExpiringTable<String, Int>
    private var trusted: ExpiringTable<Pair, Void>
    /// How often an address or a name began to have to wait. Who keeps an earlier answer asks again when it changes.
    package private(set) var waitsBegun = 0
    /// What all nodes of a fleet have counted. Nil: this process counts alone.
    private var fleet: FleetFailures?

    package init(_ bounds: Bounds = Bounds()) {
        self.bounds = bounds
        sources = ExpiringTable(lifetime: bounds.window, countMax: bounds.countMax)
        names = ExpiringTable(lifetime: bounds.nameWindow, countMax: bounds.countMax)
        trusted = ExpiringTable(lifetime: bounds.trust, countMax: bounds.countMax)
    }

    /// Counts with the other nodes of a fleet from now on.
    ///
    /// - Parameter hash: with a key that all nodes have.
    package mutating func share(_ hash: SipHash) { fleet = FleetFailures(hash, bounds) }

    /// How long a client has to wait because it failed too often, or because others did with its name. Nil: not at all.
    ///
    /// - Parameters:
    ///   - address: nil for clients of a Unix socket, who share one count.
    ///   - name: who the client says that it is. Nil: not known yet.
    package func wait(of address: IPAddress?, as name: String?, now: Duration) -> Duration? {
        let source = Source(address)
        if let (count, end) = sources.value(source, now: now), count >= bounds.perSourceMax { return end - now }
        if let (count, end) = fleet?.ofSource(address, now: now), count >= bounds.perSourceMax { return end - now }
        guard let name = name.map(FailureCounts.short), let end = endOfWait(as: name, now: now),
            trusted.value(Pair(source: source, name: name), now: now) == nil
        else { return nil }
        return end - now
    }

    private func endOfWait(as name: String, now: Duration) -> Duration? {
        if let (count, end) = names.value(name, now: now), count >= bounds.perNameMax { return end }
        if let (count, end) = fleet?.ofName(name, now: now), count >= bounds.perNameMax { return end }
        return nil
    }

    /// Counts a failure.
    ///
    /// - Returns: how long its answer is held back.
    @discardableResult
    package mutating func failed(_ address: IPAddress?, as name: String?, now: Duration) -> Duration {
        var failures = FailureCounts.count(Source(address), in: &sources, now: now)
        if failures == bounds.perSourceMax { waitsBegun += 1 }
        if let name, FailureCounts.count(FailureCounts.short(name), in: &names, now: now) == bounds.perNameMax {
            waitsBegun += 1
        }
        if let (count, begins) = fleet?.failed(address, as: name.map(FailureCounts.short), now: now) {
            failures = max(failures, count)
            if begins { waitsBegun += 1 }
        }
        return delay(after: failures)
    }

    // MARK: a fleet

    /// The failures that were counted here and that the other nodes have not been told of. Taken once.
    package mutating func takeUntold(_ countMax: Int) -> [SharedFailure] { fleet?.takeUntold(countMax) ?? [] }

    /// Counts failures that another node was told of.
    package mutating func count(_ told: SharedFailure, now: Duration) {
        if fleet?.count(told, now: now) == true { waitsBegun += 1 }
    }

    /// The client has proven its name from this address.
    package mutating func succeeded(_ address: IPAddress?, as name: String, now: Duration) {
        let pair = Pair(source: Source(address), name: FailureCounts.short(name))
        // Renewed rarely, so that a busy client does not fill the table's list.
        if let (_, expiry) = trusted.value(pair, now: now), expiry - now > bounds.trust / 2 { return }
        trusted.set(pair, (), now: now)
    }

    private func delay(after failures: Int) -> Duration {
        guard failures > 1 else { return .zero }
        let doublings = min(failures - 2, 20)
        return min(bounds.delay * (1 << doublings), bounds.delayMax)
    }

    static func count<Key>(
        _ key: Key, _ more: Int = 1, in table: inout ExpiringTable<Key, Int>, now: Duration
    ) -> Int {
        let known = table.value(key, now: now)?.value
        let count = min((known ?? 0) + more, 1_000_000)
        if known == nil { table.set(key, count, now: now) } else { table.update(key, count) }
        return count
    }

    /// Names come from anybody: what is remembered of one is bounded.
    private static func short(_ name: String) -> String {
        name.utf8.count <= 128 ? name : String(decoding: name.utf8.prefix(128), as: UTF8.self)
    }

    /// A client in an IPv6 network has at least a /64, so all addresses of a /64 count as one client.
    struct Source: Hashable, Sendable {
        let address: IPAddress?

        init(_ address: IPAddress?) {
            guard let address, !address.isV4 else {
                self.address = address
                return
            }
            self.address = IPAddress(v6: address.v6.high, low: 0)
        }
    }
}

/// What all workers know together of attempts to authenticate.
package struct Attempts: Sendable {
    package var failures: FailureCounts
    /// Of Digest.
    package var nonces: NonceCounts
    /// Of Basic.
    package var directory = DirectoryMemory()

    package init(_ failures: FailureCounts = FailureCounts(), nonces: NonceCounts = NonceCounts()) {
        self.failures = failures
        self.nonces = nonces
    }
}

/// Where `Attempts` are kept. The core has no locks.
package protocol SharedAttempts: Sendable {
    func withAttempts<Result>(_ body: (inout Attempts) -> Result) -> Result
}
