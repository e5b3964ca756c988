package import Fleet

/// A node of the fleet, as the node that is asked knows it.
package struct FleetMember: Sendable, Equatable {
    package enum State: String, CaseIterable, Sendable {
        case up
        /// It cannot hear of the purges of others.
        case notFollowing = "not-following"
        case draining
        /// It is the node that was asked, and has no connection to the Redis.
        case alone
        /// It says nothing any more.
        case silent
        /// The node that was asked cannot hear of it. Its figures are the last ones that are known.
        case unknown

        package var meaning: String {
            switch self {
            case .up: "It is connected to the Redis and follows the purges of the others."
            case .notFollowing:
                "It is connected to the Redis, but cannot follow the purges yet, so it reads nothing from there."
            case .draining: "It stops, and lets its clients finish."
            case .alone: "It is the node that was asked, and has no connection to the Redis."
            case .silent:
                "It has said nothing for 15 seconds: it has ended, or has no connection to the Redis. After an hour it is forgotten. It does not count for the sum."
            case .unknown:
                "The node that was asked has no connection to the Redis. These are the last figures that it knows."
            }
        }
    }

    package var report: NodeReport
    package var state: State
    /// The seconds since the report. 0 for the node that was asked.
    package var ageSeconds: UInt64
    package var isAsked: Bool

    package init(_ report: NodeReport, state: State, ageSeconds: UInt64 = 0, isAsked: Bool = false) {
        self.report = report
        self.state = state
        self.ageSeconds = ageSeconds
        self.isAsked = isAsked
    }

    init(_ node: SeenNodes.Node) {
        let state: State =
            switch node.state {
            case .here: .of(node.report)
            case .silent: .silent
            case .unknown: .unknown
            }
        self.init(node.report, state: state, ageSeconds: node.ageSeconds)
    }
}

extension FleetMember.State {
    /// As the node says itself.
    static func of(_ report: NodeReport) -> Self {
        if report[.isDraining] == 1 { return .draining }
        return report[.isFollowing] == 0 ? .notFollowing : .up
    }
}

/// The rows of a node. `value` is absent if the node is of a release that does not know the figure.
package struct NodeRow: Sendable {
    package let figure: NodeFigure
    /// The member in `/stats?fleet`.
    package var name: String { String(figure.rawValue.map { $0 == "-" ? "_" : $0 }) }
    package let metric: Metric
    package let unit: FigureUnit
    package let help: String

    init(_ figure: NodeFigure, _ metric: Metric, unit: FigureUnit = .count, _ help: String) {
        self.figure = figure
        self.metric = metric.prefixed("node_")
        self.unit = unit
        self.help = help
    }

    package static let all: [NodeRow] = NodeFigure.allCases.map { $0.row }
}

extension NodeFigure {
    fileprivate var row: NodeRow {
        switch self {
        case .uptimeSeconds:
            NodeRow(self, .gauge("uptime_seconds"), unit: .seconds, "Seconds since the process started.")
        case .isFollowing:
            NodeRow(self, .gauge("following"), unit: .flag, "Whether the node hears of the purges of the others.")
        case .isDraining:
            NodeRow(self, .gauge("draining"), unit: .flag, "Whether the node stops, and lets its clients finish.")
        case .hasNamesake:
            NodeRow(
                self, .gauge("namesake"), unit: .flag, "Whether another node has used its name within the last minute.")
        case .staleMarks:
            NodeRow(
                self, .counter("stale_marks"),
                "How often everything stored was marked as stale, because purges may have been missed.")
        case .requests:
            NodeRow(
                self, .counter("requests"),
                "Requests that count for the hit ratio: those answered from a store or by an origin. Each of them is one of the seven kinds that follow."
            )
        case .memoryHits:
            NodeRow(
                self, .counter("memory_hits"),
                "Requests answered from the node's memory, stale responses from memory or disk included.")
        case .diskHits: NodeRow(self, .counter("disk_hits"), "Requests answered from the node's disk.")
        case .sharedHits: NodeRow(self, .counter("shared_hits"), "Requests answered with a response from the Redis.")
        case .peerHits: NodeRow(self, .counter("peer_hits"), "Requests answered with a response from another node.")
        case .joined:
            NodeRow(self, .counter("joined"), "Requests answered by a fetch that another request had started.")
        case .revalidated:
            NodeRow(
                self, .counter("revalidated"),
                "Requests answered from a store after the origin had confirmed it with 304.")
        case .fromOrigin: NodeRow(self, .counter("from_origin"), "Requests answered by an origin.")
        case .bytesServed:
            NodeRow(self, .counter("served_bytes"), unit: .bytes, "Bytes written to clients, without tunnels.")
        case .bytesSaved:
            NodeRow(
                self, .gauge("saved_bytes"), unit: .bytes, "Bytes that clients got and that no origin had to send.")
        case .bytesShared:
            NodeRow(self, .counter("shared_bytes"), unit: .bytes, "Bytes of bodies that came from the Redis.")
        case .bytesFromPeers:
            NodeRow(self, .counter("peer_bytes"), unit: .bytes, "Bytes of bodies that came from other nodes.")
        case .bytesFromOrigins:
            NodeRow(self, .counter("origin_bytes"), unit: .bytes, "Bytes read from origins, without tunnels.")
        case .memoryResponses: NodeRow(self, .gauge("memory_responses"), "Responses in memory.")
        case .memoryUsed: NodeRow(self, .gauge("memory_used_bytes"), unit: .bytes, "Bytes that the memory tier takes.")
        case .memoryBudget:
            NodeRow(self, .gauge("memory_budget_bytes"), unit: .bytes, "Bytes that the memory tier may take.")
        case .diskResponses: NodeRow(self, .gauge("disk_responses"), "Responses on the disks.")
        case .diskUsed: NodeRow(self, .gauge("disk_used_bytes"), unit: .bytes, "Bytes that the disk tiers take.")
        case .diskBudget:
            NodeRow(self, .gauge("disk_budget_bytes"), unit: .bytes, "Bytes that the disk tiers may take.")
        case .purgesApplied:
            NodeRow(self, .counter("purges_applied"), "Purges of the fleet that were applied on the node.")
        case .bandwidthToClients:
            NodeRow(
                self, .gauge("to_clients_bytes_per_second"), unit: .bytesPerSecond,
                "Bytes per second to clients, without tunnels, the mean of five seconds.")
        case .bandwidthFromOrigins:
            NodeRow(
                self, .gauge("from_origins_bytes_per_second"), unit: .bytesPerSecond,
                "Bytes per second from origins and from other nodes, without tunnels, the mean of five seconds.")
        }
    }
}
