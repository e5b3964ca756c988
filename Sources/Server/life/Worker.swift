import CLarder
import EventLoop
import Caching
import Forwarding
import Framing
import Glibc
import Message
import Access
import Routing
import Storage
import TLS
import Transaction
import Synchronization

/// One thread, one loop, and all that lives and dies on it: listeners, client connections, origin pools, buffers.
///
/// Nothing here is touched by another thread, save `counters` (read) and `loop.inbox` (posted to).
@safe final class Worker {
    let number: Int
    let loop: EventLoop
    let shared: Shared
    let counters: Counters
    let log: AccessLogBuffer
    /// The configuration in force for requests that begin now.
    var snapshot: Snapshot
    /// The caches of that configuration; the first is the default one.
    private(set) var zones: [Zone]
    /// What the hot path writes into; behind a pointer, so that no access needs a dynamic exclusivity check.
    let scratch: UnsafeMutablePointer<Scratch>
    /// Whatever a socket has to say lands here first.
    let readBuffer: UnsafeMutableRawBufferPointer
    /// What is read from the disk on its way to a client: `readBuffer` may hold requests that are not answered yet.
    let diskBuffer: UnsafeMutableRawBufferPointer
    /// What is in `diskBuffer`; nil: nothing.
    var diskContent: DiskContent?
    /// Heads and small bodies on their way out.
    let outBuffer: UnsafeMutableRawBufferPointer
    /// For gathering writes.
    let vectors: UnsafeMutableBufferPointer<iovec>
    var destinations = Destinations()
    let pipes = PipePool()
    var clients = Slab<ClientConnection>()
    var fetches = Slab<Fetch>()
    var tunnels: [ObjectIdentifier: TunnelRelay] = [:]
    private var departed: [ClientConnection] = []
    private(set) var isDraining = false
    private var listeners: [Listener] = []
    private(set) var resolver: Resolver!
    private(set) var origins: OriginPools!
    var credentials: VerifiedCredentials
    var credentialDesk = CredentialDesk()
    /// Client connections with something to send, when the writer of their bodies has had its turn.
    private(set) var readers: ReaderQueue!
    private let thread = pthread_self()

    /// State of the request that is being looked at, never kept from one to the next; and what of the configuration
    /// every request looks at, as plain values.
    struct Scratch {
        var limits = Limits()
        /// Nobody is asked who they are, and no rule looks at requests, of access or cache.
        var isOpen = false
        var clientIdleNanoseconds: UInt64 = 0
        let plainGet = CacheRequest(method: .get, fields: Fields())
        let plainHead = CacheRequest(method: .head, fields: Fields())
        let careful = FieldsOfConcern()

        var requestHead = RequestHead()
        var responseHead = ResponseHead()
        var keyBytes: [UInt8] = []
        var out: [UInt8] = []
    }

    static let readBufferBytes = 256 << 10
    static let outBufferBytes = 256 << 10
    static let diskBufferBytes = 256 << 10
    /// 256 pages of 256 KiB: 64 MiB in one call, far beyond any socket buffer.
    static let vectorsMax = 256

    init(number: Int, shared: Shared, snapshot: Snapshot) throws {
        self.number = number
        self.shared = shared
        self.snapshot = snapshot
        zones = shared.zones.current
        loop = try EventLoop()
        counters = Counters()
        log = AccessLogBuffer(sink: shared.accessLog, counters: counters)
        unsafe scratch = .allocate(capacity: 1)
        unsafe scratch.initialize(to: Scratch())
        unsafe readBuffer = .allocate(byteCount: Worker.readBufferBytes, alignment: 64)
        unsafe diskBuffer = .allocate(byteCount: Worker.diskBufferBytes, alignment: 4096)
        unsafe outBuffer = .allocate(byteCount: Worker.outBufferBytes, alignment: 64)
        unsafe vectors = .allocate(capacity: Worker.vectorsMax)
        credentials = Worker.credentialMemory(snapshot, shared)
        resolver = try Resolver(loop: loop, options: Worker.resolverOptions(snapshot))
        origins = OriginPools(worker: self)
        readers = ReaderQueue(loop: loop) { [unowned self] in clients[$0]?.bodyGrew() }
        unfold(snapshot)
    }

    private static func resolverOptions(_ snapshot: Snapshot) -> Resolver.Options {
        var options = Resolver.Options()
        let dns = snapshot.configuration.dns
        options.ttlMin = dns.ttlMin
        options.ttlMax = dns.ttlMax
        options.negativeTTL = dns.negative
        return options
    }

    private static func credentialMemory(_ snapshot: Snapshot, _ shared: Shared) -> VerifiedCredentials {
        var bounds = VerifiedCredentials.Bounds()
        if let authentication = snapshot.configuration.access.authentication {
            bounds.remember = authentication.remember
        }
        let key = shared.digestKey
        return VerifiedCredentials(bounds: bounds) { Digest.hmacSHA256(key: key, $0) }
    }

    deinit {
        unsafe scratch.deinitialize(count: 1)
        unsafe scratch.deallocate()
        unsafe readBuffer.deallocate()
        unsafe diskBuffer.deallocate()
        unsafe outBuffer.deallocate()
        unsafe vectors.deallocate()
    }

    /// Monotonic time as a span.
    var uptime: Duration { .nanoseconds(Int64(clamping: loop.now.nanoseconds)) }

