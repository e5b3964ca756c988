package import Fleet
package import Message
package import Storage

/// What a node has done for its fleet since it was started, and how its connection is.
package struct FleetFigures: Sendable {
    package var node = ""
    package var server = ""
    /// Nil: there is no connection. Otherwise the version of the server, which is empty if the user may not ask for it.
    package var serverVersion: String?
    /// Why there is no connection, or the last one ended.
    package var lastFailure: String?
    /// Why the purges of others cannot be followed. Nil if they are.
    package var lastFeedFailure: String?
    package var connections: UInt64 = 0
    // Reads.
    package var hits: UInt64 = 0
    package var misses: UInt64 = 0
    /// Reads that took longer than 20 ms, and counted as misses.
    package var late: UInt64 = 0
    /// Reads that were not begun, because the server is not there or fails.
    package var unasked: UInt64 = 0
    package var bytesRead: UInt64 = 0
    /// Values that were refused, by the reason.
    package var refused: [String: UInt64] = [:]
    /// Records that a purge concerns which was issued after they were written.
    package var purged: UInt64 = 0
    // Writes.
    package var writes: UInt64 = 0
    package var bytesWritten: UInt64 = 0
    /// Writes that were dropped, because too many waited or the server was not there.
    package var writesDropped: UInt64 = 0
    /// Writes that the server refused, by the first word of its error.
    package var writesRefused: [String: UInt64] = [:]
    // Limits and log-ins.
    /// What this node told the others, and what it heard of them.
    package var newsSent: UInt64 = 0
    package var newsHeard: UInt64 = 0
    /// News and parts of budgets that were not used, because they are damaged, late, or of nobody in the fleet.
    package var newsRefused: UInt64 = 0
    /// Whether limits are held to this node's share, because the others are not heard of.
    package var countsAlone = false
    // Purges.
    package var purgesSent: UInt64 = 0
    package var purgesApplied: UInt64 = 0
    package var purgesSkipped: UInt64 = 0
    // What unsafe requests have invalidated, in cache keys.
    package var invalidationsSent: UInt64 = 0
    package var invalidationsApplied: UInt64 = 0
    /// Those that no other node was told of, because too many waited.
    package var invalidationsDropped: UInt64 = 0
    /// How often everything was marked as stale, by the reason.
    package var staleMarks: [String: UInt64] = [:]
    /// Purges of this node that wait for a connection.
    package var purgesWaiting = 0
    /// Whether the node hears of the purges of others.
    package var isFollowing = false
    /// The nodes that were seen within the last 15 seconds, this one included.
    package var nodes: [Node] = []
    /// The nodes of the last day, for purges.
    package var known = KnownNodes()
    // What the nodes say of themselves (FleetNode+Seeing.swift).
    package var seen = SeenNodes()
    /// The names in the register without a report that this node can read: nodes of an earlier release or with another secret, or made-up names.
    package var unreadable = 0
    /// Since when there is no connection, in seconds since 1970. Nil if there is one.
    package var awaySince: Int64?
    /// The name of this run of the node.
    package var run = ""
    /// Another node has used this node's name within the last minute.
    package var hasNamesake = false

    package struct Node: Sendable, Equatable {
        package var name: String
        package var version: String
        /// In seconds since 1970, by the clock of the node.
        package var seenAt: Int64
        /// Up to which entry of the stream it has applied purges.
        package var position: StreamID
        /// Tells runs of a node apart, and nodes that have the same name.
        package var run: String

        /// Nil for what no node of the fleet has written.
        init?(_ name: String, _ reading: RegisterEntry.Reading) {
            self.name = name
            switch reading {
            case .node(let entry):
                (seenAt, position, run, version) = (entry.seenAt, entry.position, entry.run, entry.release)
            case .unproven(let seenAt, let position, let run, let release):
                (self.seenAt, self.position, self.run, version) = (seenAt, position, run, release)
            case .otherSecret, .nonsense: return nil
            }
        }
    }
}

/// How far a purge has come.
package struct PurgeSpread: Sendable, Equatable {
    /// This node first, then all others that it has known within a day.
    package var nodes: [NodeStanding]
    /// The purge waits on this node, because Redis does not take it: why.
    package var waitsBecause: String?

    /// - Parameter node: the name of this node, which has applied the purge.
    package init(_ node: String, others: [NodeStanding], waitsBecause: String? = nil) {
        nodes = [NodeStanding(node, .applied)] + others
        self.waitsBecause = waitsBecause
    }

    /// The nodes that have applied it, this one included.
    package var applied: Int { nodes.count { $0.state == .applied } }
}

/// Names a purge that began on this node.
package struct PurgeTicket: Sendable {
    let number: UInt64
}

/// What the fleet does on this node, given by those who know the stores.
package struct FleetEffects: Sendable {
    /// Applies a purge to all zones. Blocks. Returns false if a disk may forget it in a crash. The time is that of the purge, by the clock of this node.
    package var apply: @Sendable (PurgeEntry, WallTime) -> Bool
    /// Marks everything as stale in a zone, or in all. Blocks. Returns false if a disk may forget it in a crash.
    package var markEverythingStale: @Sendable (_ zone: String?) -> Bool
    /// Whether a purge concerns a response. Nil: the purge cannot be read, and concerns everything.
    package var matcher: @Sendable (PurgeEntry, WallTime) -> PurgeMatcher?
    /// The release of this Larder, for the list of nodes.
    package var version: String
    /// What this node publishes of itself.
    package var figures: @Sendable () -> [NodeFigure: UInt64] = { [:] }
    /// When this Larder was started, in seconds since 1970.
    package var startedAt: Int64 = 0

    package init(
        version: String, apply: @escaping @Sendable (PurgeEntry, WallTime) -> Bool,
        markEverythingStale: @escaping @Sendable (_ zone: String?) -> Bool,
        matcher: @escaping @Sendable (PurgeEntry, WallTime) -> PurgeMatcher?
    ) {
        self.version = version
        self.apply = apply
        self.markEverythingStale = markEverythingStale
        self.matcher = matcher
    }
}

/// Whether a purge concerns a response of a zone.
package typealias PurgeMatcher = @Sendable (_ zone: String, _ response: ListedResponse) -> Bool
