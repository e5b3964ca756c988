/// Answers of name servers until they expire, in two generations of bounded size.
///
/// When the young generation is full it becomes the old one, and the old one is dropped. A name that is looked up moves to the young
/// one. So names in use stay, and nothing has to be searched for eviction.
struct ResolverCache {
    typealias Outcome = Result<Resolver.Resolution, ResolverError>
    private struct Entry {
        var outcome: Outcome
        var expires: MonotonicTime
    }
    private var young: [String: Entry] = [:]
    private var old: [String: Entry] = [:]
    private let generationMax: Int

    init(entriesMax: Int) { generationMax = max(1, entriesMax / 2) }

    var count: Int { young.count + old.count }

    mutating func outcome(for host: String, at now: MonotonicTime) -> Outcome? {
        if let entry = young[host] {
            if entry.expires > now { return entry.outcome }
            young[host] = nil
            return nil
        }
        guard let entry = old.removeValue(forKey: host), entry.expires > now else { return nil }
        insert(entry, for: host)
        return entry.outcome
    }

    mutating func store(_ outcome: Outcome, for host: String, expires: MonotonicTime) {
        old[host] = nil
        insert(Entry(outcome: outcome, expires: expires), for: host)
    }

    private mutating func insert(_ entry: Entry, for host: String) {
        if young.count >= generationMax {
            old = young
            young = [:]
        }
        young[host] = entry
    }
}
