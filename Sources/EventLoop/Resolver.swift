// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// Resolves names to addresses without blocking, with a cache that respects the time-to-live of answers. Each loop has one.
///
/// c-ares does the work (docs/decisions/0001-c-ares.md): the servers of resolv.conf, TCP for long answers. A and AAAA are asked for at the same time, in
/// two questions, and come in the order of RFC 6724 (`AddressOrder`). Static entries and the hosts file come first (`LocalNames`). The search list of
/// resolv.conf does not apply. The resolver does not judge addresses: Access decides which may be dialled. Give names in lower case.
@safe package final class Resolver {
    package typealias Outcome = Result<Resolution, ResolverError>

    package private(set) var stats = Stats()
    /// Names in the cache, whether found or not.
    package var namesKept: Int { cache.count }
    /// Names that servers are being asked about.
    var openQueryCount: Int { openQueries.count }
    private var judge: (any NameServerJudge)? { options.judge }
    private let loop: EventLoop
    private let options: Options
    private var channels: ResolverChannels
    private var localNames: LocalNames
    private var cache: ResolverCache
    /// The latest query for each name. It has all look-ups that wait for the name; earlier ones go on for the cache.
    private var openQueries: [String: Query] = [:]
    private var places: QueryPlaces

    /// Throws if resolv.conf cannot be read or names no usable server, or if `options.servers` is malformed.
    package init(loop: EventLoop, options: Options = Options()) throws(ResolverError) {
        self.loop = loop
        self.options = options
        cache = ResolverCache(entriesMax: options.entriesMax)
        places = QueryPlaces(countMax: options.queriesMax)
        localNames = LocalNames(options, now: loop.now)
        channels = try ResolverChannels(loop, options)
    }

    deinit {
        for query in openQueries.values {
            query.stopTimers()
            _ = query.takeTickets()
        }
    }

    /// The answer for `host` without a query: of a static entry, the hosts file or the cache. Returns nil if there is none.
    package func cached(_ host: String) -> Outcome? {
        let host = Resolver.normalised(host)
        if let addresses = localNames.addresses(of: host, at: loop.now) { return outcome(ofLocal: addresses) }
        guard let outcome = cache.outcome(for: host, at: loop.now) else { return nil }
        stats.cacheHits += 1
        if case .success(let resolution) = outcome, resolution.isStale { stats.stale += 1 }
        return outcome
    }

    private func outcome(ofLocal addresses: [SocketAddress]) -> Outcome {
        let usable = options.family.apply(to: addresses)
        guard !usable.isEmpty else { return .failure(.notFound) }
        return .success(Resolution(addresses: usable, expires: loop.now.advanced(by: options.ttlMin)))
    }

    /// The name without the dot that makes it absolute: all names are.
    static func normalised(_ host: String) -> String {
        host.utf8.count > 1 && host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
    }

    /// Resolves `host`. Look-ups for the same host share one query.
    ///
    /// - Parameters:
    ///   - deadline: when the look-up fails with `timedOut`, if there are not even expired addresses. The query goes on, for the cache. Who connects to
    ///     the addresses gives the same deadline to `ConnectAttempt`, so that one limit bounds both.
    ///   - asker: for whom, without a port. Nil: for this process.
    ///   - done: called once, at the end of this or in a later turn, unless the ticket is cancelled first.
    @discardableResult
    package func resolve(
        _ host: String, by deadline: MonotonicTime, for asker: SocketAddress? = nil,
        _ done: @escaping (Outcome) -> Void
    ) -> ResolverTicket {
        let host = Resolver.normalised(host)
        let ticket = ResolverTicket(host, self, loop.timers, end: deadline, done)
        if let outcome = cached(host) {
            loop.afterTurn { ticket.deliver(outcome) }
        } else if let address = SocketAddress(literal: host) {
            // c-ares would send a query for these as well.
            let resolution = Resolution(addresses: [address], expires: loop.now.advanced(by: options.ttlMax))
            loop.afterTurn { ticket.deliver(.success(resolution)) }
        } else if !Resolver.isAskable(host) {
            loop.afterTurn { ticket.deliver(.failure(.badName)) }
        } else {
            do throws(ResolverError) {
                try seek(host, ticket, for: asker)
            } catch {
                let outcome = (error.isOfServers ? staleOutcome(host, for: 1) : nil) ?? .failure(error)
                loop.afterTurn { ticket.deliver(outcome) }
            }
        }
        return ticket
    }

    /// Lets the look-up wait for servers. Throws if they are not asked.
    private func seek(_ host: String, _ ticket: ResolverTicket, for asker: SocketAddress?) throws(ResolverError) {
        let channel = try channels.channel(for: host)
        let permit = judge?.permit(host, of: channel.servers, at: loop.now) ?? .ask
        switch permit {
        case .refusal:
            stats.unasked += 1
            throw .unasked
        case .attempt: ticket.end = min(ticket.end, loop.now.advanced(by: options.silence))
        case .ask: break
        }
        let earlier = openQueries[host]
        // c-ares repeats a question after pauses that grow. A query that is in one would not notice that the servers are well again.
        guard let query = earlier, query.channel === channel, permit == .ask || !hasLasted(query) else {
            return try ask(host, over: channel, ticket, for: asker, replacing: earlier)
        }
        stats.joined += 1
        if query.hasDeliveredPart { startTimer(of: query) }
        enrol(ticket, in: query)
        // Its addresses of one family have expired, and the other family is still awaited.
        if query.hasDeliveredPart { askAgain(query) }
    }

    private func enrol(_ ticket: ResolverTicket, in query: Query) {
        query.add(ticket)
        // Expired addresses are of no use to a look-up whose time is over: whoever connects to them needs some of it.
        let half = loop.now.advanced(by: ticket.end.duration(since: loop.now) / 2)
        let getsExpired = query.timer?.deadline.map { half < $0 } ?? false
        loop.timers.schedule(ticket, at: getsExpired ? half : ticket.end)
    }

    /// The time of a look-up has come: half of it if there may be expired addresses, or all.
    fileprivate func timeHasCome(for ticket: ResolverTicket) {
        if let query = openQueries[ticket.host] { noteSilence(of: query) }
        if let outcome = staleOutcome(ticket.host, for: 1) { return ticket.deliver(outcome) }
        guard loop.now < ticket.end else { return ticket.deliver(.failure(.timedOut)) }
        loop.timers.schedule(ticket, at: ticket.end)
    }

    /// RFC 1035 §2.3.4: 255 octets on the wire are 253 characters and a final dot.
    private static func isAskable(_ host: String) -> Bool {
        (1...254).contains(host.utf8.count) && !host.utf8.contains(0)
    }

    /// - Parameter earlier: the query whose look-ups wait for this one from now on.
    private func ask(
        _ host: String, over channel: ResolverChannel, _ ticket: ResolverTicket, for asker: SocketAddress?,
        replacing earlier: Query?
    ) throws(ResolverError) {
        guard places.take(for: asker) else { throw .tooManyQueries }
        stats.queries += 1
        let query = Query(host, options.family.queried, self, channel, asker)
        openQueries[host] = query
        if let earlier {
            earlier.stopTimers()
            query.takeOver(from: earlier)
        }
        startTimer(of: query)
        enrol(ticket, in: query)
        // A question may end at once, and then the other one is open already.
        for family in options.family.queried { ask(query, for: family) }
        channel.sockets.restartClock()
    }

    private func ask(_ query: Query, for family: SocketAddress.Family) {
        query.channel.openCount += 1
        // The addresses of both families are sorted together.
        var hints = ares_addrinfo_hints(
            ai_flags: ARES_AI_NOSORT, ai_family: family == .v4 ? AF_INET : AF_INET6, ai_socktype: 1 /* SOCK_STREAM */,
            ai_protocol: 0)
        let callback: ares_addrinfo_callback =
            family == .v4
            ? { context, status, _, answer in unsafe Resolver.ended(context, .v4, status, answer) }
            : { context, status, _, answer in unsafe Resolver.ended(context, .v6, status, answer) }
        unsafe ares_getaddrinfo(
            query.channel.raw, query.host, nil, &hints, callback, Unmanaged.passRetained(query).toOpaque())
    }

    private static func ended(
        _ context: UnsafeMutableRawPointer?, _ family: SocketAddress.Family, _ status: CInt,
        _ answer: UnsafeMutablePointer<ares_addrinfo>?
    ) {
        let query = unsafe Unmanaged<Query>.fromOpaque(context!).takeRetainedValue()
        defer { if let answer = unsafe answer { unsafe ares_freeaddrinfo(answer) } }
        unsafe query.resolver?.answered(query, family, status, answer)
    }

    // MARK: Two families (RFC 8305 §3)

    /// The question for one family has ended. The addresses of one family wait `resolutionDelay` for the other, and then answer the look-ups. The other
    /// question goes on, for the cache.
    private func answered(
        _ query: Query, _ family: SocketAddress.Family, _ status: CInt, _ answer: UnsafeMutablePointer<ares_addrinfo>?
    ) {
        query.channel.openCount -= 1
        loop.afterTurn { [weak self] in self?.channels.clean() }
        let outcome = unsafe self.outcome(status, answer)
        query.answers[family] = outcome
        query.awaited.remove(family)
        guard !query.awaited.isEmpty else { return conclude(query) }
        if isAnswer(outcome) { tellJudge(.partialAnswer, of: query) }
        // That one family is missing says nothing yet, and nobody waits for a query that has been replaced.
        guard case .success = outcome, openQueries[query.host] === query else { return }
        // What kept the look-ups waiting once does not do so again.
        if query.awaited.isSubset(of: query.late) { return deliverPart(of: query) }
        let delay = PreciseTimer(loop) { [weak self, unowned query] in
            query.late.formUnion(query.awaited)
            self?.deliverPart(of: query)
        }
        query.delay = delay
        delay.start(at: loop.now.advanced(by: options.resolutionDelay))
    }

    private func deliverPart(of query: Query) {
        query.hasDeliveredPart = true
        query.stopTimers()
        deliver(note(outcome(of: query), of: query), to: query)
    }

    /// Asks for the families that have been answered.
    private func askAgain(_ query: Query) {
        query.hasDeliveredPart = false
        query.began = loop.now
        let families = options.family.queried.filter { !query.awaited.contains($0) }
        query.awaited.formUnion(families)
        for family in families {
            query.answers[family] = nil
            ask(query, for: family)
        }
        query.channel.sockets.restartClock()
    }

    /// All families have been answered.
    private func conclude(_ query: Query) {
        query.stopTimers()
        places.give(back: query.asker)
        let outcome = outcome(of: query)
        guard let latest = openQueries[query.host], latest !== query else {
            openQueries[query.host] = nil
            tellJudge(isAnswer(outcome) ? .answer : hasLasted(query) ? .silence : .quickFailure, of: query)
            return deliver(note(outcome, of: query), to: query)
        }
        // It has been replaced. That it failed is old news.
        guard isAnswer(outcome) else { return }
        tellJudge(.answer, of: query)
        deliver(note(outcome, of: latest), to: latest)
    }

    // MARK: Silent servers

    private func isAnswer(_ outcome: Outcome) -> Bool {
        switch outcome {
        case .success: true
        case .failure(let error): !error.isOfServers
        }
    }

    /// Whether somebody who has waited for the query has waited for long.
    private func hasLasted(_ query: Query) -> Bool { loop.now.duration(since: query.began) >= options.silence }

    /// Somebody has waited for the query in vain.
    private func noteSilence(of query: Query) {
        guard hasLasted(query) else { return }
        tellJudge(.silence, of: query)
    }

    private func tellJudge(_ outcome: NameServerOutcome, of query: Query) {
        judge?.note(outcome, of: query.host, by: query.channel.servers, at: loop.now)
    }

    /// What is known by now: the addresses of the families that have some, for as long as all of them may be used. If none has, what was wrong with a server
    /// comes before an answer that there is no address: it may be in what the server did not say.
    private func outcome(of query: Query) -> Outcome {
        var found: Resolution?
        var failure: ResolverError?
        for answer in options.family.queried.compactMap({ query.answers[$0] }) {
            switch answer {
            case .success(let resolution):
                found = Resolution(
                    addresses: (found?.addresses ?? []) + resolution.addresses,
                    expires: min(found?.expires ?? .never, resolution.expires))
            case .failure(let error): if failure?.isOfServers != true { failure = error }
            }
        }
        guard var found else { return .failure(failure ?? .notFound) }
        found.addresses = options.family.apply(to: AddressOrder.sorted(found.addresses, source: Sockets.source))
        return .success(found)
    }

    /// Calls the tickets at the end of the turn. Their callers may do anything then, even release the resolver.
    private func deliver(_ outcome: Outcome, to query: Query) {
        let tickets = query.takeTickets()
        loop.afterTurn { for ticket in tickets { ticket.deliver(outcome) } }
    }

    /// Puts the outcome into the cache. Returns what the look-ups get.
    private func note(_ outcome: Outcome, of query: Query) -> Outcome {
        if case .failure(let error) = outcome {
            if error.isOfServers, let stale = staleOutcome(query.host, for: query.waitingCount) { return stale }
            stats.failures += 1
        }
        cache.store(outcome, for: query.host, expires: expiry(of: outcome), staleFor: lifetimeAfterExpiry(of: outcome))
        return outcome
    }

    private func lifetimeAfterExpiry(of outcome: Outcome) -> Duration {
        switch outcome {
        case .success: options.stale
        case .failure: .zero
        }
    }

    // MARK: Expired addresses (RFC 8767)

    /// The expired addresses of the host, which are used for `refreshPause` from now on. Returns nil if there are none.
    private func staleOutcome(_ host: String, for lookUps: Int) -> Outcome? {
        guard let stale = cache.reviveAddresses(of: host, at: loop.now, for: options.refreshPause) else { return nil }
        stats.stale += UInt64(lookUps)
        return .success(stale)
    }

    /// If the servers take longer than `refreshWait`, the look-ups get the expired addresses, where there are some. The query goes on.
    private func startTimer(of query: Query) {
        guard cache.lastAddresses(of: query.host, at: loop.now) != nil else { return }
        let timer = Timer { [weak self, unowned query] in
            guard let self else { return }
            noteSilence(of: query)
            guard let outcome = staleOutcome(query.host, for: query.waitingCount) else { return }
            deliver(outcome, to: query)
        }
        query.timer = timer
        loop.timers.schedule(timer, after: options.refreshWait)
    }

    /// What came of the question for one family.
    private func outcome(_ status: CInt, _ answer: UnsafeMutablePointer<ares_addrinfo>?) -> Outcome {
        guard status == CInt(ARES_SUCCESS) else { return .failure(ResolverError(status: status)) }
        guard let answer = unsafe answer else { return .failure(.notFound) }
        var addresses: [SocketAddress] = []
        var ttl = CInt.max
        var node = unsafe answer.pointee.nodes
        // Whoever owns a name decides how many there are, and each costs a comparison with all others, and a socket where it is sorted.
        while let current = unsafe node, addresses.count < options.addressesMax {
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

    /// One name that servers are asked about, a question for each family, and the look-ups that wait for the answers.
    private final class Query {
        let host: String
        weak var resolver: Resolver?
        /// It outlives its queries: it ends them before it goes.
        unowned let channel: ResolverChannel
        /// For whom the servers were asked.
        let asker: SocketAddress?
        private var tickets: [ResolverTicket] = []
        /// The look-ups that have not ended.
        var waitingCount: Int { tickets.count { $0.isWaiting } }
        /// The families whose questions are open.
        var awaited: Set<SocketAddress.Family>
        /// What the last question for each family has come to.
        var answers: [SocketAddress.Family: Outcome] = [:]
        /// Runs while expired addresses may replace the answer.
        var timer: Timer?
        /// Runs while the addresses of one family wait for the other.
        var delay: PreciseTimer?
        /// The families that have not come within the delay.
        var late: Set<SocketAddress.Family> = []
        /// The look-ups have been answered with the addresses of one family.
        var hasDeliveredPart = false
        /// When the servers were asked.
        var began: MonotonicTime
        private unowned let loop: EventLoop

        init(
            _ host: String, _ families: [SocketAddress.Family], _ resolver: Resolver, _ channel: ResolverChannel,
            _ asker: SocketAddress?
        ) {
            self.host = host
            self.asker = asker
            self.resolver = resolver
            self.channel = channel
            awaited = Set(families)
            loop = resolver.loop
            began = loop.now
        }

        /// The look-ups of `other` wait for this query, each until its own deadline.
        func takeOver(from other: Query) {
            tickets = other.tickets.filter { $0.isWaiting }
            other.tickets = []
        }

        func add(_ ticket: ResolverTicket) {
            // Those that have ended are dropped where the array would grow for the new one.
            if tickets.count == tickets.capacity { tickets.removeAll { !$0.isWaiting } }
            tickets.append(ticket)
        }

        /// Takes the look-ups out, whose time limits end.
        func takeTickets() -> [ResolverTicket] {
            defer { tickets = [] }
            for ticket in tickets { loop.timers.cancel(ticket) }
            return tickets
        }

        func stopTimers() {
            if let timer { loop.timers.cancel(timer) }
            delay?.stop()
            (timer, delay) = (nil, nil)
        }
    }
}

/// One look-up under way. Its time limit runs while it waits for a query.
package final class ResolverTicket: TimedObject {
    fileprivate let host: String
    /// When it fails.
    fileprivate var end: MonotonicTime
    private weak var resolver: Resolver?
    private let timers: TimerWheel
    private var done: ((Resolver.Outcome) -> Void)?

    fileprivate init(
        _ host: String, _ resolver: Resolver, _ timers: TimerWheel, end: MonotonicTime,
        _ done: @escaping (Resolver.Outcome) -> Void
    ) {
        self.host = host
        self.end = end
        self.resolver = resolver
        self.timers = timers
        self.done = done
    }

    fileprivate var isWaiting: Bool { done != nil }

    /// Cancels the look-up. The answer still goes into the cache.
    package func cancel() {
        done = nil
        timers.cancel(self)
    }

    fileprivate func deliver(_ outcome: Resolver.Outcome) {
        guard let done else { return }
        self.done = nil
        done(outcome)
    }

    override package func timerFired() {
        guard let resolver else { return deliver(.failure(.timedOut)) }
        resolver.timeHasCome(for: self)
    }
}

extension Resolver.FamilyPreference {
    /// The families that servers are asked for, each in a question of its own.
    fileprivate var queried: [SocketAddress.Family] {
        switch self {
        case .any, .preferIPv4, .preferIPv6: [.v4, .v6]
        case .ipv4: [.v4]
        case .ipv6: [.v6]
        }
    }
}
