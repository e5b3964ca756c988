import Fleet
import JSON
import Message
import Server
import Storage

// A node of a fleet: purges that come from others.
extension RunningProxy {
    /// Begins to share with the other nodes, and to follow their purges. Does nothing if this Larder is alone.
    package func joinFleet() throws {
        try proxy.joinFleet(
            FleetEffects(
                version: version,
                // The thread for purges may still be at work when the proxy has stopped.
                apply: { [self] entry in purgeHere(request(of: entry)).isDurable },
                markEverythingStale: { [self] in purgeHere(RunningProxy.everythingStale).isDurable },
                matcher: { [self] entry in matcher(of: entry) }))
    }

    private static let everythingStale = PurgeRequest(Selection(), kind: .soft)

    /// A purge of another node. One that cannot be read marks everything as stale: it may concern anything.
    private func request(of entry: PurgeEntry) -> PurgeRequest {
        guard var request = readable(entry) else { return RunningProxy.everythingStale }
        if let age = request.selection.olderThan { request.selection.olderThan = age + sinceIssued(entry) }
        return request
    }

    private func readable(_ entry: PurgeEntry) -> PurgeRequest? {
        try? purgeRequest(body: entry.purge, contentType: "application/json")
    }

    private func sinceIssued(_ entry: PurgeEntry) -> Seconds {
        max(Seconds(now.secondsSinceEpoch - entry.issuedAt), .zero)
    }

    private func matcher(of entry: PurgeEntry) -> PurgeMatcher? {
        guard let request = readable(entry) else { return nil }
        let snapshot = proxy.snapshot
        let matcher = SelectionMatcher(
            request.selection, now: WallTime(secondsSinceEpoch: entry.issuedAt), keys: { snapshot.keys(toGet: $0) })
        return { zone, response in
            matcher.mayBe(inZone: zone) && matcher.matches(response)
                && (matcher.tag.map { response.attributes.tags.contains($0) } ?? true)
        }
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
            if let storage = selection.storage { $0.member("storage", "\(storage)") }
            if let age = selection.olderThan { $0.member("older_than", UInt64(clamping: age.count)) }
            $0.member("soft", kind == .soft)
        }
        return writer.bytes
    }
}
