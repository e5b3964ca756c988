import Accounts
import CLarder
import EventLoop
import Caching
import Forwarding
import Framing
import Glibc
import LimitTables
import LogIns
import Message
import Authentication
import Routing
import Storage
import TLS
import Transaction
import Synchronization
import Transport

/// One thread with its event loop, and everything that lives on it: listeners, client connections, fetches, origin pools, buffers.
///
/// Other threads read `counters` and post jobs to `loop.inbox`; they use nothing else. Everything else here, and every object that the
/// worker owns, belongs to the worker's thread and needs no lock.
@safe final class Worker {
    let number: Int
    let loop: EventLoop
    /// The time limits of `loop`.
    let timers: TimerWheel
    let shared: Shared
    let counters: Counters
    let log: AccessLogBuffer
    /// Those of `shared`.
    let provenAccess: SharedProofs
    /// The configuration for requests that begin now.
    var snapshot: Snapshot
    /// The zones of `snapshot`. The first one is the default zone.
    private(set) var zones: [Zone] {
        didSet { unsafe scratch.pointee.defaultZone = Unmanaged.passUnretained(zones[0]) }
    }
    /// Values that hits read and write. Behind a pointer, so that no access needs a dynamic exclusivity check.
    let scratch: UnsafeMutablePointer<Scratch>
    /// Sockets are read into this buffer. Its content is valid until the next read on this worker: keep a copy of what is needed longer.
    let readBuffer: UnsafeMutableRawBufferPointer
    /// Bodies from the disk are read into this buffer on their way to a client. `readBuffer` may still hold requests.
    let diskBuffer: UnsafeMutableRawBufferPointer
    /// What `diskBuffer` holds; nil if nothing.
    var diskContent: DiskContent?
    /// Heads and small bodies of hits are written into this buffer. It is unused between two hits.
    let outBuffer: UnsafeMutableRawBufferPointer
    /// Vectors for `writev`. Unused between two writes.
    let vectors: UnsafeMutableBufferPointer<iovec>
    let destinations = Destinations()
    let connectHistory = ConnectHistory()
    /// A budget calls nothing: the unchecked access is exclusive.
    var retryBudget: RetryBudget {
        _read { yield unsafe uncheckedRetryBudget }
        _modify { yield unsafe &uncheckedRetryBudget }
    }
    @exclusivity(unchecked) private var uncheckedRetryBudget = RetryBudget()
    let pipes = PipePool()
    let clients = Slab<ClientConnection>()
    /// Clients of which is not known yet what they speak.
    let arrivals = Slab<Doorstep>()
    /// Tunnels that are being opened.
    let doorsteps = Slab<TunnelDoorstep>()
    /// For TLS with clients.
    let records = RecordBuffer()
    let fetches = Slab<Fetch>()
    let tunnels = Slab<Tunnel>()
    /// Grows when what proves who a client is may have changed: settings, files, keys.
    private(set) var proofsNumber: UInt64 = 0
    private var closedClients: [ClientConnection] = []
    private var endedDoorsteps: [TunnelDoorstep] = []
    private var endedArrivals: [Doorstep] = []
    private(set) var isDraining = false
    private var listeners: [Listener] = []
    private(set) var resolver: Resolver!
    private(set) var origins: OriginPools!
    /// The origin of `larder doctor`.
    private(set) var checkOrigin: CheckOriginServer!
    var credentials: VerifiedCredentials
    /// Answers that are held back. Each belongs to a client with a place of its own, which bounds them.
    private var held: [UInt64: Timer] = [:]
    private var lastHeld: UInt64 = 0
    let credentialDesk = CredentialDesk()
    let tokenDesk: TokenDesk
    let routeWaits = RouteWaits()
    var pageBodies = PageBodies()
    /// Nil: no job learns.
    var learner: WorkerLearner?
    /// `LearningBook.changeCount` when `learner` was made.
    var learningChanges: UInt64 = 0
    /// The client connections that send when the present turn of a body's writer is over.
    let readers: ReaderQueue
    private let thread = pthread_self()

