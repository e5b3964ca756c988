import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Requesting
import Server
import TLS
import Transport

/// One HTTP/1 connection of a client. It carries one request after the other.
///
/// ```
/// opening ──▶ (tunnelling) ──▶ (securing) ──▶ exchanging ──whole answer──▶ idle ──▶ exchanging …
///    └──────────────┴───────────────┴──────────────┴── failure, cancellation ──▶ closed
/// ```
final class ClientLink: TimedObject, ConversationOwner, ConversationKeeper {
    private enum State { case opening, tunnelling, securing, exchanging, idle, closed }

    private unowned let owner: ClientLoop
    let place: LinkPlace
    private var state = State.opening
    private var ticket: ResolverTicket?
    private var attempt: ConnectAttempt?
    /// While the connection is being opened.
    private var transport: Transport?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    /// What is sent to the proxy, and what of it has not been sent begins at `written`.
    private var output: [UInt8] = []
    private var written = 0
    /// What the proxy has answered.
    private var input: [UInt8] = []
    /// Nil before the connection is open.
    private var conversation: HTTP1Conversation?

    /// The present request. Nil while the connection is idle.
    private var transfer: Transfer?
    /// Whether the connection carried a request before the present one.
    private var isReused = false
    private var interimCount = 0
    private var hasHead = false
    private var hasReceived = false
    /// Content that has come, and that the program has not got.
    private var piece: [UInt8] = []
    /// The program reads more slowly than the server sends.
    private var isPaused = false
    /// All of the request has been given to the conversation.
    private var isRequestEnded = false
    private var progress = Request.Progress()
    /// What the engine says beside the bytes. Nil if the other side is outside the process.
    private var program: ProgramLink?

    init(_ owner: ClientLoop, _ place: LinkPlace) {
        self.owner = owner
        self.place = place
    }

    // MARK: opening

    /// Connects, and sends the request.
    func open(for transfer: Transfer) {
        self.transfer = transfer
        setLimit(transfer.timeLimits.connect)
        switch owner.way {
        case .common(let common): reach(common.server)
        case .direct: resolve(unbracketed(transfer.form.target.host), transfer.form.target.port)
        }
    }

    /// The end of the time that the timer of this connection has set for opening it.
    private var openingDeadline: MonotonicTime { deadline ?? .never }

    private func reach(_ server: ClientWay.Server) {
        switch server {
        case .addresses(let addresses): connect(addresses)
        case .host(let host, let port): resolve(host, port)
        case .engine(let engine):
            let isConnected = engine.connect { socket, program in
                transport = Transport(plain: socket)
                self.program = program
            }
            guard isConnected else { return fail(.cannotConnect(place: "engine", code: EMFILE)) }
            connected()
        }
    }

    private func unbracketed(_ host: String) -> String {
        host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    }

    private func resolve(_ host: String, _ port: UInt16) {
        ticket = owner.resolver.resolve(host, by: openingDeadline) { [weak self] outcome in
            guard let self else { return }
            ticket = nil
            switch outcome {
            case .success(let resolution): connect(resolution.addresses.map { $0.with(port: port) })
            case .failure(.timedOut): fail(.timedOut(.connecting))
            case .failure: fail(.unknownHost(host))
            }
        }
    }

    private func connect(_ addresses: [SocketAddress]) {
        let place = addresses.map { "\($0)" }.joined(separator: ", ")
        attempt = ConnectAttempt.start(
            addresses, loop: owner.loop, attemptDelay: .milliseconds(250),
            by: openingDeadline, history: owner.history
        ) { [weak self] outcome in
            // If the link is gone, the socket in `outcome` closes here.
            guard let self else { return }
            attempt = nil
            switch consume outcome {
            case .connected(let socket, let address):
                if address.family != .unix { Sockets.setNoDelay(socket.rawValue) }
                transport = Transport(plain: socket)
                connected()
            case .failed(.timedOut): fail(.timedOut(.connecting))
            case .failed(let error): fail(.cannotConnect(place: place, code: error.code))
            }
        }
    }

