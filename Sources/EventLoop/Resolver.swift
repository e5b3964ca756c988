// Which of these modules a C type belongs to depends on which is loaded first: all are named.
import CAres
import CLarder
import CLibevent
import Glibc

/// Names to addresses without blocking, with a cache that heeds the time-to-live of answers. One per loop.
///
/// Does: the hosts file, the search list and servers of resolv.conf, A and AAAA together, TCP when an answer does not
/// fit, the order of RFC 6724 (all by c-ares; docs/decisions/0001-c-ares.md). Does not judge addresses: whether one may
/// be dialled is for Access to say. Names are taken as spelled: give them in lower case.
@safe package final class Resolver {
    package struct Options: Sendable {
        /// Bounds on how long an answer is believed, whatever its time-to-live says (RFC 1035 §3.2.1).
        package var ttlMin: Duration = .seconds(1)
        package var ttlMax: Duration = .seconds(3600)
        /// How long "there is no such name" is believed (RFC 2308). Other failures are believed for `ttlMin`.
        package var negativeTTL: Duration = .seconds(5)
        package var entriesMax = 10_000
        /// Questions open at a time.
        package var queriesMax = 1_000
        /// Patience with one server before the question is put again; doubles with each round.
        package var timeout: Duration = .seconds(2)
        /// Rounds through all servers.
        package var tries = 3
        /// `address:port` each, in place of those in resolv.conf; nil uses these.
        package var servers: [String]?

        package init() {}
    }

    package struct Resolution: Sendable, Equatable {
        /// At least one; best first; port zero.
        package var addresses: [SocketAddress]
        package var expires: MonotonicTime
    }

    /// Since the start; the share of `cacheHits` among all look-ups tells whether the cache is large enough.
    package struct Stats: Sendable, Equatable {
        package var queries: UInt64 = 0
        package var cacheHits: UInt64 = 0
        /// Look-ups that joined a question already open.
        package var joined: UInt64 = 0
        package var failures: UInt64 = 0
    }

    package typealias Outcome = Result<Resolution, ResolverError>

    package private(set) var stats = Stats()
    private let loop: EventLoop
    private let options: Options
    private let sockets: ResolverSockets
    private let channel: ares_channel
    private var cache: ResolverCache
    private var openQueries: [String: Query] = [:]

    /// Throws when resolv.conf can not be read or names no usable server, or `options.servers` is not well formed.
    package init(loop: EventLoop, options: Options = Options()) throws(ResolverError) {
        self.loop = loop
        self.options = options
        cache = ResolverCache(entriesMax: options.entriesMax)
        sockets = ResolverSockets(loop)
        unsafe channel = try Resolver.makeChannel(options, sockets)
        unsafe sockets.attach(channel)
    }

    deinit {
        unsafe ares_destroy(channel)  // ends open queries, whose callbacks meet a resolver that is gone
        sockets.detach()
    }

    /// What is known about `host` without asking; nil when nothing is.
    package func cached(_ host: String) -> Outcome? {
        guard let outcome = cache.outcome(for: host, at: loop.now) else { return nil }
        stats.cacheHits += 1
        return outcome
    }

    /// Asks for the addresses of `host`, once for all who ask meanwhile.
    ///
    /// `done` is called once, at the end of this or a later turn, unless the ticket is cancelled before.
    @discardableResult
    package func resolve(_ host: String, _ done: @escaping (Outcome) -> Void) -> ResolverTicket {
        let ticket = ResolverTicket(done)
        if let outcome = cached(host) {
            loop.afterTurn { ticket.deliver(outcome) }
        } else if let address = SocketAddress(literal: host) {
            // c-ares would ask the name servers all the same.
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

    /// RFC 1035 §2.3.4: 255 octets on the wire are 253 characters, and a final dot.
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

    /// Tickets are served at the end of the turn: those who asked may do anything then, also drop the resolver.
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
        // The way through an alias is believed no longer than the alias itself.
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

    /// One open question and those who wait for its answer.
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

    /// The answer is no longer wanted; it still reaches the cache.
    package func cancel() { done = nil }

    func deliver(_ outcome: Resolver.Outcome) {
        guard let done else { return }
        self.done = nil
        done(outcome)
    }
}