    /// What clients may repeat in their next requests.
    let headMemory = HeadMemory()

    /// The parsed form of the present request or response, and the settings that every request needs, as plain values.
    @safe struct Scratch {
        var limits = Limits()
        /// Whether no authentication, no access rule, no cache rule and no limit has to look at a request.
        var isOpen = false
        /// Grows with whatever takes decisions about clients back: a reload, and a client that begins to have to wait.
        var settingsNumber: UInt64 = 0
        /// Whether a stored redirect may have to be followed.
        var followsRedirects = false
        var clientIdleNanoseconds: UInt64 = 0
        let plainGet = CacheRequest(method: .get, fields: Fields())
        let plainHead = CacheRequest(method: .head, fields: Fields())
        let fieldsOfConcern = FieldsOfConcern()

        /// The first of the worker's zones. Unretained: `zones` owns it.
        var defaultZone: Unmanaged<Zone>
        /// Unretained: the worker owns it.
        let timers: Unmanaged<TimerWheel>
        /// That of `Shared`.
        let keyHasher: Shared.Hasher
        var requestHead = RequestHead()
        var responseHead = ResponseHead()
        /// The normalised URI of the present request, where somebody needed it.
        var keyBytes: [UInt8] = []
    }

    static let readBufferBytes = 256 << 10
    static let outBufferBytes = 256 << 10
    static let diskBufferBytes = 256 << 10
    /// 256 pages of 256 KiB are 64 MiB, far more than a socket accepts at once.
    static let vectorsMax = 256

    init(number: Int, shared: Shared, snapshot: Snapshot) throws {
        self.number = number
        self.shared = shared
        provenAccess = shared.provenAccess
        self.snapshot = snapshot
        zones = shared.zones.current
        loop = try EventLoop()
        timers = loop.timers
        readers = ReaderQueue(loop: loop, clients: clients)
        tokenDesk = TokenDesk(loop: loop, tickets: shared.tickets)
        counters = Counters()
        log = AccessLogBuffer(
            sink: shared.accessLog, counters: counters, loop: loop, worker: number, ids: shared.requestIDs)
        unsafe scratch = .allocate(capacity: 1)
        unsafe scratch.initialize(
            to: Scratch(
                defaultZone: Unmanaged.passUnretained(zones[0]), timers: Unmanaged.passUnretained(timers),
                keyHasher: shared.hasher))
        unsafe readBuffer = .allocate(byteCount: Worker.readBufferBytes, alignment: 64)
        unsafe diskBuffer = .allocate(byteCount: Worker.diskBufferBytes, alignment: 4096)
        unsafe outBuffer = .allocate(byteCount: Worker.outBufferBytes, alignment: 64)
        unsafe vectors = .allocate(capacity: Worker.vectorsMax)
        credentials = Worker.credentialMemory(snapshot, shared)
        resolver = try Resolver(
            loop: loop, options: Resolver.Options(snapshot.configuration.dns, judge: shared.nameServers))
        origins = OriginPools(worker: self)
        checkOrigin = CheckOriginServer(loop: loop, records: shared.checkRecords, limits: snapshot.limits)
        copySettings(of: snapshot)
        adoptLearning()
    }

    private static func credentialMemory(_ snapshot: Snapshot, _ shared: Shared) -> VerifiedCredentials {
        var bounds = VerifiedCredentials.Bounds()
        bounds.remember = snapshot.configuration.access.authentication.basic.remember
        let key = shared.digestKey
        return VerifiedCredentials(bounds: bounds, attempts: shared.attempts) { Digest.hmacSHA256(key: key, $0) }
    }

    deinit {
        unsafe scratch.deinitialize(count: 1)
        unsafe scratch.deallocate()
        unsafe readBuffer.deallocate()
        unsafe diskBuffer.deallocate()
        unsafe outBuffer.deallocate()
        unsafe vectors.deallocate()
    }

