package import Fleet

/// All nodes of a fleet, as one node knows them: `GET /stats?fleet`, `GET /metrics?fleet`, `larder stats --fleet` and the page `/fleet`.
package struct FleetView: Sendable, Equatable {
    /// The node that was asked.
    package var node: String
    /// The Redis, without its password.
    package var server: String
    /// Since when there is no connection to it, in seconds since 1970. Nil if there is one.
    package var awaySince: Int64?
    /// Why there is no connection, or why purges cannot be followed.
    package var failure: String?
    /// Nodes that are in the register without a report that this node can read.
    package var unreadable: Int
    /// By their names, the node that was asked among them.
    package var members: [FleetMember]

    package init(
        node: String, server: String, awaySince: Int64? = nil, failure: String? = nil, unreadable: Int = 0,
        members: [FleetMember]
    ) {
        self.node = node
        self.server = server
        self.awaySince = awaySince
        self.failure = failure
        self.unreadable = unreadable
        self.members = members
    }

    /// The sums over all nodes but those that are silent.
    package var sum: [NodeFigure: UInt64] {
        var sums: [NodeFigure: UInt64] = [:]
        for member in members where member.state != .silent {
            for (figure, count) in member.report.figures where figure.isSummable { sums[figure, default: 0] &+= count }
        }
        return sums
    }

    // MARK: /stats?fleet

    package func json() -> [UInt8] {
        var writer = JSONWriter()
        writer.object { json in
            json.member("node", node)
            json.member("server", server)
            json.member("connected", awaySince == nil)
            if let awaySince { json.member("away_since", rfc3339(secondsSinceEpoch: awaySince)) }
            if let failure { json.member("failure", failure) }
            json.member("unreadable", unreadable)
            json.key("nodes")
            json.array { for member in members { member.write(to: &$0) } }
            json.key("sum")
            json.object { $0.nodeFigures(sum) }
        }
        return writer.bytes
    }

    // MARK: /metrics?fleet

    package func prometheus() -> [UInt8] {
        var metrics = MetricsWriter()
        metrics.family(
            "larder_node_age_seconds", .gauge, "Seconds since the node's figures came to the node that was asked.",
            label: "node", members.map { (label: $0.report.node, value: $0.ageSeconds) })
        metrics.family(
            "larder_node_up", .gauge, "Whether the node says something, as far as the node that was asked can hear it.",
            label: "node",
            members.map { (label: $0.report.node, value: $0.state == .silent || $0.state == .unknown ? 0 : 1) })
        for row in NodeRow.all {
            metrics.family(
                row.metric.fullName, row.metric.kind, row.help, label: "node",
                members.compactMap { member in
                    member.report[row.figure].map { (label: member.report.node, value: $0) }
                })
        }
        return metrics.bytes
    }
}

extension FleetMember {
    fileprivate func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("name", report.node)
            json.member("release", report.release)
            json.member("started_at", rfc3339(secondsSinceEpoch: report.startedAt))
            json.member("state", state.rawValue)
            json.member("age_seconds", ageSeconds)
            json.member("asked", isAsked)
            json.nodeFigures(report.figures)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func nodeFigures(_ figures: [NodeFigure: UInt64]) {
        for row in NodeRow.all {
            guard let count = figures[row.figure] else { continue }
            if row.unit == .flag { member(row.name, count != 0) } else { member(row.name, count) }
        }
        if let requests = figures[.requests], let origin = figures[.fromOrigin] {
            member("hit_ratio", requests == 0 ? nil : Double(requests - min(origin, requests)) / Double(requests))
        }
    }
}
