// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// Resolves names to addresses without blocking, with a cache that respects the time-to-live of answers. Each loop has one.
///
/// c-ares does the work (docs/decisions/0001-c-ares.md): the hosts file, the search list and the servers of resolv.conf, A and AAAA
/// together, TCP for long answers, the order of RFC 6724. The resolver does not judge addresses: Access decides which may be
/// dialled. Give names in lower case.
@safe package final class Resolver {
    package struct Options: Sendable {
        /// The least and the longest time for which an answer is used, whatever its time-to-live (RFC 1035 §3.2.1).
        package var ttlMin: Duration = .seconds(1)
        package var ttlMax: Duration = .seconds(3600)
        /// How long the answer that a name does not exist is used (RFC 2308). Other failures are used for `ttlMin`.
        package var negativeTTL: Duration = .seconds(5)
        package var entriesMax = 10_000
        /// The most queries at a time.
        package var queriesMax = 1_000
        /// How long to wait for one server before the query is sent again. Doubles with each round.
        package var timeout: Duration = .seconds(2)
        /// The number of rounds through all servers.
        package var tries = 3
        /// Name servers as `address:port`. Nil: those of resolv.conf.
        package var servers: [String]?

        package init() {}
    }

    package struct Resolution: Sendable, Equatable {
        /// At least one address, the best one first. The ports are zero.
        package var addresses: [SocketAddress]
        package var expires: MonotonicTime
    }

    /// Counts since the start. The share of `cacheHits` tells whether the cache is large enough.
    package struct Stats: Sendable, Equatable {
        package var queries: UInt64 = 0
        package var cacheHits: UInt64 = 0
        /// Look-ups that waited for a query that was under way already.
        package var joined: UInt64 = 0
        package var failures: UInt64 = 0
    }

    package typealias Outcome = Result<Resolution, ResolverError>

    package private(set) var stats = Stats()
    /// Names in the cache, whether found or not.
    package var namesKept: Int { cache.count }
    private let loop: EventLoop
    private let options: Options
    private let sockets: ResolverSockets
    private let channel: ares_channel
    private var cache: ResolverCache
    private var openQueries: [String: Query] = [:]

    /// Throws if resolv.conf cannot be read or names no usable server, or if `options.servers` is malformed.
    package init(loop: EventLoop, options: Options = Options()) throws(ResolverError) {
        self.loop = loop
        self.options = options
        cache = ResolverCache(entriesMax: options.entriesMax)
        sockets = ResolverSockets(loop)
        unsafe channel = try Resolver.makeChannel(options, sockets)
        unsafe sockets.attach(channel)
    }

    deinit {
        unsafe ares_destroy(channel)  // ends open queries; their callbacks find no resolver any more
        sockets.detach()
    }

    /// The cached answer for `host`. Nil if there is none.
    package func cached(_ host: String) -> Outcome? {
        guard let outcome = cache.outcome(for: host, at: loop.now) else { return nil }
        stats.cacheHits += 1
        return outcome
    }

    /// Resolves `host`. Look-ups for the same host share one query.
    ///
    /// `done` is called once, at the end of this or a later turn, unless the ticket is cancelled first.
    @discardableResult
    package func resolve(_ host: String, _ done: @escaping (Outcome) -> Void) -> ResolverTicket {
        let ticket = ResolverTicket(done)
        if let outcome = cached(host) {
            loop.afterTurn { ticket.deliver(outcome) }
        } else if let address = SocketAddress(literal: host) {
            // c-ares would send a query for these as well.
            let resolution = Resolution(addresses: [address], expires: loop.now.advanced(by: options.ttlMax))
            loop.afterTurn { ticket.deliver(.success(resolution)) }
        } else if let query = openQueries[host] {
            stats.joined += 1
            query.tickets.append(ticket)
        } else if !Resolver.isAskable(host) {
            loop.afterTurn { ticket.deliver(.failure(.badName)) }
        } else if openQueries.count >= options.queriesMax {
            loop.afterTurn { ticket.deliver(.failure(.tooManyQueries)) }
        } else {
            ask(host, ticket)
        }
        return ticket
    }

    /// RFC 1035 §2.3.4: 255 octets on the wire are 253 characters and a final dot.
    private static func isAskable(_ host: String) -> Bool {
        (1...254).contains(host.utf8.count) && !host.utf8.contains(0)
    }

    private func ask(_ host: String, _ ticket: ResolverTicket) {
        stats.queries += 1
        let query = Query(host, self)
        query.tickets.append(ticket)
        openQueries[host] = query
        var hints = ares_addrinfo_hints(ai_flags: 0, ai_family: 0, ai_socktype: 1 /* SOCK_STREAM */, ai_protocol: 0)
        unsafe ares_getaddrinfo(
            channel, host, nil, &hints,
            { context, status, _, answer in
                let query = unsafe Unmanaged<Query>.fromOpaque(context!).takeRetainedValue()
                defer { if let answer = unsafe answer { unsafe ares_freeaddrinfo(answer) } }
                unsafe query.resolver?.answered(query, status, answer)
            }, Unmanaged.passRetained(query).toOpaque())
        sockets.restartClock()
    }

    /// Calls the tickets at the end of the turn. Their callers may do anything then, even release the resolver.
    private func answered(_ query: Query, _ status: CInt, _ answer: UnsafeMutablePointer<ares_addrinfo>?) {
        openQueries[query.host] = nil
        let outcome = unsafe self.outcome(status, answer)
        cache.store(outcome, for: query.host, expires: expiry(of: outcome))
        if case .failure = outcome { stats.failures += 1 }
        loop.afterTurn {
            for ticket in query.tickets { ticket.deliver(outcome) }
        }
    }

    private func outcome(_ status: CInt, _ answer: UnsafeMutablePointer<ares_addrinfo>?) -> Outcome {
        guard status == CInt(ARES_SUCCESS) else { return .failure(ResolverError(status: status)) }
        guard let answer = unsafe answer else { return .failure(.notFound) }
        var addresses: [SocketAddress] = []
        var ttl = CInt.max
        var node = unsafe answer.pointee.nodes
        while let current = unsafe node {
            if let raw = unsafe current.pointee.ai_addr,
                let address = unsafe SocketAddress(raw, length: Int(current.pointee.ai_addrlen)),
                !addresses.contains(address)
            {
                addresses.append(address)
            }
            ttl = min(ttl, unsafe current.pointee.ai_ttl)
            unsafe node = unsafe current.pointee.ai_next
        }
        // An answer through an alias is used no longer than the alias itself.
        var alias = unsafe answer.pointee.cnames
        while let current = unsafe alias {
            ttl = min(ttl, unsafe current.pointee.ttl)
            unsafe alias = unsafe current.pointee.next
        }
        guard !addresses.isEmpty else { return .failure(.notFound) }
        let lifetime = min(max(.seconds(Int64(ttl)), options.ttlMin), options.ttlMax)
        return .success(Resolution(addresses: addresses, expires: loop.now.advanced(by: lifetime)))
    }

    private func expiry(of outcome: Outcome) -> MonotonicTime {
        switch outcome {
        case .success(let resolution): resolution.expires
        case .failure(.notFound): loop.now.advanced(by: options.negativeTTL)
        case .failure: loop.now.advanced(by: options.ttlMin)
        }
    }

    // MARK: The channel

    /// Process-wide set-up of c-ares, once.
    private static let libraryStatus: CInt = ares_library_init(1 /* ARES_LIB_INIT_ALL */)

    private static func makeChannel(
        _ options: Options, _ sockets: ResolverSockets
    ) throws(ResolverError) -> ares_channel {
        guard libraryStatus == 0 else { throw .failed(status: libraryStatus) }
        var settings = unsafe ares_options()
        unsafe settings.timeout = CInt(clamping: max(1, options.timeout.nanosecondsClamped / 1_000_000))
        unsafe settings.tries = CInt(clamping: options.tries)
        unsafe settings.sock_state_cb = unsafe ResolverSockets.stateChanged
        unsafe settings.sock_state_cb_data = unsafe Unmanaged.passUnretained(sockets).toOpaque()
        let mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB
        var channel: ares_channel?
        let status = unsafe ares_init_options(&channel, &settings, CInt(mask))
        guard status == 0, let channel = unsafe channel else { throw .failed(status: status) }
        if let servers = options.servers {
            let status = unsafe ares_set_servers_ports_csv(channel, servers.joined(separator: ","))
            guard status == 0 else {
                unsafe ares_destroy(channel)
                throw .failed(status: status)
            }
        }
        return unsafe channel
    }

    /// One query, and the look-ups that wait for its answer.
    private final class Query {
        let host: String
        weak var resolver: Resolver?
        var tickets: [ResolverTicket] = []

        init(_ host: String, _ resolver: Resolver) {
            self.host = host
            self.resolver = resolver
        }
    }
}

/// One look-up under way.
package final class ResolverTicket {
    private var done: ((Resolver.Outcome) -> Void)?

    init(_ done: @escaping (Resolver.Outcome) -> Void) { self.done = done }

    /// Cancels the look-up. The answer still goes into the cache.
    package func cancel() { done = nil }

    func deliver(_ outcome: Resolver.Outcome) {
        guard let done else { return }
        self.done = nil
        done(outcome)
    }
}
