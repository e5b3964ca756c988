/// The other nodes of a fleet, as far as a node has heard of them: what each said last, and when that was.
///
/// The age of a report is measured here, by a clock that never goes back, from the moment in which it was new to this node. So clocks that differ do not matter, and
/// a report that is put back later does not make a node look alive. Times are nanoseconds of that clock.
package struct SeenNodes: Sendable {
    package struct Node: Equatable, Sendable {
        package let report: NodeReport
        /// When this report came.
        package let heardAt: UInt64
        /// How long it was without another one.
        package let ageSeconds: UInt64
        package let state: State
    }

    package enum State: String, CaseIterable, Sendable {
        /// The node said something lately.
        case here
        /// The node says nothing, although this node hears of the others: it has ended, or has no connection to the Redis.
        case silent
        /// This node has no connection to the Redis, and the node was not silent when the connection ended.
        case unknown
    }

    private struct Entry {
        var report: NodeReport
        var heardAt: UInt64
    }

    private var entries: [String: Entry] = [:]
    /// The last time span in which this node could hear of the others. It has no end if the node hears of them now.
    private var listening: (since: UInt64, until: UInt64?)?

    /// More are not remembered.
    package static let countMax = 256
    private static let second: UInt64 = 1_000_000_000
    /// A node that has said nothing for so long is silent.
    package static let silenceMax = 15 * second
    /// A node that has said nothing for so long is forgotten, if this node could hear it.
    package static let memory = 3600 * second

    package init() {}

    /// There is a connection. Nodes may need a moment to come back to it.
    package mutating func listens(now: UInt64) { listening = (now, nil) }
    /// There is no connection. What is known stays.
    package mutating func isDeaf(now: UInt64) {
        if let listening, listening.until == nil { self.listening = (listening.since, now) }
    }

    /// Takes what a node says.
    ///
    /// - Returns: whether it is news. A report that is older than the one that is known is none: somebody has put it back. One of another run is taken if
    ///   that run began later, or the present one is silent.
    @discardableResult
    package mutating func hear(_ report: NodeReport, now: UInt64) -> Bool {
        guard let known = entries[report.node] else {
            guard entries.count < SeenNodes.countMax || dropSilent(now) else { return false }
            entries[report.node] = Entry(report: report, heardAt: now)
            return true
        }
        let isNews =
            report.run == known.report.run
            ? report.number > known.report.number
            : report.startedAt >= known.report.startedAt || now &- known.heardAt > SeenNodes.silenceMax
        guard isNews else { return false }
        entries[report.node] = Entry(report: report, heardAt: now)
        return true
    }

    /// Makes room. Returns false if no node is silent.
    private mutating func dropSilent(_ now: UInt64) -> Bool {
        let oldest = entries.min { $0.value.heardAt < $1.value.heardAt }
        guard let oldest, state(of: oldest.value, now) == .silent else { return false }
        entries[oldest.key] = nil
        return true
    }

    /// Forgets nodes that were silent for long. Nobody is forgotten while this node hears nothing.
    package mutating func forget(now: UInt64) {
        guard let listening, listening.until == nil else { return }
        entries = entries.filter { now &- max($0.value.heardAt, listening.since) <= SeenNodes.memory }
    }

    package var names: Set<String> { Set(entries.keys) }

    /// In the order of their names.
    package func nodes(now: UInt64) -> [Node] {
        entries.values.sorted { $0.report.node < $1.report.node }.map { entry in
            Node(
                report: entry.report, heardAt: entry.heardAt, ageSeconds: (now &- entry.heardAt) / SeenNodes.second,
                state: state(of: entry, now))
        }
    }

    private func state(of entry: Entry, _ now: UInt64) -> State {
        guard let listening else { return .unknown }
        let isSilent = (listening.until ?? now) &- max(entry.heardAt, listening.since) > SeenNodes.silenceMax
        return isSilent ? .silent : listening.until == nil ? .here : .unknown
    }

    /// Whose reports to ask for: `countMax` of the names at most, those of nodes that are known at the front.
    ///
    /// Whoever can write to the Redis can make up names. The rest is drawn, so that no name can keep others out for good.
    package func choice(
        among all: some Sequence<String>, using generator: inout some RandomNumberGenerator
    ) -> [String] {
        let known = all.filter { entries[$0] != nil }
        let others = all.filter { entries[$0] == nil && (1...NodeReport.wordBytesMax).contains($0.utf8.count) }
        return Array((known + others.shuffled(using: &generator)).prefix(SeenNodes.countMax))
    }
}
