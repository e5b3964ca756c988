import Accounts
import EventLoop
import Fleet
import JSON
import Message
import Server
import Storage

// A node of a fleet: purges that come from others.
extension RunningProxy {
    /// Begins to share with the other nodes, and to follow their purges. Does nothing if this Larder is alone.
    package func joinFleet() throws {
        var effects = FleetEffects(
            version: version,
            // The thread for purges may still be at work when the proxy has stopped.
            apply: { [self] entry, issued in
                if let invalidated = InvalidatedKeys(purge: entry.purge) { return invalidateHere(invalidated.keys) }
                return purgeHere(request(of: entry, issued)).isDurable
            },
            markEverythingStale: { [self] zone in
                var doubted = RunningProxy.everythingDoubted
                doubted.selection.zone = zone
                return purgeHere(doubted).isDurable
            },
            matcher: { [self] entry, issued in matcher(of: entry, issued) })
        effects.startedAt = proxy.startedAt.secondsSinceEpoch
        effects.figures = { [self] in nodeFigures() }
        try proxy.joinFleet(effects)
    }

    private static let everythingDoubted = PurgeRequest(Selection(), kind: .doubt)

    /// A purge of another node. One that cannot be read puts everything in doubt: it may concern anything. So does `PurgeEntry.missed`.
    private func request(of entry: PurgeEntry, _ issued: WallTime) -> PurgeRequest {
        guard var request = readable(entry) else { return RunningProxy.everythingDoubted }
        if let age = request.selection.olderThan {
            request.selection.olderThan = age + max(now.wallTime - issued, .zero)
        }
        return request
    }

    /// Removes what an unsafe request to another node has invalidated.
    ///
    /// - Returns: whether no disk can forget it in a crash.
    private func invalidateHere(_ keys: [[UInt8]]) -> Bool {
        var isDurable = true
        let snapshot = proxy.snapshot
        let isDone: Void? = proxy.shared.zones.whileOpen { zones in
            for key in keys { proxy.shared.invalidateSeparate(under: key, snapshot, zones) }
            for zone in zones {
                let count = keys.reduce(0) { $0 + zone.tier.invalidate(proxy.shared.key(of: $1), $1) }
                guard let backStore = zone.tier.backStore, count > 0 || !backStore.isLoaded else { continue }
                isDurable = backStore.waitUntilLoaded() && backStore.flush() && isDurable
            }
        }
        return isDone != nil && isDurable
    }

    private func readable(_ entry: PurgeEntry) -> PurgeRequest? {
        entry.purge == PurgeEntry.missed ? nil : try? purgeRequest(body: entry.purge, contentType: "application/json")
    }

    private func matcher(of entry: PurgeEntry, _ issued: WallTime) -> PurgeMatcher? {
        guard let request = readable(entry) else { return nil }
        let snapshot = proxy.snapshot
        let matcher = SelectionMatcher(
            request.selection, now: issued, keys: { snapshot.keys(toGet: $0) })
        return { zone, response in
            matcher.mayBe(inZone: zone) && matcher.matches(response)
                && (matcher.tag.map { response.attributes.tags.contains($0) } ?? true)
        }
    }
}

