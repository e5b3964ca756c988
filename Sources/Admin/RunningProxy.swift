package import EventLoop
import Message
package import Server
import Storage
import Synchronization
import Transaction

/// Answers the admin server for a `Proxy`: adds up the counters of its workers, and works on its stores.
package final class RunningProxy: AdministeredProxy {
    private let proxy: Proxy
    private let version: String
    private let samples = Locked(BandwidthSamples())
    private let sampler = Locked<SamplerBox?>(nil)

    package init(proxy: Proxy, version: String) {
        self.proxy = proxy
        self.version = version
    }

    package var isDraining: Bool { proxy.isDraining }

    package var disksOff: [DiskOff] {
        proxy.storedZones.compactMap { name, tier in
            guard case .off(let reason) = tier.backStore?.health else { return nil }
            return DiskOff(zone: name, reason: reason)
        }
    }

    // MARK: numbers

    package func statistics() -> Statistics {
        let counters = proxy.counters
        func sum(_ counter: Counter) -> UInt64 { counters.reduce(0) { $0 &+ $1[counter] } }
        func gauge(_ gauge: Gauge) -> UInt64 { counters.reduce(0) { $0 &+ $1.gauges[gauge.rawValue] } }
        var result = Statistics()
        result.version = version
        result.startedAt = proxy.startedAt.secondsSinceEpoch
        result.uptimeSeconds = UInt64(clamping: wallClockSeconds() - proxy.startedAt.secondsSinceEpoch)
        result.isDraining = proxy.isDraining
        result.requests = OutcomeCounts([
            .hit: sum(.hits), .stale: sum(.staleHits), .revalidated: sum(.revalidated), .collapsed: sum(.collapsed),
            .miss: sum(.misses), .pass: sum(.passed), .refused: sum(.refused), .error: sum(.failed),
            .tunnel: sum(.tunnels) &+ sum(.upgrades),
        ])
        result.bytes.toClients = sum(.bytesToClients)
        result.bytes.fromCache = sum(.bytesFromCache)
        result.bytes.fromOrigins = sum(.bytesFromOrigins)
        result.bandwidth = samples.withLock { $0.bandwidth }
        result.clients.accepted = sum(.clientConnectionsAccepted)
        result.clients.open = sum(.clientConnectionsAccepted) &- sum(.clientConnectionsClosed)
        result.origins.opened = sum(.originConnectionsOpened)
        result.origins.reused = sum(.originConnectionsReused)
        result.origins.open = gauge(.originConnectionsOpen)
        result.origins.idle = gauge(.originConnectionsIdle)
        result.tunnels.opened = sum(.tunnels) &+ sum(.upgrades)
        result.tunnels.open = result.tunnels.opened &- sum(.tunnelsClosed)
        result.tunnels.bytesFromClients = sum(.bytesTunnelledFromClients)
        result.tunnels.bytesToClients = sum(.bytesTunnelledToClients)
        result.names.queries = gauge(.nameQueries)
        result.names.cached = gauge(.nameHits)
        result.names.failures = gauge(.nameFailures)
        result.zones = proxy.storedZones.map { name, tier in
            Statistics.ZoneRow(
                name: name, memory: .init(tier.memory.statistics), disk: tier.backStore.map { DiskUse($0) })
        }
        result.memory = result.zones.reduce(into: Statistics.MemoryUse()) { $0.add($1.memory) }
        result.store = RunningProxy.storeEvents.map { NamedCount($0.name, sum($0.counter)) }
        result.errors = errorCounts(counters)
        result.refusals = refusalCounts(counters)
        result.closes = closeCounts(counters)
        result.workers = counters.enumerated().map { number, counters in
            var row = Statistics.WorkerRow(number: number)
            row.requests = counters[.requests]
            row.clientsOpen = counters[.clientConnectionsAccepted] &- counters[.clientConnectionsClosed]
            row.originsOpen = counters.gauges[Gauge.originConnectionsOpen.rawValue]
            row.tunnelsOpen = counters[.tunnels] &+ counters[.upgrades] &- counters[.tunnelsClosed]
            return row
        }
        return result
    }

    private static let storeEvents: [(name: String, counter: Counter)] = [
        ("stored", .stored), ("parts-stored", .partsStored), ("parts-kept", .keptPartial), ("freshened", .freshened),
        ("invalidated", .invalidated), ("storing-refused", .storingRefused), ("storing-failed", .storingFailed),
        ("transfers-resumed", .resumed), ("collapse-timeouts", .collapseTimeouts),
    ]

    /// What origins did wrong, by the error types of RFC 9209.
    private func errorCounts(_ counters: [Counters]) -> [NamedCount] {
        var byType: [String: UInt64] = [:]
        for refusal in Refusal.allCases where refusal.isOfOrigin {
            byType["\(refusal.proxyStatusError)", default: 0] &+= counters.reduce(0) {
                $0 &+ $1.refusals[Int(refusal.rawValue)]
            }
        }
        return byType.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map { NamedCount($0.key, $0.value) }
    }

    /// What clients were refused, by reason.
    private func refusalCounts(_ counters: [Counters]) -> [NamedCount] {
        Refusal.allCases.filter { !$0.isOfOrigin }
            .map { refusal in
                NamedCount(refusal.name, counters.reduce(0) { $0 &+ $1.refusals[Int(refusal.rawValue)] })
            }
            .filter { $0.count > 0 } + violationCounts(counters)
    }

    /// Why connections of clients closed.
    private func closeCounts(_ counters: [Counters]) -> [NamedCount] {
        CloseReason.allCases
            .map { reason in
                NamedCount(reason.name, counters.reduce(0) { $0 &+ $1.closes[Int(reason.rawValue)] })
            }
            .filter { $0.count > 0 }
    }

    private func violationCounts(_ counters: [Counters]) -> [NamedCount] {
        Counters.violationNames.enumerated()
            .map { index, name in NamedCount(name, counters.reduce(0) { $0 &+ $1.violations[index] }) }
            .filter { $0.count > 0 }
    }

    // MARK: the store

    package func purge(_ request: PurgeRequest) -> PurgeResult {
        let snapshot = proxy.snapshot
        let matcher = SelectionMatcher(
            request.selection, now: WallTime(secondsSinceEpoch: wallClockSeconds()),
            key: { snapshot.keyBytes(toGet: $0) })
        var sum = PurgeResult(records: 0, bytes: 0)
        for (name, tier) in proxy.storedZones where matcher.mayBe(inZone: name) {
            let result = Admin.purge(request, matcher, in: tier, key: { proxy.shared.key(of: $0) })
            sum.records += result.records
            sum.bytes += result.bytes
            sum.isDurable = sum.isDurable && result.isDurable
        }
        return sum
    }

    package func objects(_ selection: Selection) -> @Sendable () -> [ObjectDescription]? {
        let now = WallTime(secondsSinceEpoch: wallClockSeconds())
        let listing = ObjectListing(
            selection, zones: proxy.storedZones, now: now,
            key: { [snapshot = proxy.snapshot] in snapshot.keyBytes(toGet: $0) },
            hash: { [shared = proxy.shared] in shared.key(of: $0) })
        return { listing.nextPage() }
    }

    package func explain(_ question: ExplainQuestion) throws(ExplainError) -> Explanation {
        try proxy.explain(question)
    }

    package func transfers() -> [TransferDescription] {
        proxy.fetches().map { fetch in
            let (seconds, attoseconds) = fetch.age.components
            return TransferDescription(
                url: String(decoding: fetch.uri, as: UTF8.self),
                ageMilliseconds: UInt64(clamping: seconds * 1000 + attoseconds / 1_000_000_000_000_000),
                receivedBytes: fetch.received, expectedBytes: fetch.expected, readers: fetch.readers,
                isStored: fetch.isStored)
        }
    }

    // MARK: bandwidth

    /// Samples the byte counters once a second on the control thread's loop.
    package func startSampling(on loop: EventLoop) {
        let box = SamplerBox(loop: loop) { [unowned self] in sample() }
        sampler.withLock { $0 = box }
        box.start()
    }

    package func stopSampling() {
        let box = sampler.withLock { box in
            defer { box = nil }
            return box
        }
        box?.stop()
    }

    private func sample() {
        let counters = proxy.counters
        let toClients = counters.reduce(0) { $0 &+ $1[.bytesToClients] }
        let fromOrigins = counters.reduce(0) { $0 &+ $1[.bytesFromOrigins] }
        samples.withLock { $0.add(toClients: toClients, fromOrigins: fromOrigins) }
    }
}