    /// What conversations with origins read and parse into.
    var conversationMemory: ConversationMemory {
        unsafe ConversationMemory(
            input: readBuffer, head: scratch.pointer(to: \.responseHead)!,
            limits: UnsafePointer(scratch.pointer(to: \.limits)!))
    }

    /// The monotonic time as a duration.
    var uptime: Duration { .nanoseconds(Int64(clamping: loop.now.nanoseconds)) }

    /// The wall clock at the beginning of this turn.
    var wallTime: WallTime { WallTime(ticks: loop.wallTicks) }

    var moment: Moment { Moment(uptime: uptime, wallTime: wallTime) }

    /// Makes a wake that any thread may call. It runs `work` on this thread, in a later turn.
    func wake(_ work: @escaping @Sendable (Worker) -> Void) -> Wake {
        let inbox = loop.inbox
        let worker = WorkerReference(self)
        return Wake { inbox.post { work(worker.value) } }
    }

    /// Makes a wake for a connection that waits for a body. If the body's writer is on this thread, the connection sends at the end of the
    /// writer's turn; from another thread the wake posts a job.
    func wakeReader(_ id: ConnectionID) -> Wake {
        let inbox = loop.inbox
        let worker = WorkerReference(self)
        return Wake {
            if worker.value.isOwnThread { return worker.value.readers.add(id) }
            inbox.post { worker.value.clients[id]?.bodyGrew() }
        }
    }

    private var isOwnThread: Bool { pthread_equal(pthread_self(), thread) != 0 }

    /// Accepts connections on a listening socket.
    func listen(on socket: ListeningSocket) { listeners.append(Listener(worker: self, socket)) }

    /// Takes an accepted connection. It is closed at once if the worker is draining or a limit of connections is reached. A client that may
    /// not use the proxy is kept: it gets a refusal as the answer to its request.
    func accept(_ transport: consuming Transport, from peer: IPAddress?, by listener: ListenerTerms) {
        guard let taken = takePlace() else { return }
        if listener.trusts(peer) {
            counters.add(.clientConnectionsAccepted)
            return Doorstep.open(
                worker: self, listener: listener, peer: peer, place: taken, transport: transport, received: [],
                isTrusted: true)
        }
        guard let place = listener.isForPeers ? taken : place(taken, of: peer) else {
            return counters.closes.add(Int(CloseReason.tooManyOfClient.rawValue), 1)
        }
        let isAdmitted = listener.isForPeers || snapshot.access.admits(client: peer)
        if !isAdmitted { counters.add(.clientConnectionsRefused) }
        accept(transport, ClientContext(peer: peer, isAdmitted: isAdmitted, listener: listener), place)
    }

    /// Takes a connection with this process itself.
    func accept(_ transport: consuming Transport, of program: ProgramLink) {
        guard let place = takePlace() else { return }
        let context = ClientContext(
            peer: nil, isAdmitted: true, proof: program.identity.map { ConnectionProof(given: $0) }, listener: nil,
            program: program)
        accept(transport, context, place)
    }

    /// The place of a new client connection. Nil if it is to be closed at once.
    private func takePlace() -> Occupancy.Place? {
        guard !isDraining else { return refuseConnection(.draining) }
        guard shared.overload.state != .overloaded else { return refuseConnection(.overloaded) }
        return shared.clients.take(limit: snapshot.limits.clientsMax) ?? refuseConnection(.tooManyClients)
    }

    /// The place of a client with the address, under `limits.rules`. Nil if a limit of connections is reached: the connection is to be closed.
    func place(_ place: Occupancy.Place, of peer: IPAddress?) -> Occupancy.Place? {
        guard snapshot.countsConnections else { return place }
        switch connectionLimits(of: peer) {
        case .success(let limits): return Occupancy.Place(place, with: limits)
        case .failure(let refusal):
            note(refusal)
            counters.add(.clientConnectionsRefused)
            return nil
        }
    }

    private func refuseConnection(_ reason: CloseReason) -> Occupancy.Place? {
        counters.add(.clientConnectionsRefused)
        counters.closes.add(Int(reason.rawValue), 1)
        return nil
    }