    private func connected() {
        guard let target = transfer?.form.target else { preconditionFailure("a connection is opened for a request") }
        guard target.scheme == .https, let context = owner.way.securing else {
            assignEvents()
            return ready()
        }
        guard owner.way.isTunnelled else { return secure(with: context) }
        state = .tunnelling
        output = transfer?.form.connectHead(own: owner.way.own) ?? []
        written = 0
        input = []
        assignEvents()
        continueTunnel()
    }

    /// Starts the TLS handshake with the server.
    private func secure(with context: TLSClientContext) {
        guard let socket = transport.take()?.surrender(), let target = transfer?.form.target else {
            preconditionFailure("a handshake has its connection")
        }
        let host = unbracketed(target.host)
        do throws(TLSContextError) {
            transport = try Transport(securing: socket, with: context, serverName: host)
        } catch { return fail(.insecure(host: host, reason: "\(error)")) }
        state = .securing
        assignEvents()
        continueHandshake()
    }

    /// Asks the proxy for a tunnel, and reads its answer (RFC 9110 §9.3.6). One byte at a time: what follows the head belongs to TLS.
    private func continueTunnel() {
        while state == .tunnelling {
            let isSending = written < output.count
            let result = isSending ? writeOutput() : readByte()
            switch result {
            case .bytes(let count):
                if isSending { written += count } else { readTunnelAnswer() }
            case .wouldBlock:
                if isSending {
                    readEvent.remove()
                    writeEvent.add()
                } else {
                    writeEvent.remove()
                    readEvent.add()
                }
                return
            case .closed, .failed: return fail(.brokeOff(.connecting))
            }
        }
    }

    private func writeOutput() -> IOResult {
        unsafe output.withUnsafeBytes { bytes in
            unsafe transport?.write(UnsafeRawBufferPointer(rebasing: bytes[written...])) ?? .closed
        }
    }

