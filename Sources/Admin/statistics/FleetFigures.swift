import Server

extension Statistics {
    /// What a node has done for its fleet since it was started.
    package struct Fleet: Sendable, Equatable {
        package var isConnected = false
        package var isFollowing = false
        package var nodeCount: UInt64 = 0
        package var hits: UInt64 = 0
        package var misses: UInt64 = 0
        package var late: UInt64 = 0
        package var unasked: UInt64 = 0
        package var bytesRead: UInt64 = 0
        package var refused: UInt64 = 0
        package var purged: UInt64 = 0
        package var writes: UInt64 = 0
        package var bytesWritten: UInt64 = 0
        package var writesDropped: UInt64 = 0
        package var writesRefused: UInt64 = 0
        package var newsSent: UInt64 = 0
        package var newsHeard: UInt64 = 0
        package var newsRefused: UInt64 = 0
        package var countsAlone = false
        package var purgesSent: UInt64 = 0
        package var purgesWaiting: UInt64 = 0
        package var purgesApplied: UInt64 = 0
        package var purgesSkipped: UInt64 = 0
        package var invalidationsSent: UInt64 = 0
        package var invalidationsApplied: UInt64 = 0
        package var invalidationsDropped: UInt64 = 0
        package var staleMarks: UInt64 = 0
        package var connections: UInt64 = 0
        package var node: String?
        package var server: String?
        package var serverVersion: String?
        package var failure: String?
        /// Those that were seen lately, this one included.
        package var nodes: [Node] = []

        package struct Node: Sendable, Equatable {
            package var name: String
            package var version: String
            /// Seconds since 1970, by the clock of the node.
            package var seenAt: Int64
            /// Up to which entry of the stream it has applied purges.
            package var position: String

            package init(name: String, version: String, seenAt: Int64, position: String) {
                self.name = name
                self.version = version
                self.seenAt = seenAt
                self.position = position
            }
        }

        package init() {}

        init(_ figures: FleetFigures) {
            isConnected = figures.serverVersion != nil
            isFollowing = figures.isFollowing
            nodeCount = UInt64(figures.nodes.count)
            hits = figures.hits
            misses = figures.misses
            late = figures.late
            unasked = figures.unasked
            bytesRead = figures.bytesRead
            refused = figures.refused.values.reduce(0, +)
            purged = figures.purged
            writes = figures.writes
            bytesWritten = figures.bytesWritten
            writesDropped = figures.writesDropped
            writesRefused = figures.writesRefused.values.reduce(0, +)
            newsSent = figures.newsSent
            newsHeard = figures.newsHeard
            newsRefused = figures.newsRefused
            countsAlone = figures.countsAlone
            purgesSent = figures.purgesSent
            purgesWaiting = UInt64(figures.purgesWaiting)
            purgesApplied = figures.purgesApplied
            purgesSkipped = figures.purgesSkipped
            invalidationsSent = figures.invalidationsSent
            invalidationsApplied = figures.invalidationsApplied
            invalidationsDropped = figures.invalidationsDropped
            staleMarks = figures.staleMarks.values.reduce(0, +)
            connections = figures.connections
            node = figures.node
            server = figures.server
            serverVersion = figures.serverVersion
            failure = figures.lastFailure ?? figures.lastFeedFailure
            nodes = figures.nodes.map { node in
                Node(
                    name: node.name, version: node.version, seenAt: node.seenAt,
                    position: String(decoding: node.position.text, as: UTF8.self))
            }
        }

        /// For `GET /stats`: `fleet_nodes`.
        func writeNodes(to json: inout JSONWriter) {
            json.array { json in
                for node in nodes {
                    json.object {
                        $0.member("name", node.name)
                        $0.member("version", node.version)
                        $0.member("seen_at", rfc3339(secondsSinceEpoch: node.seenAt))
                        $0.member("position", node.position)
                    }
                }
            }
        }
    }
}