/// Six readings of the byte counters, a second apart: the span of five seconds.
struct BandwidthSamples {
    private var readings: [(toClients: UInt64, fromOrigins: UInt64)] = []
    static let seconds = 5

    mutating func add(toClients: UInt64, fromOrigins: UInt64) {
        readings.append((toClients, fromOrigins))
        if readings.count > BandwidthSamples.seconds + 1 { readings.removeFirst() }
    }

    var bandwidth: Statistics.Bandwidth {
        var result = Statistics.Bandwidth()
        guard readings.count > 1, let first = readings.first, let last = readings.last else { return result }
        let span = UInt64(readings.count - 1)
        result.toClients = (last.toClients &- first.toClients) / span
        result.fromOrigins = (last.fromOrigins &- first.fromOrigins) / span
        return result
    }
}

/// A timer that goes off each second; made, fired and ended on the control thread alone.
private final class SamplerBox: @unchecked Sendable {
    private let loop: EventLoop
    private let action: () -> Void
    private var timer: Timer?

    init(loop: EventLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    func start() {
        let timer = Timer { [unowned self] in
            action()
            if let timer = self.timer { loop.timers.schedule(timer, after: .seconds(1)) }
        }
        self.timer = timer
        action()
        loop.timers.schedule(timer, after: .seconds(1))
    }

    func stop() {
        if let timer { loop.timers.cancel(timer) }
        timer = nil
    }
}

extension Statistics.MemoryUse {
    init(_ tier: MemoryTierStatistics) {
        budget = UInt64(clamping: tier.budgetBytes)
        used = UInt64(clamping: tier.usedBytes)
        records = UInt64(clamping: tier.recordCount)
        evictions = UInt64(clamping: tier.evictions)
    }

    mutating func add(_ other: Statistics.MemoryUse) {
        budget &+= other.budget
        used &+= other.used
        records &+= other.records
        evictions &+= other.evictions
    }
}
