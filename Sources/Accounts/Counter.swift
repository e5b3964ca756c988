package import Access
package import Framing
public import Synchronization
import Transaction

/// What workers count. StatisticsSection.swift in Admin says under which name each counter is published.
@usableFromInline
package enum Counter: Int, CaseIterable, Sendable {
    case requests
    case hits, hitsByEarlierDecision, hitsFromDisk, hitsShared
    case staleHits, revalidated, collapsed, misses, passed, refused, failed, tunnels,
        upgrades, reported
    case bytesFromClients, bytesToClients, bytesFromCache, bytesFromOrigins, bytesToOrigins
    case bytesTunnelledFromClients, bytesTunnelledToClients
    case clientConnectionsAccepted, clientConnectionsClosed, clientConnectionsRefused
    case originConnectionsOpened, originConnectionsReused, originConnectionsClosed, originConnectionsFailed
    case originConnectionsUnverified
    case originHandshakes, originHandshakesResumed
    case originRequests, originRetries, retries, retriesRefused, originsUnavailable, originQueued, nextProxyFailures,
        routesFailedOver,
        credentialsSent, credentialsRefused, connectionLogIns, connectionLogInsFailed,
        placeholdersReplaced, placeholdersMisplaced, placeholdersRenewed, bodiesKept,
        requestsEncoded, redirectsFollowed, resumed,
        collapseTimeouts
    case tunnelsClosed, transfersCancelled
    case proxyHeaders, proxyHandshakes, proxyHandshakesResumed
    case tunnelsOpened, handshakes, handshakesResumed, leavesIssued, leavesRefused
    case stored, partsStored, keptPartial, storingRefused, storingFailed, digestMismatches, digestsPromised,
        foldedProven,
        foldedUnproven, freshened, invalidated
    case releasesRemoved, releasesReported, releasesUndated
    case protocolViolations, timeouts, authenticationFailures, authenticationChecks
    case authenticationStale, authenticationWaits
    case directoryAccepted, directoryRefused, directoryFailures
    case accessLogLines, accessLogLinesDropped

    /// One sentence for the manual: what is counted.
    package var help: StaticString {
        switch self {
        case .requests: "Requests received, including those whose head was malformed or did not arrive in time."
        case .hits: "Requests answered from the store; no origin was asked."
        case .hitsByEarlierDecision:
            "Hits for which neither the password nor the rules were looked at, because the request before them on the connection had the same answer to both."
        case .hitsFromDisk: "Hits that had to be read from the disk of this node."
        case .hitsShared: "Hits that another node of the fleet had stored, and that came through the Redis."
        case .staleHits: "Requests answered with a stale stored response, because that was allowed."
        case .revalidated: "Requests answered from the store after the origin had confirmed it with 304."
        case .collapsed: "Requests answered by a fetch that another request had started."
        case .misses: "Requests answered by an origin whose response was stored, wholly or in part."
        case .passed: "Requests answered by an origin whose response was not stored."
        case .refused: "Requests that Larder refused because of access rules, syntax or limits."
        case .failed: "Requests that failed because of the origin or the connection to it."
        case .tunnels: "CONNECT tunnels opened."
        case .upgrades: "Connections that switched to another protocol (101)."
        case .reported: "Requests that access rules with `report: yes` match."
        case .bytesFromClients: "Bytes read from clients, without tunnels."
        case .bytesToClients: "Bytes written to clients, without tunnels."
        case .bytesFromCache:
            "Bytes of bodies sent to clients from the store, or from a fetch that another request had started."
        case .bytesFromOrigins: "Bytes read from origins, and from other nodes of the fleet, without tunnels."
        case .bytesToOrigins: "Bytes written to origins, without tunnels."
        case .bytesTunnelledFromClients: "Bytes that tunnels carried from clients, counted when a tunnel ends."
        case .bytesTunnelledToClients: "Bytes that tunnels carried to clients, counted when a tunnel ends."
        case .clientConnectionsAccepted: "Connections of clients accepted."
        case .clientConnectionsClosed: "Connections of clients closed."
        case .clientConnectionsRefused:
            "Connections of clients that `access.clients` does not name, that came while Larder stopped, or that were too many."
        case .originConnectionsOpened: "Connections to origins opened."
        case .originConnectionsReused: "Requests sent on a connection that had carried others before."
        case .originConnectionsClosed: "Connections to origins closed."
        case .originHandshakes: "TLS handshakes with origins and next proxies."
        case .originHandshakesResumed: "Those of them that resumed an earlier session."
        case .originConnectionsUnverified:
            "Connections to origins that did not prove who they are: `verify: no` in a rule of `origins`."
        case .originConnectionsFailed: "Attempts to connect to an origin that failed."
        case .originRequests: "Requests sent to origins."
        case .originRetries: "Requests sent again because the connection that was reused had been closed by the origin."
        case .retries: "Requests sent again, after a pause, because the origin had not answered: `retries.max`."
        case .retriesRefused: "Requests not sent again, because too many others had been: `retries.budget`."
        case .originsUnavailable:
            "Connections not tried, because the origin has not accepted connections lately: `circuit`."
        case .originQueued: "Requests that had to wait for a connection to their origin."
        case .credentialsSent: "Requests to origins that carried a credential of `credentials`."
        case .placeholdersReplaced: "Requests to origins in which a placeholder was replaced by its secret."
        case .bodiesKept:
            "Bodies of requests that were kept until they were whole, because a credential covers them or for placeholders in them."
        case .placeholdersRenewed: "Secrets of placeholders that answers of origins have renewed."
        case .placeholdersMisplaced:
            "Requests that were refused because of a placeholder in the wrong place, or a credential of the client's own."
        case .credentialsRefused: "Times that an origin refused a credential of `credentials`."
        case .connectionLogIns: "Log-ins of connections to origins and next proxies with NTLM or Negotiate."
        case .connectionLogInsFailed:
            "Log-ins of connections to origins and next proxies with NTLM or Negotiate that did not come to their end, for other reasons than a refusal by the peer."
        case .nextProxyFailures: "Connections that a next proxy of `routes` did not open because it failed itself."
        case .routesFailedOver:
            "Requests for which the next route of their rule was tried, because the one before failed."
        case .resumed: "Fetches that broke off and went on with `Range` and `If-Range`."
        case .collapseTimeouts:
            "Requests that waited too long for the fetch of another request, and were sent themselves."
        case .tunnelsClosed: "Tunnels that ended."
        case .requestsEncoded: "Requests whose body was sent with gzip, as `request_coding` says."
        case .redirectsFollowed: "Redirects that were followed for clients, as `redirects` in a rule of `origins` says."
        case .transfersCancelled: "Fetches and tunnels that an administrator ended."
        case .tunnelsOpened: "Tunnels to hosts of `intercept.hosts` in which requests were read."
        case .proxyHeaders: "PROXY headers that load balancers sent before their clients' own bytes."
        case .proxyHandshakes: "TLS handshakes of clients with the proxy itself."
        case .proxyHandshakesResumed: "Those of them that resumed an earlier session."
        case .handshakes: "TLS handshakes with clients in such tunnels."
        case .handshakesResumed: "Those of them that resumed an earlier session."
        case .leavesIssued: "Certificates issued for hosts."
        case .leavesRefused:
            "Connections that a client ended after it had seen the certificate, with an alert or without a request."
        case .stored: "Whole responses stored."
        case .partsStored: "Parts of responses stored: answers to range requests, and parts that were missing."
        case .keptPartial: "Responses that broke off for good, and of which the part that arrived was kept."
        case .storingRefused:
            "Responses that were not stored because of their size, the budget, or a purge or an invalidation meanwhile."
        case .storingFailed: "Responses removed from the store because their fetch broke off."
        case .foldedProven:
            "Requests for signed addresses by clients with a proof of access. Their key leaves the signature out."
        case .foldedUnproven:
            "Requests for signed addresses by clients without a proof of access. Each was sent to the origin."
        case .digestsPromised: "Digests of files that were read from indexes, for rules with `digest: { from: index }`."
        case .digestMismatches: "Bodies that did not have the digest that a rule knows. They were not stored."
        case .releasesRemoved: "Indexes from which releases were removed because they were too young (`min_age`)."
        case .releasesReported: "Answers that a `min_age` with `report_only` would have refused or changed."
        case .releasesUndated:
            "Files and indexes that passed a `min_age` because nobody says when their releases were published."
        case .freshened: "Stored responses that a 304 or the answer to a HEAD made fresh again."
        case .invalidated:
            "Stored responses invalidated by an unsafe request, or found to be outdated by the answer to a HEAD."
        case .protocolViolations: "Messages of clients and origins that break the rules of HTTP/1.1."
        case .timeouts: "Connections closed because the client or the origin took too long."
        case .authenticationFailures: "Requests with wrong or missing credentials."
        case .authenticationChecks: "Passwords compared with their hash."
        case .authenticationStale:
            "Requests whose digest was right, but for a nonce that is too old or a count that was used."
        case .authenticationWaits:
            "Requests of clients that have to wait because they, or others with their name, failed too often."
        case .directoryAccepted: "Users whose password a directory has accepted."
        case .directoryRefused: "Users whom a directory does not know, or whose password it does not accept."
        case .directoryFailures: "Users about whom no directory could be asked."
        case .accessLogLines: "Lines written to the access log."
        case .accessLogLinesDropped: "Lines lost because the access log could not be written fast enough."
        }
    }
}