    private func accept(_ transport: consuming Transport, _ context: ClientContext, _ place: Occupancy.Place) {
        counters.add(.clientConnectionsAccepted)
        let client = clients.insert {
            ClientConnection(worker: self, id: $0, context: context, place: place)
        }
        client.start(over: transport)
    }

    /// Takes a connection whose first bytes have been read: one in an opened tunnel, or one behind a doorstep.
    func accept(
        _ transport: consuming Transport, _ context: ClientContext, _ place: Occupancy.Place,
        received bytes: UnsafeRawBufferPointer
    ) {
        let client = clients.insert {
            ClientConnection(worker: self, id: $0, context: context, place: place)
        }
        unsafe client.start(over: transport, received: bytes)
    }

    /// Takes a connection that is refused before it has made a request.
    func refuse(
        _ transport: consuming Transport, _ context: ClientContext, _ place: Occupancy.Place, _ reason: CloseReason,
        reply: [UInt8]
    ) {
        let client = clients.insert {
            ClientConnection(worker: self, id: $0, context: context, place: place)
        }
        client.start(over: transport, refusing: reason, reply: reply)
    }

    /// Removes a client that has another owner, or has closed.
    func forget(arrival id: ConnectionID) {
        guard let ended = arrivals.remove(id) else { return }
        // One of its methods is running: release it at the end of the turn.
        if endedArrivals.isEmpty {
            loop.afterTurn { [unowned self] in
                endedArrivals.removeAll()
                stopIfDrained()
            }
        }
        endedArrivals.append(ended)
    }

    /// Removes a tunnel that has been opened or closed.
    func forget(doorstep id: ConnectionID) {
        guard let ended = doorsteps.remove(id) else { return }
        // One of its methods is running: release it at the end of the turn.
        if endedDoorsteps.isEmpty {
            loop.afterTurn { [unowned self] in
                endedDoorsteps.removeAll()
                stopIfDrained()
            }
        }
        endedDoorsteps.append(ended)
    }

    /// Removes a connection that has closed or become a tunnel. Its number finds nothing from here on.
    ///
    /// - Parameter isOver: false if a doorstep goes on with it, so that it is not counted as closed.
    func forget(_ id: ConnectionID, isOver: Bool = true) {
        guard let client = clients.remove(id) else { return }
        precondition(client.phase == .closed || client.phase == .tunnelling, "an open connection is not forgotten")
        if isOver { counters.add(.clientConnectionsClosed) }
        // One of its methods may be running: release it at the end of the turn.
        if closedClients.isEmpty { loop.afterTurn { [unowned self] in closedClients.removeAll() } }
        closedClients.append(client)
        stopIfDrained()
    }

    // MARK: reload, drain, stop

    /// Uses a new configuration for the requests that begin from now on.
    ///
    /// - Parameter zones: the zones of `snapshot`. `Zones.current` may already belong to a newer one.
    func adopt(_ snapshot: Snapshot, zones: [Zone]) {
        precondition(isOwnThread, "a worker is used by its own thread")
        precondition(
            zones.count == snapshot.cacheRules.zoneNames.count, "the zones and the rules belong to one configuration")
        // What was remembered holds on where the same is asked: it is found by the stored hash of the user.
        if snapshot.configuration.access.authentication != self.snapshot.configuration.access.authentication {
            credentials = Worker.credentialMemory(snapshot, shared)
        }
        // A token was verified with a key that the file may not have any more.
        credentials.tokens.forgetAll()
        proofsNumber += 1
        self.snapshot = snapshot
        self.zones = zones
        copySettings(of: snapshot)
        pageBodies.removeAll()
    }

    /// Looks at credentials, and takes back what was decided about clients if one of them begins to have to wait.
    func noticingWaits<Result>(_ body: () -> Result) -> Result {
        let result = body()
        if credentials.takeBegunWait() { shared.closeShortWays() }
        return result
    }