    private func readByte() -> IOResult {
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: owner.buffer[..<1])
        let result = unsafe transport?.read(into: room) ?? .closed
        if case .bytes = result { unsafe input.append(room[0]) }
        return result
    }

    private func readTunnelAnswer() {
        var head = ResponseHead()
        var progress = HeadProgress()
        let bytes = input  // shares the memory
        // Heads end with an empty line: parse once.
        guard bytes.suffix(4) == [0x0D, 0x0A, 0x0D, 0x0A] || bytes.count > owner.limits.headBytesMax else { return }
        do throws(FramingError) {
            guard try parseResponseHead(bytes.span, into: &head, progress: &progress, limits: owner.limits) else {
                return
            }
        } catch { return fail(.notHTTP(reason: "\(error.reason)")) }
        input = []
        guard head.status >= 200 else { return }
        guard head.status < 300, let context = owner.way.securing else {
            return fail(.noTunnel(status: Int(head.status)))
        }
        readEvent.clear()
        writeEvent.clear()
        secure(with: context)
    }

    private func assignEvents() {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe transport?.assign(
            &readEvent, on: owner.loop, .read, { _, _, context in unsafe link(context).isReady() }, context)
        unsafe transport?.assign(
            &writeEvent, on: owner.loop, .write, { _, _, context in unsafe link(context).isReady() }, context)
    }

    private func continueHandshake() {
        switch transport?.handshake() {
        case .done: ready()
        case .failed(let failure):
            fail(.insecure(host: transfer?.form.target.host ?? "", reason: failure.details))
        case .wantRead:
            writeEvent.remove()
            readEvent.add()
        case .wantWrite:
            readEvent.remove()
            writeEvent.add()
        case nil: preconditionFailure("a handshake has its transport")
        }
    }

    private func ready() {
        guard let transfer, let transport = transport.take() else {
            preconditionFailure("a connection is opened for a request")
        }
        readEvent.clear()
        writeEvent.clear()
        let conversation = HTTP1Conversation(transport, owner.conversationMemory)
        self.conversation = conversation
        conversation.start(on: owner.loop, keeper: self)
        guard transfer.isConnectionOnly else { return begin(transfer, isReused: false) }
        self.transfer = nil
        transfer.answer.decide(.success(AnswerHead(status: 200, fields: Fields(), length: .none)))
        transfer.end(.success(()))
        owner.ended(transfer, keeping: self)
    }

    // MARK: one exchange

    /// Sends a request over the open connection.
    func begin(_ transfer: Transfer, isReused: Bool) {
        guard let conversation else { preconditionFailure("a request goes over an open connection") }
        self.transfer = transfer
        self.isReused = isReused
        state = .exchanging
        (interimCount, hasHead, hasReceived, isPaused, piece) = (0, false, false, false, [])
        progress = Request.Progress()
        progress.toSend = transfer.framing.announced
        isRequestEnded = transfer.framing == .none
        setLimit(transfer.timeLimits.answer)
        conversation.begin(self)
        _ = unsafe transfer.head.withUnsafeBytes {
            unsafe conversation.ask(
                $0, framing: transfer.framing, hasContent: !isRequestEnded, method: transfer.form.method)
        }
        sendMore()
    }

    /// Sends as much of the body as there is and as the socket accepts.
    func sendMore() {
        guard state == .exchanging, let transfer, let conversation else { return }
        while !isRequestEnded, conversation.unsentBytes == 0 {
            guard let upload = transfer.upload else {
                send(transfer.bytes, conversation)
                endRequest(conversation)
                return
            }
            switch upload.take() {
            case .nothing: return
            case .piece(let piece):
                send(piece, conversation)
                transfer.report(progress)
            case .end: endRequest(conversation)
            case .failed(let error): return fail(error, mayRepeat: false)
            }
        }
    }

    private func send(_ piece: [UInt8], _ conversation: HTTP1Conversation) {
        progress.sent += UInt64(piece.count)
        unsafe piece.withUnsafeBytes { unsafe conversation.send(content: $0) }
        if !hasHead { setLimit(transfer?.timeLimits.answer) }
    }

    private func endRequest(_ conversation: HTTP1Conversation) {
        isRequestEnded = true
        conversation.endRequest(trailers: nil, without: [])
    }

    func drained() { sendMore() }

    private func isReady() {
        switch state {
        case .tunnelling: continueTunnel()
        case .securing: continueHandshake()
        case .opening, .exchanging, .idle, .closed: break
        }
    }

    /// The program has read: more may come.
    func resume() {
        guard state == .exchanging, isPaused else { return }
        isPaused = false
        setLimit(transfer?.timeLimits.silence)
        conversation?.resume()
    }

    func hasRead(_ count: Int) { hasReceived = true }

    func received(interim head: ArrivedHead) {
        interimCount += 1
        if head.status == 101 { return failed(.unexpectedUpgrade) }
        if interimCount > owner.limits.interimResponsesMax { failed(.tooManyInterimResponses) }
    }

    func received(final head: ArrivedHead, of conversation: HTTP1Conversation) -> ContentUse {
        guard let transfer else { preconditionFailure("an answer belongs to a request") }
        if let notice = program?.takeNotice() {
            fail(.refused(.init(notice)), mayRepeat: false)
            return .leave
        }
        hasHead = true
        let fields = Fields(bytes: unsafe Array(head.bytes), section: head.fields)
        let options = unsafe ConnectionOptions(head.fields, bytes: head.bytes.bindMemory(to: UInt8.self).span)
        let persists = head.length != .untilClose && persists(minorVersion: head.minorVersion, options)
        conversation.keep(for: persists ? owner.options.idleTime : nil)
        progress.toReceive = head.length.announced
        transfer.download.expect(head.length.announced)
        transfer.answer.decide(.success(AnswerHead(status: head.status, fields: fields, length: head.length)))
        setLimit(transfer.timeLimits.silence)
        return .take
    }

    func received(content: UnsafeRawBufferPointer, isAll: Bool) { unsafe piece.append(contentsOf: content) }

    func endOfRead() { deliver() }

    /// Hands on what has come.
    private func deliver() {
        guard let transfer, !piece.isEmpty else { return }
        let piece = piece
        self.piece = []
        progress.received += UInt64(piece.count)
        transfer.report(progress)
        if transfer.download.add(piece) { return setLimit(transfer.timeLimits.silence) }
        guard state == .exchanging, !isPaused else { return }
        isPaused = true
        conversation?.pause()
        owner.loop.timers.cancel(self)
    }

    func ended(byClosing: Bool) {
        guard let conversation else { preconditionFailure("an answer comes over a connection") }
        let time = conversation.end()
        state = .idle
        deliver()
        guard let transfer = self.transfer.take() else { preconditionFailure("an answer belongs to a request") }
        transfer.end(.success(()))
        // What was not sent would be missing, and what came too much would be read as the next answer.
        if time == nil { close() }
        owner.ended(transfer, keeping: time == nil ? nil : self)
    }

    func receivedUnasked() { failed(.framing(.badStatusLine)) }
    func violated(_ error: FramingError) { failed(.framing(error)) }
    func closedBeforeHead(headBegan: Bool) { fail(.brokeOff(hasHead ? .receiving : .waiting)) }

    func brokeOff() {
        deliver()
        fail(.brokeOff(.receiving))
    }

    private func failed(_ fault: ResponseFault) {
        deliver()
        fail(.notHTTP(reason: fault.reason))
    }

    // MARK: between requests

    func turn(_ work: () -> Void) { work() }
    func hasWritten(_ count: Int) {}

    func readableWhileIdle() {
        guard state == .idle, let conversation else { return }
        // The event may be left from the answer. If there is something, nobody asked for it, or the server closes.
        if conversation.isQuiet() { return }
        owner.forget(idle: self)
        close()
    }

    // MARK: the end

    func becomeIdle(for time: Duration) {
        state = .idle
        owner.loop.timers.schedule(self, after: time)
    }

    override func timerFired() {
        switch state {
        case .opening, .tunnelling, .securing: fail(.timedOut(.connecting), mayRepeat: false)
        case .exchanging: fail(.timedOut(hasHead ? .receiving : .waiting), mayRepeat: false)
        case .idle:
            owner.forget(idle: self)
            close()
        case .closed: break
        }
    }

    private func setLimit(_ limit: Duration?) {
        guard let limit else { return owner.loop.timers.cancel(self) }
        owner.loop.timers.schedule(self, after: limit)
    }

    /// Ends the request and the connection.
    func fail(_ error: ClientError, mayRepeat isAllowed: Bool = true) {
        guard let transfer = self.transfer.take() else { return }
        close()
        let canResend = transfer.upload == nil
        if isAllowed, case .brokeOff = error,
            mayRepeat(transfer.form.method, isReused: isReused, hasReceived: hasReceived, canResendBody: canResend)
        {
            return owner.repeat(transfer)
        }
        transfer.fail(error)
        owner.ended(transfer, keeping: nil)
    }

    func close() {
        state = .closed
        ticket?.cancel()
        ticket = nil
        attempt?.cancel()
        attempt = nil
        owner.loop.timers.cancel(self)
        // Remove the events before the socket closes: its number may be used again at once.
        readEvent.clear()
        writeEvent.clear()
        transport = nil
        if let conversation {
            if conversation.isInUse { _ = conversation.end() }
            conversation.close()
        }
        owner.release(self)
    }
}

private func link(_ context: UnsafeMutableRawPointer?) -> ClientLink {
    unsafe Unmanaged<ClientLink>.fromOpaque(context!).takeUnretainedValue()
}

extension ClientError.Refusal {
    fileprivate init(_ notice: ProgramLink.Notice) {
        self.init(reason: notice.name, status: notice.status, error: notice.error, details: notice.details)
    }
}

extension BodyLength {
    /// The number of bytes. Nil if the head does not tell.
    fileprivate var announced: UInt64? {
        switch self {
        case .none: 0
        case .length(let count): count
        case .chunked, .untilClose, .tunnel: nil
        }
    }
}

extension ConnectError {
    fileprivate var code: CInt {
        switch self {
        case .refused: ECONNREFUSED
        case .unreachable: EHOSTUNREACH
        case .timedOut: ETIMEDOUT
        case .noAddress: EADDRNOTAVAIL
        case .failed(let code): code
        }
    }
}
