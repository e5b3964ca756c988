/// A number that a node publishes of itself for the other nodes of its fleet (`NodeReport`). The name is the one in the report.
///
/// A new figure is a case here, a row in NodeFigures.swift (Admin) and its source in RunningProxy+Fleet.swift. Nodes of other releases pass over names that they
/// do not know. A name that was published never gets another meaning.
///
/// Counters count from the start of the process. The requests that count for the hit ratio are divided: each of them is one of `memoryHits`, `diskHits`,
/// `sharedHits`, `peerHits`, `joined`, `revalidated` and `fromOrigin`.
package enum NodeFigure: String, CaseIterable, Sendable {
    case uptimeSeconds = "uptime"
    /// 1 while the node hears of the purges of the others.
    case isFollowing = "following"
    /// 1 while the node stops, and lets its clients finish.
    case isDraining = "draining"
    /// 1 if another node has used this node's name within the last minute.
    case hasNamesake = "namesake"
    case staleMarks = "stale-marks"
    case requests
    case memoryHits = "memory-hits"
    case diskHits = "disk-hits"
    /// From the Redis.
    case sharedHits = "shared-hits"
    /// From another node, without the Redis.
    case peerHits = "peer-hits"
    case joined
    case revalidated
    case fromOrigin = "from-origin"
    case bytesServed = "bytes-served"
    case bytesSaved = "bytes-saved"
    case bytesShared = "bytes-shared"
    case bytesFromPeers = "bytes-from-peers"
    case bytesFromOrigins = "bytes-from-origins"
    case memoryResponses = "memory-responses"
    case memoryUsed = "memory-used"
    case memoryBudget = "memory-budget"
    case diskResponses = "disk-responses"
    case diskUsed = "disk-used"
    case diskBudget = "disk-budget"
    case purgesApplied = "purges-applied"
    /// In bytes per second, over the last five seconds.
    case bandwidthToClients = "bandwidth-to-clients"
    case bandwidthFromOrigins = "bandwidth-from-origins"

    /// Whether the sum over several nodes says something.
    package var isSummable: Bool {
        switch self {
        case .uptimeSeconds, .isFollowing, .isDraining, .hasNamesake: false
        default: true
        }
    }
}