// What the nodes of a fleet say of themselves.
extension RunningProxy {
    /// What this node publishes of itself. May be called on every thread.
    func nodeFigures() -> [NodeFigure: UInt64] {
        var counts = Counts()
        for worker in proxy.counters { counts.add(Counts(worker)) }
        let fleet = proxy.shared.fleet?.statistics
        let answered = RequestOutcome.allCases.filter(\.countsForHitRatio).reduce(0) { $0 &+ counts[$1] }
        // What another node had is a miss here.
        let forwarded = counts[RequestOutcome.miss] &+ counts[RequestOutcome.passed]
        let peers = proxy.shared.fleet?.peerStatistics
        let peerHits = min(peers?.hits ?? 0, forwarded)
        let elsewhere = counts[.hitsFromDisk] &+ counts[.hitsShared]
        var figures: [NodeFigure: UInt64] = [
            .uptimeSeconds: UInt64(clamping: proxy.uptime.components.seconds),
            .isDraining: proxy.isDraining ? 1 : 0,
            .staleMarks: fleet?.staleMarks.values.reduce(0, +) ?? 0,
            .requests: answered,
            // The counters are read while requests are answered, one after the other.
            .memoryHits: (counts[.hits] &+ counts[.staleHits]) - min(elsewhere, counts[.hits] &+ counts[.staleHits]),
            .diskHits: counts[.hitsFromDisk],
            .sharedHits: counts[.hitsShared],
            .peerHits: peerHits,
            .joined: counts[RequestOutcome.collapsed],
            .revalidated: counts[RequestOutcome.revalidated],
            .fromOrigin: forwarded - peerHits,
            .bytesServed: counts[.bytesToClients],
            .bytesSaved: counts.bytesSaved,
            .bytesShared: fleet?.bytesRead ?? 0,
            .bytesFromPeers: peers?.bytes ?? 0,
            .bytesFromOrigins: counts[.bytesFromOrigins] - min(peers?.bytes ?? 0, counts[.bytesFromOrigins]),
            .purgesApplied: fleet?.purgesApplied ?? 0,
        ]
        let bandwidth = samples.withLock { $0.bandwidth }
        (figures[.bandwidthToClients], figures[.bandwidthFromOrigins]) = (bandwidth.toClients, bandwidth.fromOrigins)
        var (memory, disk) = (Statistics.MemoryUse(), (responses: UInt64(0), used: UInt64(0), budget: UInt64(0)))
        for (_, tier) in proxy.storedZones {
            memory.add(.init(tier.memory.statistics))
            guard let use = tier.backStore?.statistics else { continue }
            disk.responses &+= UInt64(clamping: use.objectCount)
            disk.used &+= UInt64(clamping: use.usedBytes)
            disk.budget &+= UInt64(clamping: use.sizeBytes)
        }
        (figures[.memoryResponses], figures[.memoryUsed], figures[.memoryBudget]) = (
            memory.records, memory.used, memory.budget
        )
        (figures[.diskResponses], figures[.diskUsed], figures[.diskBudget]) = (disk.responses, disk.used, disk.budget)
        return figures
    }

    package func fleetView() -> FleetView? {
        guard let fleet = proxy.shared.fleet?.statistics else { return nil }
        var members = fleet.seen.nodes(now: MonotonicTime.read().nanoseconds).map { FleetMember($0) }
        var figures = nodeFigures()
        figures[.isFollowing] = fleet.isFollowing ? 1 : 0
        figures[.hasNamesake] = fleet.hasNamesake ? 1 : 0
        let startedAt = proxy.startedAt.secondsSinceEpoch
        if let report = NodeReport(
            node: fleet.node, run: fleet.run, release: version, startedAt: startedAt,
            saidAt: wallClockSeconds() &* 1000, number: 0, figures: figures)
        {
            let state: FleetMember.State = fleet.awaySince == nil ? .of(report) : .alone
            members.append(FleetMember(report, state: state, isAsked: true))
        }
        return FleetView(
            node: fleet.node, server: fleet.server, awaySince: fleet.awaySince,
            failure: fleet.lastFailure ?? fleet.lastFeedFailure, unreadable: fleet.unreadable,
            members: members.sorted { $0.report.node < $1.report.node })
    }
}

extension PurgeRequest {
    /// The body of `POST /purge` that asks for this.
    package var json: [UInt8] {
        var writer = JSONWriter()
        writer.object {
            if selection.isEverything { $0.member("all", true) }
            if let url = selection.url { $0.member("url", url) }
            if let prefix = selection.prefix { $0.member("prefix", prefix) }
            if let host = selection.host { $0.member("host", host) }
            if let tag = selection.tag { $0.member("tag", tag) }
            if let type = selection.type { $0.member("type", type) }
            if let zone = selection.zone { $0.member("zone", zone) }
            if let storage = selection.storage { $0.member("storage", storage.rawValue) }
            if let age = selection.olderThan { $0.member("older_than", UInt64(clamping: age.count)) }
            $0.member("soft", kind == .soft)
        }
        return writer.bytes
    }
}
