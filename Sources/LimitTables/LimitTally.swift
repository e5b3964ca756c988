import Limiting
import Synchronization

/// What has become of the requests and connections that one rule of `limits.rules` concerns, over all of its buckets, since it was used first.
///
/// All workers count at once.
package final class LimitTally: Sendable {
    private let requests = Atomic<UInt64>(0)
    private let concurrent = Atomic<UInt64>(0)
    private let budget = Atomic<UInt64>(0)
    private let sizes = Atomic<UInt64>(0)
    private let connections = Atomic<UInt64>(0)
    private let delayed = Atomic<UInt64>(0)
    /// Of buckets that are forgotten.
    private let earlierBytes = Atomic<UInt64>(0)

    package init() {}

    func countRefusal(by figure: LimitExcess.Figure) {
        switch figure {
        case .requests: requests.wrappingAdd(1, ordering: .relaxed)
        case .concurrent: concurrent.wrappingAdd(1, ordering: .relaxed)
        case .budget: budget.wrappingAdd(1, ordering: .relaxed)
        case .requestBody, .requestSize, .responseBody: sizes.wrappingAdd(1, ordering: .relaxed)
        }
    }

    func countRefusedConnection() { connections.wrappingAdd(1, ordering: .relaxed) }
    func countDelay() { delayed.wrappingAdd(1, ordering: .relaxed) }
    func keep(bytes: UInt64) { earlierBytes.wrappingAdd(bytes, ordering: .relaxed) }

    /// Without what the buckets in use say.
    var use: LimitRuleUse {
        var use = LimitRuleUse()
        use.refusedRequests = requests.load(ordering: .relaxed)
        use.refusedConcurrent = concurrent.load(ordering: .relaxed)
        use.refusedBudget = budget.load(ordering: .relaxed)
        use.refusedSize = sizes.load(ordering: .relaxed)
        use.refusedConnections = connections.load(ordering: .relaxed)
        use.delayed = delayed.load(ordering: .relaxed)
        use.bytes = earlierBytes.load(ordering: .relaxed)
        return use
    }
}

/// What one rule of `limits.rules` has refused and delayed, and what is used of its buckets now.
package struct LimitRuleUse: Sendable, Equatable {
    /// Requests without a token (`requests`).
    package var refusedRequests: UInt64 = 0
    /// Requests without a place (`concurrent`).
    package var refusedConcurrent: UInt64 = 0
    /// Requests whose budget was spent (`budget`).
    package var refusedBudget: UInt64 = 0
    /// Requests that were too long, or whose answer was (`request_body`, `request_size`, `response_body`).
    package var refusedSize: UInt64 = 0
    /// Connections without a place (`connections`).
    package var refusedConnections: UInt64 = 0
    /// Answers and tunnels that had to wait for their rate (`bandwidth`), each once.
    package var delayed: UInt64 = 0
    /// Of bodies and tunnels, towards clients.
    package var bytes: UInt64 = 0
    /// Buckets in use.
    package var buckets: UInt64 = 0
    /// Requests and tunnels. Counted where the rule has `concurrent`.
    package var underWay: UInt64 = 0
    /// Counted where the rule has `connections`.
    package var connections: UInt64 = 0

    package init() {}

    mutating func add(_ bucket: LimitAccount.Usage) {
        bytes += bucket.bytes
        buckets += 1
        underWay += UInt64(max(0, bucket.underWay))
        connections += UInt64(max(0, bucket.connections))
    }
}
