/// Answers of name servers until they expire, and addresses for some time longer, in two generations of bounded size.
///
/// When the young generation is full it becomes the old one, and the old one is dropped. A name that is looked up moves to the young
/// one. So names in use stay, and nothing has to be searched for eviction.
struct ResolverCache {
    typealias Outcome = Result<Resolver.Resolution, ResolverError>
    private struct Entry {
        var outcome: Outcome
        /// From then on, a name server has to be asked.
        var expires: MonotonicTime
        /// Until then, the addresses replace those that no server tells (RFC 8767). Never earlier than `expires`.
        var staleUntil: MonotonicTime
    }
    private var young: [String: Entry] = [:]
    private var old: [String: Entry] = [:]
    private let generationMax: Int

    init(entriesMax: Int) { generationMax = max(1, entriesMax / 2) }

    var count: Int { young.count + old.count }

    /// The answer, if it has not expired.
    mutating func outcome(for host: String, at now: MonotonicTime) -> Outcome? {
        guard let entry = entry(for: host, at: now), entry.expires > now else { return nil }
        return entry.outcome
    }

    mutating func store(
        _ outcome: Outcome, for host: String, expires: MonotonicTime, staleFor: Duration = .zero
    ) {
        old[host] = nil
        insert(Entry(outcome: outcome, expires: expires, staleUntil: expires.advanced(by: staleFor)), for: host)
    }

    /// The addresses of the last answer, whether it has expired or not. Returns nil if there are none, or if they are too old to be used.
    mutating func lastAddresses(of host: String, at now: MonotonicTime) -> Resolver.Resolution? {
        guard let entry = entry(for: host, at: now), case .success(let resolution) = entry.outcome else { return nil }
        return resolution
    }

    /// Uses the last addresses for `pause` longer, marked as stale, but not beyond the time for which they may be stale. So their
    /// name is not asked for again meanwhile (RFC 8767 §5).
    mutating func reviveAddresses(
        of host: String, at now: MonotonicTime, for pause: Duration
    ) -> Resolver.Resolution? {
        guard var entry = entry(for: host, at: now), case .success(var resolution) = entry.outcome else { return nil }
        resolution.isStale = true
        resolution.expires = min(now.advanced(by: pause), entry.staleUntil)
        entry.outcome = .success(resolution)
        entry.expires = resolution.expires
        young[host] = entry
        return resolution
    }

    private mutating func entry(for host: String, at now: MonotonicTime) -> Entry? {
        if let entry = young[host] {
            if entry.staleUntil > now { return entry }
            young[host] = nil
            return nil
        }
        guard let entry = old.removeValue(forKey: host), entry.staleUntil > now else { return nil }
        insert(entry, for: host)
        return entry
    }

    private mutating func insert(_ entry: Entry, for host: String) {
        if young.count >= generationMax {
            old = young
            young = [:]
        }
        young[host] = entry
    }
}