    /// Calls `body` after a time, on this worker's thread, unless the worker ends before.
    func hold(for delay: Duration, _ body: @escaping () -> Void) {
        lastHeld &+= 1
        let timer = Timer { [unowned self, number = lastHeld] in
            held[number] = nil
            body()
        }
        held[lastHeld] = timer
        timers.schedule(timer, after: delay)
    }

    /// What proves who a client is has changed: nobody is known any more because of what was true before. Passwords are remembered with the hash
    /// that they were compared with, so those of others stay.
    func forgetProofs() {
        closeShortWays()
        credentials.tokens.forgetAll()
        proofsNumber += 1
    }

    /// Ends the tunnels of those who are no longer who they proved to be.
    private func reviewTunnels() {
        for tunnel in tunnels.occupants { tunnel.reviewProof(on: self) }
    }

    /// No request is allowed any more because one before it was.
    func closeShortWays() { unsafe scratch.pointee.settingsNumber += 1 }

    /// No rule and nothing else has to look at a request if there are none, nobody authenticates and no job learns.
    func decideAboutShortWays() {
        closeShortWays()
        unsafe scratch.pointee.isOpen =
            snapshot.access.isOpen && !snapshot.mayHaveIdentity && snapshot.cacheRulesAreTrivial && learner == nil
            && snapshot.limitPlan.isEmpty
    }

    /// Copies the settings that every request needs into `scratch`.
    private func copySettings(of snapshot: Snapshot) {
        decideAboutShortWays()
        unsafe scratch.pointee.limits = snapshot.limits
        unsafe scratch.pointee.followsRedirects = snapshot.followsRedirects
        unsafe scratch.pointee.clientIdleNanoseconds = UInt64(
            clamping: snapshot.configuration.timeouts.clientIdle.wholeNanoseconds)
    }

    /// How long a client that has connected may take for its first request when Larder stops.
    private static let lastRequestWait = Duration.seconds(1)

    /// Stops accepting. Connections close after their present answer, and idle ones now, unless a request may be on its way: a new client gets
    /// an answer if it asks soon.
    func drain() {
        precondition(isOwnThread, "a worker is used by its own thread")
        guard !isDraining else { return }
        for listener in listeners { listener.acceptLast() }
        isDraining = true
        listeners.removeAll()
        for client in clients.occupants where client.isIdle && !client.mayBeAsking { client.close(.draining) }
        hold(for: Worker.lastRequestWait) { [unowned self] in closeSilent() }
        stopIfDrained()
    }

    /// Closes the connections on which no request is under way.
    private func closeSilent() {
        for arrival in arrivals.occupants { arrival.close(.draining) }
        for doorstep in doorsteps.occupants where doorstep.isIdle { doorstep.close(.draining) }
        for client in clients.occupants where client.isIdle { client.close(.draining) }
        stopIfDrained()
    }

    /// Ends the worker at the end of the turn, if it is draining and no connection and no tunnel is left then. Within a turn, a connection may be on its way
    /// from one owner to the next, and belong to none.
    func stopIfDrained() {
        guard isDraining, !hasConnections else { return }
        loop.afterTurn { [unowned self] in if !hasConnections { finish() } }
    }

    private var hasConnections: Bool {
        clients.count > 0 || arrivals.count > 0 || doorsteps.count > 0 || tunnels.count > 0
    }

    /// Ends the worker now: closes every connection, tunnel and fetch.
    func finish() {
        precondition(isOwnThread, "a worker is used by its own thread")
        isDraining = true
        listeners.removeAll()
        // Clients first, then tunnels, then fetches: an exchange that ends detaches its fetch, and a fetch returns its stream to the pools,
        // which close what is left. Closing the last client may call this again from `stopIfDrained`; every step may run twice.
        for arrival in arrivals.occupants { arrival.close(.stopped) }
        for doorstep in doorsteps.occupants { doorstep.close(.stopped) }
        for client in clients.occupants { client.close(.stopped) }
        for tunnel in tunnels.occupants { tunnel.relay.cancel() }
        for fetch in fetches.occupants { fetch.abort() }
        origins.closeAll()
        if let ticker { timers.cancel(ticker) }
        if let collector { timers.cancel(collector) }
        for timer in held.values { timers.cancel(timer) }
        held = [:]
        log.stop()
        counters.gauges.set(Gauge.isFinished.rawValue, 1)
        loop.stop()
    }