/// An array of numbers that one thread writes and any thread reads.
///
/// Adding is a relaxed load and a relaxed store, not an atomic read-modify-write: there is only one writer, so no addition is lost.
@usableFromInline
@safe package final class CounterBank: @unchecked Sendable {  // the cells are atomic, the pointer never changes
    @usableFromInline let cells: UnsafeMutablePointer<Atomic<UInt64>>
    @usableFromInline let count: Int

    package init(count: Int) {
        self.count = count
        unsafe cells = .allocate(capacity: count)
        for index in 0..<count { unsafe (cells + index).initialize(to: Atomic(0)) }
    }

    deinit {
        unsafe cells.deinitialize(count: count)
        unsafe cells.deallocate()
    }

    @inlinable
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
@usableFromInline
package final class Counters: Sendable {
    @usableFromInline let bank = CounterBank(count: Counter.allCases.count)
    /// Errors that Larder answered with, by refusal.
    package let refusals = CounterBank(count: Refusal.allCases.count)
    /// Requests that the access rules denied, by `exactReason`.
    package let denials = CounterBank(count: DenialReason.allCases.count)
    /// Messages that break the rules of HTTP/1.1, by rule.
    package let violations = CounterBank(count: FramingError.allCases.count)
    /// Connections of clients that closed, by reason.
    package let closes = CounterBank(count: CloseReason.allCases.count)
    /// What the worker has now, set once a second.
    package let gauges = CounterBank(count: Gauge.allCases.count)

    package init() {}

    /// Counts a denial, and notes it for the log.
    package func count(_ denial: Denial, in account: inout Account) {
        denials.add(Self.index(of: denial.exactReason), 1)
        account.denial = denial.exactReason
        account.denialRule = denial.rule.flatMap(UInt16.init(exactly:)) ?? 0
    }

    package func count(_ violation: FramingError) {
        add(.protocolViolations)
        violations.add(Counters.index(of: violation), 1)
    }

    /// The place of a violation in `violations`.
    package static func index(of violation: FramingError) -> Int {
        guard let index = FramingError.allCases.firstIndex(of: violation) else { preconditionFailure("it is a case") }
        return index
    }

    /// The place of a reason in `denials`.
    package static func index(of reason: DenialReason) -> Int {
        guard let index = DenialReason.allCases.firstIndex(of: reason) else { preconditionFailure("it is a case") }
        return index
    }

    @inlinable
    package func add(_ counter: Counter, _ amount: Int = 1) { bank.add(counter.rawValue, amount) }
    package subscript(_ counter: Counter) -> UInt64 { bank[counter.rawValue] }
}

/// What a worker has now, or has counted elsewhere than in `Counters`.
package enum Gauge: Int, CaseIterable, Sendable {
    case originConnectionsOpen, originConnectionsIdle, originPinsOpen, nameQueries, nameHits, nameFailures, namesStale,
        namesUnasked, namesKept
    /// 1 when the worker has ended; not published.
    case isFinished

    /// One sentence for the manual.
    package var help: StaticString {
        switch self {
        case .originConnectionsOpen: "Open connections to origins."
        case .originConnectionsIdle: "Open connections to origins that wait for their next request."
        case .originPinsOpen:
            "Client connections that are pinned to a connection to an origin, for a log-in with NTLM or Negotiate. Counted for each origin."
        case .nameQueries: "Names that a name server was asked for."
        case .nameHits: "Names whose addresses were known from an earlier query."
        case .nameFailures: "Names that could not be resolved."
        case .namesStale: "Names whose addresses had expired and were used because no name server answered."
        case .namesUnasked:
            "Look-ups that failed at once, or got expired addresses, because the name servers had been silent: `circuit`."
        case .namesKept: "Names whose addresses are remembered, by each worker on its own."
        case .isFinished: "Whether the worker has ended."
        }
    }
}
