/// A budget in one window that all nodes use, as one node knows it.
///
/// Each node has a part: the bytes that it has used itself, a number that only grows. A node writes its own part, reads those of the others and adds them
/// up, so an exchange can be repeated, come late or get lost, and nothing counts twice. What a node has seen once it remembers: where Redis has less,
/// because it was emptied, the node writes back what it knows, also of nodes that are gone.
///
/// A reset begins a new generation. The latest one counts, and parts of earlier ones count no more.
package struct SharedBudget: Sendable, Equatable {
    private let node: String
    /// When this run of the node began to use the budget, in milliseconds since 1970.
    private let beganAt: UInt64
    package private(set) var generation: UInt64 = 0
    /// Of the other nodes, in the present generation.
    private var parts: [String: UInt64] = [:]
    private var hasRead = false

    /// More are not remembered.
    package static let partsMax = 1_000

    /// - Parameters:
    ///   - node: the name of this node.
    ///   - beganAt: when this run of the node began to use the budget, in milliseconds since 1970.
    package init(node: String, beganAt: UInt64) {
        self.node = node
        self.beganAt = beganAt
    }

    /// What the other nodes have used, as far as it is known.
    package var usedByOthers: UInt64 { parts.values.reduce(0, SharedBudget.sum) }

    /// Whether nobody has used any of it, as far as it is known. If it is forgotten then, this node has no more of it without Redis than if it were not.
    ///
    /// - Parameter own: the part of this node.
    package func isUnused(own: UInt64) -> Bool { own == 0 && usedByOthers == 0 }

    /// What Redis says of the budget.
    package struct Reading: Equatable, Sendable {
        /// The generation of the last reset, of this budget or of all of its rule. Zero: there was none.
        package var resetAt: UInt64
        /// By the names of nodes.
        package var parts: [String: UsePart]

        package init(resetAt: UInt64 = 0, parts: [String: UsePart] = [:]) {
            self.resetAt = resetAt
            self.parts = parts
        }
    }

    /// What follows from a reading.
    package struct Outcome: Equatable, Sendable {
        /// The part of this node was these bytes too high, because of a reset that it had not heard of.
        package var forgets: UInt64 = 0
        /// The part of this node was these bytes too low: an earlier run had used them.
        package var carries: UInt64 = 0
        /// What Redis does not have.
        package var writes: [String: UsePart] = [:]
        /// Redis does not have the last reset.
        package var writesReset = false

        package init() {}
    }

    /// Takes what Redis says.
    ///
    /// - Parameters:
    ///   - own: the part of this node.
    ///   - restored: how much of it comes from a file that an earlier run has written.
    package mutating func merge(_ reading: Reading, own: UInt64, restored: UInt64) -> Outcome {
        var outcome = Outcome()
        let latest = reading.parts.values.reduce(reading.resetAt) { max($0, $1.generation) }
        let before = reading.parts[node]
        if latest > generation {
            // Before the first reading the generation of what was restored is not known: it is that of the part that the earlier run has written.
            let isOfLatest = !hasRead && before?.generation == latest
            // A reset from before this run concerns only what was restored.
            let isOfThisRun = hasRead || generation > 0 || latest >= beganAt
            if !isOfLatest { outcome.forgets = isOfThisRun ? own : min(own, restored) }
            generation = latest
            parts = [:]
        }
        for (name, part) in reading.parts where name != node && part.generation == generation && part.bytes > 0 {
            guard parts.count < SharedBudget.partsMax || parts[name] != nil else { continue }
            parts[name] = max(parts[name] ?? 0, part.bytes)
        }
        if !hasRead, let before, before.generation == generation, before.bytes > restored {
            outcome.carries = before.bytes - restored
        }
        hasRead = true
        let part = SharedBudget.sum(own - outcome.forgets, outcome.carries)
        for (name, bytes) in parts.merging([node: part], uniquingKeysWith: { $1 }) where bytes > 0 {
            let known = reading.parts[name].map { $0.generation == generation ? $0.bytes : 0 } ?? 0
            if known < bytes { outcome.writes[name] = UsePart(generation: generation, bytes: bytes) }
        }
        outcome.writesReset = generation > reading.resetAt
        return outcome
    }

    /// The budget begins anew, by a command on this node. The caller sets the part of this node to zero.
    ///
    /// - Parameter now: in milliseconds since 1970.
    package mutating func reset(at now: UInt64) {
        generation = max(now, generation + 1)
        parts = [:]
        // What an earlier run has left is of an earlier generation.
        hasRead = true
    }

    /// What a node may use by itself from the moment on at which it hears nothing of the others: an equal share of what is left.
    ///
    /// - Parameters:
    ///   - used: by all nodes, as far as this one knows, itself included.
    ///   - nodes: how many there were when they were heard of last, this one included.
    package static func share(of budget: UInt64, used: UInt64, nodes: Int) -> UInt64 {
        (budget - min(budget, used)) / UInt64(max(1, nodes))
    }

    /// How long Redis keeps a budget, in seconds.
    ///
    /// - Parameters:
    ///   - windowEnd: `Int64.max` if the window does not end.
    ///   - now: in seconds since 1970.
    package static func expiry(windowEnd: Int64, now: Int64) -> Int64 {
        // A minute more, for clocks that differ.
        windowEnd == .max ? secondsMax : min(secondsMax, max(0, windowEnd - now) + 60)
    }

    /// A budget without an end that nobody uses for so long is forgotten.
    private static let secondsMax: Int64 = 366 * 86_400

    private static func sum(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let (sum, overflow) = a.addingReportingOverflow(b)
        return overflow ? .max : sum
    }
}
