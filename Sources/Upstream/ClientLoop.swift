import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Requesting
import Server
import TLS

/// The thread of a client: its event loop, the queue of requests, and the connections.
///
/// Everything here belongs to that thread. Others post jobs through a `ClientPort`.
@safe final class ClientLoop {
    let loop: EventLoop
    let way: ClientWay
    let options: Client.Options
    let limits: Limits
    let history = ConnectHistory()
    /// Sockets are read into this buffer.
    let buffer: UnsafeMutableRawBufferPointer
    private let head: UnsafeMutablePointer<ResponseHead>
    /// `limits`, for conversations.
    private let shownLimits: UnsafeMutablePointer<Limits>
    /// What conversations read and parse into.
    var conversationMemory: ConversationMemory {
        unsafe ConversationMemory(input: buffer, head: head, limits: shownLimits)
    }
    private(set) var resolver: Resolver!
    private var queue: RequestQueue
    private var waiting: [RequestQueue.Number: Transfer] = [:]
    private var running: [RequestQueue.Number: ClientLink] = [:]
    private var ends: [RequestQueue.Number: Timer] = [:]
    private var idle: [LinkPlace: [ClientLink]] = [:]
    private var idleCount = 0
    private var isStopping = false
    private var isAdvancing = false

    private static let bufferBytes = 64 << 10

    init(_ way: ClientWay, _ options: Client.Options) throws(ClientError) {
        self.way = way
        self.options = options
        var limits = Limits()
        limits.headBytesMax = 256 << 10
        self.limits = limits
        queue = RequestQueue(runningMax: options.requestsMax, waitingMax: options.waitingMax)
        do throws(EventLoopError) { loop = try EventLoop() } catch { throw .cannotStart("\(error)") }
        unsafe buffer = .allocate(byteCount: ClientLoop.bufferBytes, alignment: 64)
        unsafe head = .allocate(capacity: 1)
        unsafe head.initialize(to: ResponseHead())
        unsafe shownLimits = .allocate(capacity: 1)
        unsafe shownLimits.initialize(to: limits)
        do throws(ResolverError) { resolver = try Resolver(loop: loop) } catch { throw .cannotStart("\(error)") }
    }

    deinit {
        unsafe buffer.deallocate()
        unsafe head.deinitialize(count: 1)
        unsafe head.deallocate()
        unsafe shownLimits.deinitialize(count: 1)
        unsafe shownLimits.deallocate()
    }

    /// Runs until `stop`. On the thread of the client.
    func run() {
        loop.run()
        resolver = nil
    }

    // MARK: requests

    func submit(_ transfer: Transfer) {
        guard !isStopping else { return transfer.fail(.closed) }
        // The task was cancelled before the request came here.
        guard !transfer.isOver else { return }
        guard queue.add(transfer.number, transfer.priority) == .queued else {
            return transfer.fail(.tooManyRequests(limit: options.waitingMax))
        }
        waiting[transfer.number] = transfer
        if let whole = transfer.timeLimits.whole {
            let number = transfer.number
            let timer = Timer { [unowned self] in end(number, .timedOut(.whole)) }
            ends[number] = timer
            loop.timers.schedule(timer, after: whole)
        }
        advance()
    }

    func cancel(_ number: RequestQueue.Number) { end(number, .cancelled) }

    /// Ends a request that waits or runs, and its connection.
    private func end(_ number: RequestQueue.Number, _ error: ClientError) {
        if let link = running[number] { return link.fail(error, mayRepeat: false) }
        guard queue.remove(number), let transfer = waiting.removeValue(forKey: number) else { return }
        stopTimer(of: number)
        transfer.fail(error)
    }

    func readerMadeRoom(_ number: RequestQueue.Number) { running[number]?.resume() }
    func uploadGrew(_ number: RequestQueue.Number) { running[number]?.sendMore() }

    /// Lets requests begin, as many as may.
    private func advance() {
        // A connection that fails at once calls this again.
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while let number = queue.next() {
            guard let transfer = waiting.removeValue(forKey: number) else {
                preconditionFailure("a request waits once")
            }
            begin(transfer)
        }
    }

    private func begin(_ transfer: Transfer) {
        let place = way.place(of: transfer.form.target)
        if let link = takeIdle(at: place) {
            running[transfer.number] = link
            link.begin(transfer, isReused: true)
        } else {
            open(transfer)
        }
    }