    /// Looks whether the wall clock was set. What ends by the wall clock was examined once, and since then its end is awaited by the other clock: if the wall clock was set
    /// forward, or the machine has slept, the end may have passed.
    private func watchClock() {
        guard let change = clockWatch.change(at: moment) else { return }
        if change > .zero { forgetProofs() }
        guard number == 0 else { return }
        Diagnostics.warning(
            change > .zero
                ? "the clock of this machine is \(change.count) s further than it was"
                : "the clock of this machine was set back by \(-change.count) s: responses that were stored meanwhile are validated"
        )
    }
    private var clockWatch = ClockWatch()

    /// What is due once a second.
    private func tick() {
        watchClock()
        publishGauges()
        origins.closeOutdatedLogIns(snapshot.secrets)
        // One worker looks after what is of all of them.
        if number == 0 {
            shared.cookies.tend(on: shared.pool)
            shared.budgets.tend(on: shared.pool, now: uptime)
            shared.overload.look(memoryMax: snapshot.configuration.memoryMax)
        }
        shedIdle()
        reviewTunnels()
        tendLearning()
        guard let ticker, !isDraining else { return }
        timers.schedule(ticker, after: .seconds(1))
    }
    private var ticker: Timer?

    /// Takes back what others have freed of the memory of this thread, where it is due.
    private func collect() {
        guard let collector, !isDraining else { return }
        timers.schedule(collector, after: .milliseconds(100))
        let start = MonotonicTime.read()
        let freed = ThreadMemory.freedByOthers
        guard collectPace.isDue(freed: freed, after: start.duration(since: lastCollected)) else { return }
        ThreadMemory.collect()
        lastCollected = .read()
        collectPace.took(lastCollected.duration(since: start), freed: freed)
    }
    // Of the wheel: a timer of libevent would cost each hit 200 instructions (`TickEvent`).
    private var collector: Timer?
    private var lastCollected = MonotonicTime(nanoseconds: 0)
    private var collectPace = CollectPace()

    /// Publishes the gauges for other threads.
    private func publishGauges() {
        let gauges = counters.gauges
        gauges.set(Gauge.originConnectionsOpen.rawValue, UInt64(origins.openCount))
        gauges.set(Gauge.originConnectionsIdle.rawValue, UInt64(origins.idleCount))
        gauges.set(Gauge.originPinsOpen.rawValue, UInt64(origins.pinsOpen))
        gauges.set(Gauge.nameQueries.rawValue, resolver.stats.queries)
        gauges.set(Gauge.nameHits.rawValue, resolver.stats.cacheHits)
        gauges.set(Gauge.nameFailures.rawValue, resolver.stats.failures)
        gauges.set(Gauge.namesStale.rawValue, resolver.stats.stale)
        gauges.set(Gauge.namesUnasked.rawValue, resolver.stats.unasked)
        gauges.set(Gauge.namesKept.rawValue, UInt64(resolver.namesKept))
    }

    /// Runs the loop until `finish`. On the worker's thread.
    func run() {
        ThreadMemory.number = UInt8(exactly: number + 1) ?? 0
        log.start()
        ticker = Timer { [unowned self] in tick() }
        tick()
        collector = Timer { [unowned self] in collect() }
        collect()
        loop.run()
        breakReferenceCycles()
    }

    /// Breaks the reference cycles between the worker, its pools and its timers, so that everything is released.
    private func breakReferenceCycles() {
        precondition(clients.count == 0 && tunnels.count == 0, "no connection outlives its worker")
        closedClients.removeAll()
        endedDoorsteps.removeAll()
        doorsteps.removeAll()
        endedArrivals.removeAll()
        arrivals.removeAll()
        fetches.removeAll()
        ticker = nil
        collector = nil
        origins = nil
        resolver = nil
    }
}
