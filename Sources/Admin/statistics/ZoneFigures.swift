package import Accounts
package import LimitTables
import Server
import Storage

/// Of the memory tier of a zone, and of all zones together.
package let memoryFigures: [Figure<Statistics.MemoryUse>] = [
    Figure(
        "budget", .gauge("budget_bytes"), unit: .bytes, help: "Bytes that the memory tier may take.", count: \.budget),
    Figure("used", .gauge("used_bytes"), unit: .bytes, help: "Bytes that the memory tier takes.", count: \.used),
    Figure("records", .gauge("records"), label: "responses", help: "Responses in the memory tier.", count: \.records),
    Figure(
        "evictions", .counter("evictions"), label: "evicted", help: "Responses evicted from the memory tier for space.",
        count: \.evictions),
]

/// Of the disk tier of a zone.
package let diskFigures: [Figure<DiskUse>] = [
    Figure(
        "state", .gauge("up"), unit: .text,
        help: "`on`, or `off` after a write that failed, until writing works again; 1 or 0 in `/metrics`.",
        value: { .isOn($0.offReason == nil) }),
    Figure(
        "reason", nil, unit: .text, help: "Why the disk tier is off; absent while it is on.",
        value: { .text($0.offReason) }),
    Figure(
        "loaded", .gauge("loaded"), unit: .flag, help: "Whether the index of the disk tier has been read.",
        value: { .flag($0.isLoaded) }),
    Figure(
        "size_bytes", .gauge("size_bytes"), unit: .bytes, help: "Bytes that all files of the disk tier may take.",
        number: \.sizeBytes),
    Figure(
        "used_bytes", .gauge("used_bytes"), unit: .bytes, help: "Bytes that all files of the disk tier take.",
        number: \.usedBytes),
    Figure(
        "live_bytes", .gauge("live_bytes"), unit: .bytes, shown: .detail,
        help: "Bytes of the stored responses. The rest of `used_bytes` is reclaimed when space is needed.",
        number: \.liveBytes),
    Figure(
        "pinned_limit_bytes", .gauge("pinned_limit_bytes"), unit: .bytes, label: "pinned, at most",
        help: "Bytes that pinned responses may take.", number: \.pinnedLimitBytes),
    Figure(
        "pinned_bytes", .gauge("pinned_bytes"), unit: .bytes, help: "Bytes that pinned responses take.",
        number: \.pinnedBytes),
    Figure(
        "objects", .gauge("objects"), label: "responses", help: "Responses on the disk.",
        number: { UInt64(clamping: $0.objectCount) }),
    Figure(
        "large_objects", .gauge("large_objects"), label: "large responses", shown: .detail,
        help: "Responses on the disk that have a file of their own.", number: { UInt64(clamping: $0.largeCount) }),
    Figure(
        "segments", .gauge("segments"), shown: .detail, help: "Files that many responses share.",
        number: { UInt64(clamping: $0.segmentCount) }),
    Figure(
        "book_bytes", .gauge("book_bytes"), unit: .bytes, label: "index", shown: .detail,
        help: "Bytes of the files of the index.",
        number: \.bookBytes),
    Figure(
        "waiting_bytes", .gauge("waiting_bytes"), unit: .bytes, label: "waiting", shown: .detail,
        help: "Bytes that wait to be written.", number: { UInt64(clamping: $0.waitingBytes) }),
    Figure(
        "stored_objects", .counter("stored_objects"), label: "written", shown: .detail, help: "Responses written.",
        number: \.storedObjects),
    Figure(
        "stored_bytes", .counter("stored_bytes"), unit: .bytes, label: "bytes written",
        help: "Bytes of the responses written.",
        number: \.storedBytes),
    Figure(
        "refused_busy", .counter("refused_busy"), label: "not written, busy", shown: .trouble,
        help: "Responses that were not written because too many bytes waited already.", number: \.refusedBusy),
    Figure(
        "refused_pinned", .counter("refused_pinned"), label: "not pinned, full", shown: .trouble,
        help: "Responses that were not pinned because pinned responses took all they may.", number: \.refusedPinned),
    Figure(
        "dropped_objects", .counter("dropped_objects"), label: "not written, error", shown: .trouble,
        help: "Responses that were accepted and could not be written: there was no room, or an error.",
        number: \.droppedObjects),
    Figure(
        "evicted_objects", .counter("evicted_objects"), label: "evicted", help: "Responses evicted for space.",
        number: \.evictedObjects),
    Figure(
        "evicted_bytes", .counter("evicted_bytes"), unit: .bytes, label: "bytes evicted", shown: .detail,
        help: "Bytes of the responses evicted for space.",
        number: \.evictedBytes),
    Figure(
        "moved_bytes", .counter("moved_bytes"), unit: .bytes, label: "bytes moved", shown: .detail,
        help: "Bytes copied to another file to free space: the cost of reclaiming.",
        number: \.movedBytes),
    Figure(
        "damaged_objects", .counter("damaged_objects"), label: "damaged", shown: .trouble,
        help: "Responses removed because they were damaged.", number: \.damagedObjects),
    Figure("read_errors", .counter("read_errors"), shown: .trouble, help: "Reads that failed.", number: \.readErrors),
    Figure(
        "write_errors", .counter("write_errors"), shown: .trouble, help: "Writes that failed.", number: \.writeErrors),
    Figure("commits", .counter("commits"), shown: .detail, help: "Transactions of the index.", number: \.commits),
]