    private func open(_ transfer: Transfer) {
        let link = ClientLink(self, way.place(of: transfer.form.target))
        running[transfer.number] = link
        link.open(for: transfer)
    }

    /// The connection was gone before it carried the request: tries a new one.
    func `repeat`(_ transfer: Transfer) { open(transfer) }

    /// A request has ended.
    ///
    /// - Parameter link: its connection, if it can carry another one.
    func ended(_ transfer: Transfer, keeping link: ClientLink?) {
        guard running.removeValue(forKey: transfer.number) != nil else { preconditionFailure("a request ends once") }
        stopTimer(of: transfer.number)
        queue.finished()
        if let link { keep(link) }
        advance()
    }

    private func stopTimer(of number: RequestQueue.Number) {
        guard let timer = ends.removeValue(forKey: number) else { return }
        loop.timers.cancel(timer)
    }

    // MARK: idle connections

    private func keep(_ link: ClientLink) {
        guard !isStopping, idleCount < options.requestsMax else { return link.close() }
        idleCount += 1
        idle[link.place, default: []].append(link)
        link.becomeIdle(for: options.idleTime)
    }

    private func takeIdle(at place: LinkPlace) -> ClientLink? {
        guard let link = idle[place]?.popLast() else { return nil }
        if idle[place]?.isEmpty == true { idle[place] = nil }
        idleCount -= 1
        return link
    }

    /// An idle connection has ended.
    func forget(idle link: ClientLink) {
        guard let index = idle[link.place]?.firstIndex(where: { $0 === link }) else { return }
        idle[link.place]?.remove(at: index)
        if idle[link.place]?.isEmpty == true { idle[link.place] = nil }
        idleCount -= 1
    }

    /// Keeps a connection until the end of the turn: one of its methods may be running.
    func release(_ link: ClientLink) { loop.afterTurn { _ = link } }

    // MARK: the end

    /// Ends all requests and the loop.
    func stop() {
        isStopping = true
        for number in Array(waiting.keys) { end(number, .closed) }
        for number in Array(running.keys) { end(number, .closed) }
        for link in idle.values.joined() { link.close() }
        idle = [:]
        idleCount = 0
        loop.stop()
    }
}

/// What a connection leads to: requests for the same place share connections.
enum LinkPlace: Hashable, Sendable {
    /// All requests go there.
    case common
    case origin(secured: Bool, host: String, port: UInt16)
}

/// Whom a client asks.
enum ClientWay: Sendable {
    enum Server: Sendable {
        case addresses([SocketAddress])
        case host(String, port: UInt16)
        /// The proxy in this process.
        case engine(Engine)
    }

    /// One server or proxy for all requests.
    struct Common: Sendable {
        var server: Server
        var form: RequestForm.TargetForm
        /// Fields for each request that has none with the same name.
        var own: [RequestForm.Field]
        /// For https URLs a tunnel is opened, and TLS with the server in it. Nil: they are sent like others.
        var tunnelled: TLSClientContext?
    }

    /// The server that the URL names.
    case direct(TLSClientContext)
    case common(Common)

    /// With what a connection for an https URL is made secure. Nil if the other side does that.
    var securing: TLSClientContext? {
        switch self {
        case .direct(let context): context
        case .common(let common): common.tunnelled
        }
    }

    /// Nil if the other side is outside the process.
    var engine: Engine? {
        guard case .common(let common) = self, case .engine(let engine) = common.server else { return nil }
        return engine
    }

    var isTunnelled: Bool { if case .common = self { true } else { false } }

    func form(for target: TargetURI) -> RequestForm.TargetForm {
        switch self {
        case .direct: .origin
        case .common(let common): common.tunnelled != nil && target.scheme == .https ? .origin : common.form
        }
    }

    /// The fields for requests to the server or proxy itself.
    var own: [RequestForm.Field] {
        switch self {
        case .direct: []
        case .common(let common): common.own
        }
    }

    /// The fields of its own that go with a request: credentials for a proxy stay outside a tunnel.
    func own(for target: TargetURI) -> [RequestForm.Field] {
        securing != nil && target.scheme == .https ? [] : own
    }

    func place(of target: TargetURI) -> LinkPlace {
        switch self {
        case .common(let common) where common.tunnelled == nil || target.scheme == .http: .common
        case .direct, .common: .origin(secured: target.scheme == .https, host: target.host, port: target.port)
        }
    }
}
