import EventLoop
import Message
import Server
import Transport

/// One connection to the admin server: moves bytes between its transport, which has no TLS, and its conversation.
///
/// open ──answered, persists──▶ open ──answered, last──▶ lingering ──peer closed or time──▶ closed
final class AdminConnection: TimedObject {
    /// A request must have arrived, and an answer must have left, within this time.
    private static let exchangeTimeMax: Duration = .seconds(15)
    /// How long a persistent connection can be idle.
    private static let idleTimeMax: Duration = .seconds(60)
    /// How long bytes are read that arrive after the last answer, so that no reset destroys it (RFC 9112 §9.6).
    private static let lingerTimeMax: Duration = .seconds(2)

    private enum State { case open, lastAnswer, lingering, closed }

    private let loop: EventLoop
    private let router: AdminRouter
    private let transport: Transport
    private let closed: (AdminConnection) -> Void
    private var state: State = .open
    private var conversation: AdminConversation
    private var output = OutputQueue()
    /// The rest of the answer that is still to be made, and how it is framed.
    private var pieces: (source: BodyPieces, framing: PieceFraming)?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    /// Whether a thread works on the answer to the present request.
    private var isWorking = false

    /// - Parameter closed: called once. The owner of the connection releases it after the turn.
    init(
        loop: EventLoop, router: AdminRouter, transport: consuming Transport, door: AdminRequest.Door,
        closed: @escaping (AdminConnection) -> Void
    ) {
        self.loop = loop
        self.router = router
        self.transport = transport
        self.closed = closed
        conversation = AdminConversation(door: door)
        super.init()
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe self.transport.assign(
            &readEvent, on: loop, .read, { _, _, context in unsafe connection(context).readable() }, context)
        unsafe self.transport.assign(
            &writeEvent, on: loop, .write, { _, _, context in unsafe connection(context).flush() }, context)
    }

    func start() {
        readEvent.add()
        loop.timers.schedule(self, after: Self.exchangeTimeMax)
    }

    override func timerFired() { close() }

    func close() {
        guard state != .closed else { return }
        state = .closed
        readEvent.clear()
        writeEvent.clear()
        loop.timers.cancel(self)
        closed(self)
    }

    fileprivate func readable() {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        switch unsafe buffer.withUnsafeMutableBytes({ unsafe transport.read(into: $0) }) {
        case .bytes(let count):
            guard state == .open else { return }  // lingering: the bytes are dropped
            if conversation.isIdle { setTimeLimit(Self.exchangeTimeMax) }
            conversation.receive(buffer[..<count])
            answer()
        case .wouldBlock: break
        case .closed, .failed: close()
        }
    }

    /// Answers the requests that have arrived, one after the other. The next one waits until the answer has left.
    private func answer() {
        while state == .open, !isWorking, output.isEmpty, pieces == nil, let event = conversation.next() {
            switch event {
            case .request(let request, let persists):
                if router.takesLong(request) {
                    work(on: request, persists: persists)
                    continue
                }
                let response = router.respond(to: request).compressed(for: request)
                send(response, to: request, persists: persists)
            case .continueExpected:
                output.append(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
                flush()
            case .refused(let response):
                send(response, to: nil, persists: false)
            }
        }
        guard state == .open else { return }
        if conversation.isFull { readEvent.remove() } else { readEvent.add() }
    }

    /// Has a thread find out the answer. It may take minutes, and other connections are answered meanwhile.
    private func work(on request: AdminRequest, persists: Bool) {
        isWorking = true
        loop.timers.cancel(self)
        let (inbox, connection) = (loop.inbox, AdminConnectionReference(self))
        router.respond(to: request) { response in
            inbox.post { connection.value?.finish(response, request, persists: persists) }
        }
    }

    fileprivate func finish(_ response: AdminResponse, _ request: AdminRequest, persists: Bool) {
        isWorking = false
        guard state == .open else { return }
        send(response.compressed(for: request), to: request, persists: persists)
        answer()
    }

    /// - Parameter request: nil if what arrived is not a request.
    private func send(_ response: AdminResponse, to request: AdminRequest?, persists: Bool) {
        let now = WallTime(secondsSinceEpoch: loop.wallSeconds)
        let isHead = request?.method == "HEAD"
        let framing: PieceFraming = request?.acceptsChunks == false ? .untilClose : .chunked
        let persists = persists && (response.pieces == nil || framing == .chunked)
        var bytes: [UInt8] = []
        response.appendWire(to: &bytes, now: now, isHead: isHead, persists: persists, framing: framing)
        output.append(bytes)
        if let source = response.pieces, !isHead { pieces = (source, framing) }
        if !persists { state = .lastAnswer }
        setTimeLimit(Self.exchangeTimeMax)
        flush()
    }

    /// Sends the next piece of the answer, in a turn of its own, so that a long answer does not delay other connections.
    private func sendNextPiece(_ source: BodyPieces, _ framing: PieceFraming) {
        let piece = source.next()
        var bytes: [UInt8] = []
        framing.append(piece, to: &bytes)
        output.append(bytes)
        if piece == nil { pieces = nil }
        setTimeLimit(Self.exchangeTimeMax)
        writeEvent.add()
    }

    fileprivate func flush() {
        while !output.isEmpty {
            switch unsafe output.withBytes({ unsafe transport.write($0) }) {
            case .bytes(let count): output.advance(by: count)
            case .wouldBlock: return writeEvent.add()
            case .closed, .failed: return close()
            }
        }
        flushed()
    }

    private func flushed() {
        if let (source, framing) = pieces { return sendNextPiece(source, framing) }
        let wasWaiting = writeEvent.isAdded
        writeEvent.remove()
        switch state {
        case .open:
            if conversation.isIdle { setTimeLimit(Self.idleTimeMax) }
            if wasWaiting { answer() }  // else `answer` called this
        case .lastAnswer:
            state = .lingering
            transport.shutdownWrite()
            readEvent.add()
            setTimeLimit(Self.lingerTimeMax)
        case .lingering, .closed: break
        }
    }

    /// A timer that is to fire earlier must be scheduled again, so cancel it first.
    private func setTimeLimit(_ limit: Duration) {
        loop.timers.cancel(self)
        loop.timers.schedule(self, after: limit)
    }
}

/// A connection for jobs in the inbox of its own loop. Nil if it is gone by then.
@safe private final class AdminConnectionReference: @unchecked Sendable {
    /// Read on the loop's thread alone.
    private weak let connection: AdminConnection?

    init(_ connection: AdminConnection) { self.connection = connection }

    var value: AdminConnection? { connection }
}

private func connection(_ context: UnsafeMutableRawPointer?) -> AdminConnection {
    guard let context = unsafe context else { preconditionFailure("registered with its connection") }
    return unsafe Unmanaged<AdminConnection>.fromOpaque(context).takeUnretainedValue()
}