/// Of each recipe, beside its `name`.
package let ecosystemFigures: [Figure<EcosystemCounts>] = [
    Figure(
        "requests", .counter("requests"), help: "Requests to hosts of the recipe that the store or an origin answered.",
        count: \.requests),
    Figure(
        "from_cache", .counter("from_cache"), label: "from the cache",
        help: "Those that the store answered, or a fetch that another request had started.", count: \.fromCache),
    Figure("bytes", .counter("bytes"), unit: .bytes, label: "sent", help: "Bytes of bodies sent.", count: \.bytes),
    Figure(
        "bytes_saved", .counter("saved_bytes"), unit: .bytes, label: "saved",
        help: "Those that came from the store, or from a fetch that another request had started.",
        count: \.bytesSaved),
]

/// Of each rule of `limits.rules`, beside its `name`.
package let limitRuleFigures: [Figure<LimitRuleUse>] = [
    Figure(
        "refused_requests", .counter("refused_requests"), label: "too many requests", shown: .trouble,
        help: "Requests beyond `requests`, the rate of the rule.", count: \.refusedRequests),
    Figure(
        "refused_concurrent", .counter("refused_concurrent"), label: "too many under way", shown: .trouble,
        help: "Requests beyond `concurrent`.", count: \.refusedConcurrent),
    Figure(
        "refused_budget", .counter("refused_budget"), label: "budget spent", shown: .trouble,
        help: "Requests whose `budget` was spent.", count: \.refusedBudget),
    Figure(
        "refused_size", .counter("refused_size"), label: "too long", shown: .trouble,
        help:
            "Requests that were longer than `request_body` or `request_size`, or whose answer was longer than `response_body`.",
        count: \.refusedSize),
    Figure(
        "refused_connections", .counter("refused_connections"), label: "too many connections", shown: .trouble,
        help: "Connections beyond `connections`.", count: \.refusedConnections),
    Figure(
        "delayed", .counter("delayed"), shown: .trouble,
        help: "Answers and tunnels that had to wait for `bandwidth`, each counted once.", count: \.delayed),
    Figure(
        "bytes", .counter("bytes"), unit: .bytes,
        help: "Bytes of bodies and of tunnels that have ended, towards clients.", count: \.bytes),
    Figure(
        "under_way", .gauge("under_way"),
        help: "Requests and tunnels under way. Counted where the rule has `concurrent`.", count: \.underWay),
    Figure(
        "connections", .gauge("connections"),
        help: "Connections that are open. Counted where the rule has `connections`.",
        count: \.connections),
    Figure("buckets", .gauge("buckets"), help: "Buckets in use: clients, users or groups.", count: \.buckets),
]

/// Of each PAC file, beside its `path`.
package let pacFileFigures: [Figure<Statistics.PACFile>] = [
    Figure("waiting", .gauge("waiting"), help: "Requests that wait for an answer now.", count: \.waiting),
    Figure("questions", .counter("questions"), help: "Questions that the script was asked.", count: \.questions),
    Figure(
        "hits", .counter("hits"), label: "answers remembered",
        help: "Requests for which an earlier answer was used.", count: \.hits),
    Figure(
        "failures", .counter("failures"),
        help: "Questions without an answer that can be used, time-outs included.", count: \.failures),
    Figure(
        "timeouts", .counter("timeouts"), label: "time-outs",
        help: "Questions that the script did not answer within `pac.timeout`.", count: \.timeouts),
    Figure(
        "restarts", .counter("restarts"),
        help: "Processes that were started in place of one that had ended, or was ended.", count: \.restarts),
    Figure(
        "fetch_failing", .gauge("fetch_failing"), unit: .flag,
        help: "Whether the last attempt to fetch the script from its URL failed.",
        value: { .flag($0.fetchFailure != nil) }),
]

/// Of each worker, beside its `number`.
package let workerFigures: [Figure<Counts>] = [
    Figure("requests", .counter("requests"), help: "Requests received.", count: { $0[.requests] }),
    Figure("clients_open", nil, label: "clients", help: "Open connections of clients.", count: \.clientsOpen),
    Figure(
        "origins_open", nil, label: "origins", help: "Open connections to origins.",
        count: { $0[.originConnectionsOpen] }),
    Figure("tunnels_open", nil, label: "tunnels", help: "Open tunnels.", count: \.tunnelsOpen),
]

extension Figure where Subject == DiskUse {
    fileprivate init(
        _ name: String, _ metric: Metric, unit: FigureUnit = .count, label: String? = nil,
        shown prominence: FigureProminence = .overview, help: String,
        number: @escaping @Sendable (BackStoreStatistics) -> UInt64
    ) {
        self.init(
            // "size_bytes" is read as "size": the unit stands behind the number.
            name, metric, unit: unit, label: label ?? (unit == .bytes ? String(name.dropLast(6)) : nil),
            shown: prominence, help: help, count: { number($0.statistics) })
    }
}