    /// The wall clock of this turn.
    var wallTime: WallTime { WallTime(ticks: loop.wallTicks) }

    /// A wake-up from any thread that does its work on this one, later.
    func wake(_ work: @escaping @Sendable (Worker) -> Void) -> Wake {
        let inbox = loop.inbox
        let worker = WorkerReference(self)
        return Wake { inbox.post { work(worker.value) } }
    }

    /// A wake-up for a connection whose body grew or ended. A writer on this thread lets it send at the end of its own turn; a writer on
    /// another thread sends word.
    func wakeReader(_ id: ConnectionID) -> Wake {
        let inbox = loop.inbox
        let worker = WorkerReference(self)
        return Wake {
            if worker.value.isOwnThread { return worker.value.readers.add(id) }
            inbox.post { worker.value.clients[id]?.bodyGrew() }
        }
    }

    private var isOwnThread: Bool { pthread_equal(pthread_self(), thread) != 0 }

    func listen(on descriptor: consuming Descriptor, kind: Listener.Kind) {
        listeners.append(Listener(worker: self, descriptor: descriptor, kind: kind))
    }

    /// Takes a connection that was accepted. A client that is not named gets its refusal as the answer to its request.
    func welcome(_ transport: consuming Transport, from peer: IPAddress?) {
        guard !isDraining else {
            counters.add(.clientConnectionsRefused)
            counters.closes.add(Int(CloseReason.draining.rawValue), 1)
            return
        }
        guard let place = shared.clients.take(limit: snapshot.limits.clientsMax) else {
            counters.add(.clientConnectionsRefused)
            counters.closes.add(Int(CloseReason.tooManyClients.rawValue), 1)
            return
        }
        let isAdmitted = snapshot.access.admits(client: peer)
        if !isAdmitted { counters.add(.clientConnectionsRefused) }
        counters.add(.clientConnectionsAccepted)
        let context = ClientContext(peer: peer, isAdmitted: isAdmitted)
        let client = clients.insert {
            ClientConnection(worker: self, id: $0, context: context, place: place)
        }
        client.start(over: transport)
    }

    func forget(_ id: ConnectionID) {
        guard let client = clients.remove(id) else { return }
        counters.add(.clientConnectionsClosed)
        // One of its own methods may be running: it goes at the end of the turn.
        if departed.isEmpty { loop.afterTurn { [unowned self] in departed.removeAll() } }
        departed.append(client)
        stopIfDrained()
    }

    // MARK: reload, drain, stop

    /// - Parameter zones: those of the snapshot; by now there may be a newer one with others.
    func adopt(_ snapshot: Snapshot, zones: [Zone]) {
        self.snapshot = snapshot
        self.zones = zones
        unfold(snapshot)
        credentials = Worker.credentialMemory(snapshot, shared)
    }

    private func unfold(_ snapshot: Snapshot) {
        unsafe scratch.pointee.limits = snapshot.limits
        unsafe scratch.pointee.isOpen =
            snapshot.access.isOpen && snapshot.authenticator == nil && snapshot.cacheRules.isTrivial
        unsafe scratch.pointee.clientIdleNanoseconds = UInt64(
            clamping: snapshot.configuration.timeouts.clientIdle.wholeNanoseconds)
    }

    /// Accepts nobody more; idle connections close now, busy ones with their answer.
    func drain() {
        isDraining = true
        listeners.removeAll()
        for client in clients.occupants where client.isIdle { client.close(.draining) }
        stopIfDrained()
    }

    func stopIfDrained() {
        guard isDraining, clients.count == 0, tunnels.isEmpty else { return }
        finish()
    }

    /// Ends everything, finished or not.
    func finish() {
        isDraining = true
        listeners.removeAll()
        for client in clients.occupants { client.close(.stopped) }
        for tunnel in tunnels.values { tunnel.cancel() }
        tunnels.removeAll()
        for fetch in fetches.occupants { fetch.abort() }
        origins.closeAll()
        if let gaugeTimer { loop.timers.cancel(gaugeTimer) }
        log.stop()
        counters.gauges.set(Gauge.isFinished.rawValue, 1)
        loop.stop()
    }

    /// Shows what is now to those who read from other threads, once a second.
    private func publishGauges() {
        let gauges = counters.gauges
        gauges.set(Gauge.originConnectionsOpen.rawValue, UInt64(origins.openCount))
        gauges.set(Gauge.originConnectionsIdle.rawValue, UInt64(origins.idleCount))
        gauges.set(Gauge.nameQueries.rawValue, resolver.stats.queries)
        gauges.set(Gauge.nameHits.rawValue, resolver.stats.cacheHits)
        gauges.set(Gauge.nameFailures.rawValue, resolver.stats.failures)
        guard let gaugeTimer, !isDraining else { return }
        loop.timers.schedule(gaugeTimer, after: .seconds(1))
    }
    private var gaugeTimer: Timer?

    func run() {
        log.start(on: loop)
        gaugeTimer = Timer { [unowned self] in publishGauges() }
        publishGauges()
        loop.run()
        dismantle()
    }

    /// The worker, its pools and its timers know one another: here the knots come apart, and the thread leaves nothing.
    private func dismantle() {
        departed.removeAll()
        fetches = Slab()
        gaugeTimer = nil
        origins = nil
        resolver = nil
        readers = nil
    }
}
