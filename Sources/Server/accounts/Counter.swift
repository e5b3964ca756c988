internal import Framing
internal import Synchronization
internal import Transaction

/// What the workers count. `/stats` and `/metrics` show these under names of their own (Statistics.swift and Metrics.swift in Admin),
/// beside what the stores count themselves: evictions, purges, bytes on the disk.
package enum Counter: Int, CaseIterable, Sendable {
    case requests
    case hits, staleHits, revalidated, collapsed, misses, passed, refused, failed, tunnels, upgrades
    case bytesFromClients, bytesToClients, bytesFromCache, bytesFromOrigins, bytesToOrigins
    case bytesTunnelledFromClients, bytesTunnelledToClients
    case clientConnectionsAccepted, clientConnectionsClosed, clientConnectionsRefused
    case originConnectionsOpened, originConnectionsReused, originConnectionsClosed, originConnectionsFailed
    case originRequests, originRetries, originQueued, resumed, collapseTimeouts
    case tunnelsClosed
    case stored, partsStored, keptPartial, storingRefused, storingFailed, freshened, invalidated
    case protocolViolations, timeouts, authenticationFailures, authenticationChecks
    case accessLogLines, accessLogLinesDropped

    /// One sentence: what a single increment means.
    package var help: StaticString {
        switch self {
        case .requests: "Requests received, those included whose head was malformed or did not arrive in time."
        case .hits: "Requests answered from the store without asking an origin."
        case .staleHits: "Requests answered with a stale stored response, where that is allowed."
        case .revalidated: "Requests answered from the store after the origin confirmed it with 304."
        case .collapsed: "Requests answered by joining a transfer that was under way."
        case .misses: "Requests answered by an origin whose response was stored, wholly or in part."
        case .passed: "Requests answered by an origin whose response was not stored."
        case .refused: "Requests that Larder refused: access, syntax, limits."
        case .failed: "Requests that failed because an origin did."
        case .tunnels: "CONNECT tunnels opened."
        case .upgrades: "Connections switched to another protocol (101)."
        case .bytesFromClients: "Bytes read from clients, tunnels excluded."
        case .bytesToClients: "Bytes written to clients, tunnels excluded."
        case .bytesFromCache: "Body bytes served from stored responses."
        case .bytesFromOrigins: "Bytes read from origins, tunnels excluded."
        case .bytesToOrigins: "Bytes written to origins, tunnels excluded."
        case .bytesTunnelledFromClients: "Bytes carried by tunnels towards origins, counted when they end."
        case .bytesTunnelledToClients: "Bytes carried by tunnels towards clients, counted when they end."
        case .clientConnectionsAccepted: "Client connections accepted."
        case .clientConnectionsClosed: "Client connections closed."
        case .clientConnectionsRefused:
            "Client connections of clients that are not named, and those that came while stopping."
        case .originConnectionsOpened: "Connections to origins opened."
        case .originConnectionsReused: "Requests sent on a pooled origin connection."
        case .originConnectionsClosed: "Connections to origins closed."
        case .originConnectionsFailed: "Attempts to connect to an origin that failed."
        case .originRequests: "Requests sent to origins."
        case .originRetries: "Requests sent again because a pooled connection was dead."
        case .originQueued: "Requests that had to wait for a connection to their origin."
        case .resumed: "Transfers that broke off and were taken up again with Range and If-Range."
        case .collapseTimeouts: "Requests that waited too long for the transfer they had joined, and went on their own."
        case .tunnelsClosed: "Tunnels that ended."
        case .stored: "Responses stored as whole."
        case .partsStored: "Parts of responses stored: answers to ranges, and holes that were filled."
        case .keptPartial: "Responses that broke off for good, of which the part that came is kept."
        case .storingRefused:
            "Responses that could have been stored but for their size, the budget, or a purge or invalidation meanwhile."
        case .storingFailed: "Responses dropped from the store because their transfer broke off."
        case .freshened: "Stored responses renewed by a 304, or by the answer to a HEAD."
        case .invalidated:
            "Stored responses invalidated by unsafe requests, or marked as outdated by the answer to a HEAD."
        case .protocolViolations: "Messages that break the rules of HTTP/1.1."
        case .timeouts: "Connections closed because a peer took too long."
        case .authenticationFailures: "Requests with wrong or missing credentials."
        case .authenticationChecks: "Passwords compared with their hash."
        case .accessLogLines: "Lines written to the access log."
        case .accessLogLinesDropped: "Lines lost because the access log could not be written fast enough."
        }
    }
}

/// A row of counters: written by one thread alone, read by anybody.
///
/// A relaxed load and store instead of a read-modify-write: there is one writer, so nothing is lost and nothing locks.
@safe package final class CounterBank: @unchecked Sendable {  // the cells are atomic, the pointer never changes
    private let cells: UnsafeMutablePointer<Atomic<UInt64>>
    private let count: Int

    package init(count: Int) {
        self.count = count
        unsafe cells = .allocate(capacity: count)
        for index in 0..<count { unsafe (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        unsafe cells.deinitialize(count: count)
        unsafe cells.deallocate()
    }

    package func add(_ index: Int, _ amount: Int) {
        precondition(index >= 0 && index < count)
        let old = unsafe cells[index].load(ordering: .relaxed)
        unsafe cells[index].store(old &+ UInt64(truncatingIfNeeded: amount), ordering: .relaxed)
    }

    package func set(_ index: Int, _ value: UInt64) {
        precondition(index >= 0 && index < count)
        unsafe cells[index].store(value, ordering: .relaxed)
    }

    package subscript(_ index: Int) -> UInt64 {
        precondition(index >= 0 && index < count)
        return unsafe cells[index].load(ordering: .relaxed)
    }
}

/// The counters of one worker.
package final class Counters: Sendable {
    private let bank = CounterBank(count: Counter.allCases.count)
    /// Answers that Larder made, by reason.
    package let refusals = CounterBank(count: Refusal.allCases.count)
    /// Messages that were not HTTP, by rule.
    package let violations = CounterBank(count: FramingError.allCases.count)
    /// Client connections that closed, by reason.
    package let closes = CounterBank(count: CloseReason.allCases.count)
    /// What is now, not what was: set by the worker once a second.
    package let gauges = CounterBank(count: Gauge.allCases.count)

    package init() {}

    func count(_ violation: FramingError) {
        add(.protocolViolations)
        if let index = FramingError.allCases.firstIndex(of: violation) { violations.add(index, 1) }
    }

    /// By the index in `violations`.
    package static let violationNames = FramingError.allCases.map(\.reason)

    package func add(_ counter: Counter, _ amount: Int = 1) { bank.add(counter.rawValue, amount) }
    package subscript(_ counter: Counter) -> UInt64 { bank[counter.rawValue] }
}

/// What a worker has now.
package enum Gauge: Int, CaseIterable, Sendable {
    case originConnectionsOpen, originConnectionsIdle, nameQueries, nameHits, nameFailures
    /// 1 when the worker has come to its end.
    case isFinished
}