/// The rows of `fleet`.
let fleetFigures: [Figure<Statistics.Fleet>] = [
    Figure(
        "connected", .gauge("connected"), unit: .flag, shown: .detail,
        help: "Whether there is a connection to the Redis of the fleet.", value: { .flag($0.isConnected) }),
    Figure(
        "following", .gauge("following"), unit: .flag, shown: .detail,
        help: "Whether this node hears of the purges of the others.", value: { .flag($0.isFollowing) }),
    Figure(
        "nodes", .gauge("nodes"), shown: .detail,
        help: "The nodes that said something within the last 15 seconds, this one included.", count: \.nodeCount),
    Figure(
        "hits", .counter("hits"), shown: .detail, help: "Look-ups for which the fleet had the response.",
        count: \.hits),
    Figure(
        "misses", .counter("misses"), shown: .detail, help: "Look-ups for which the fleet had no response.",
        count: \.misses),
    Figure(
        "late", .counter("late"), shown: .trouble,
        help: "Look-ups that were given up after 20 ms. They count as misses, too.", count: \.late),
    Figure(
        "unasked", .counter("unasked"), shown: .trouble,
        help:
            "Look-ups that were not begun, because the Redis is away, fails, or this node does not follow the purges yet.",
        count: \.unasked),
    Figure(
        "bytes_read", .counter("read_bytes"), unit: .bytes, shown: .detail,
        help: "Bytes of bodies that came from the fleet.", count: \.bytesRead),
    Figure(
        "refused", .counter("refused"), shown: .trouble,
        help: "Values that were not used, because they were damaged, or somebody without the secret wrote them.",
        count: \.refused),
    Figure(
        "purged", .counter("purged"), shown: .detail,
        help: "Responses of the fleet that were not used, because a purge came after they were written.",
        count: \.purged),
    Figure(
        "writes", .counter("writes"), shown: .detail, help: "Responses that this node has given to the fleet.",
        count: \.writes),
    Figure(
        "bytes_written", .counter("written_bytes"), unit: .bytes, shown: .detail,
        help: "Bytes of their bodies.", count: \.bytesWritten),
    Figure(
        "writes_dropped", .counter("writes_dropped"), shown: .trouble,
        help: "Responses that were not given, because too many waited or the Redis was away.", count: \.writesDropped),
    Figure(
        "writes_refused", .counter("writes_refused"), shown: .trouble,
        help: "Responses that the Redis did not take, such as with OOM and READONLY.", count: \.writesRefused),
    Figure(
        "news_sent", .counter("news_sent"), shown: .detail,
        help: "How often this node told the others of limits, budgets and log-ins.", count: \.newsSent),
    Figure(
        "news_heard", .counter("news_heard"), shown: .detail, help: "News of the others that were taken into account.",
        count: \.newsHeard),
    Figure(
        "news_refused", .counter("news_refused"), shown: .trouble,
        help:
            "News, and parts of budgets, that were not used, because they were damaged or more than a minute old, or somebody without the secret wrote them.",
        count: \.newsRefused),
    Figure(
        "limits_alone", .gauge("limits_alone"), unit: .flag, shown: .detail,
        help: "Whether limits and budgets are held to this node's share, because the others are not heard of.",
        value: { .flag($0.countsAlone) }),
    Figure(
        "purges_sent", .counter("purges_sent"), shown: .detail,
        help: "Purges of this node that the others were told of.",
        count: \.purgesSent),
    Figure(
        "purges_waiting", .gauge("purges_waiting"), shown: .trouble,
        help: "Purges of this node that the others cannot be told of now.", count: \.purgesWaiting),
    Figure(
        "purges_applied", .counter("purges_applied"), shown: .detail,
        help: "Purges of the fleet that were applied here, its own ones included.", count: \.purgesApplied),
    Figure(
        "purges_skipped", .counter("purges_skipped"), shown: .trouble,
        help:
            "Entries of the stream of purges that this node cannot use, because somebody without the secret wrote them, or another release.",
        count: \.purgesSkipped),
    Figure(
        "invalidations_sent", .counter("invalidations_sent"), shown: .detail,
        help: "URLs to which an unsafe request went through this node, and of which the others were told.",
        count: \.invalidationsSent),
    Figure(
        "invalidations_applied", .counter("invalidations_applied"), shown: .detail,
        help:
            "URLs to which an unsafe request went through another node, and of which nothing from before is here any more.",
        count: \.invalidationsApplied),
    Figure(
        "invalidations_dropped", .counter("invalidations_dropped"), shown: .trouble,
        help:
            "URLs to which an unsafe request went through this node, and of which the others were not told, because too many waited. What they have stored of them ages there.",
        count: \.invalidationsDropped),
    Figure(
        "stale_marks", .counter("stale_marks"), shown: .trouble,
        help: "How often everything stored was marked as stale, because purges may have been missed.",
        count: \.staleMarks),
    Figure(
        "connections", .counter("connections"), shown: .detail, help: "Connections to the Redis that were opened.",
        count: \.connections),
    Figure(
        "node", .text("info", label: "node"), unit: .text, shown: .detail, help: "The name of this node.",
        value: { .text($0.node) }),
    Figure(
        "server", unit: .text, shown: .detail, help: "The Redis, without its password.", value: { .text($0.server) }),
    Figure(
        "server_version", unit: .text, shown: .detail, help: "Its version. Absent without a connection.",
        value: { .text($0.serverVersion) }),
    Figure(
        "failure", unit: .text, shown: .detail,
        help: "Why there is no connection, or why purges cannot be followed. Absent if all is well.",
        value: { .text($0.failure) }),
]
