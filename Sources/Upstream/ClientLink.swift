import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Requesting
import Server
import TLS

/// One HTTP/1 connection of a client. It carries one request after the other.
///
/// ```
/// opening ──▶ (tunnelling) ──▶ (securing) ──▶ exchanging ──whole answer──▶ idle ──▶ exchanging …
///    └──────────────┴───────────────┴──────────────┴── failure, cancellation ──▶ closed
/// ```
final class ClientLink: TimedObject {
    private enum State { case opening, tunnelling, securing, exchanging, idle, closed }

    /// Reads in one turn, so that other connections have theirs.
    private static let readsPerTurnMax = 8

    private unowned let owner: ClientLoop
    let place: LinkPlace
    private var state = State.opening
    private var ticket: ResolverTicket?
    private var attempt: ConnectAttempt?
    private var transport: Transport?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()

    /// The present request. Nil while the connection is idle.
    private var transfer: Transfer?
    /// Whether the connection carried a request before the present one.
    private var isReused = false
    private var reader = ResponseReader(to: .get, limits: Limits())
    private var hasHead = false
    /// Bytes that were received and not used yet.
    private var input: [UInt8] = []
    private var hasReceived = false
    /// The program reads more slowly than the server sends.
    private var isPaused = false
    /// Bytes that the socket did not accept yet begin at `written`.
    private var output: [UInt8] = []
    private var written = 0
    private var outgoing = OutgoingBody(.none)
    /// The server takes no more of the request. It may have answered already.
    private var isSendingOver = false
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
        guard let transfer else { preconditionFailure("a connection is opened for a request") }
        guard transfer.isConnectionOnly else { return begin(transfer, isReused: false) }
        self.transfer = nil
        transfer.answer.decide(.success(AnswerHead(status: 200, fields: Fields(), length: .none)))
        transfer.end(.success(()))
        owner.ended(transfer, keeping: self)
    }

    // MARK: one exchange

    /// Sends a request over the open connection.
    func begin(_ transfer: Transfer, isReused: Bool) {
        precondition(transport != nil, "a request goes over an open connection")
        self.transfer = transfer
        self.isReused = isReused
        state = .exchanging
        reader = ResponseReader(to: transfer.form.method, limits: owner.limits)
        (hasHead, hasReceived, isPaused, isSendingOver) = (false, false, false, false)
        progress = Request.Progress()
        progress.toSend = transfer.framing.announced
        outgoing = OutgoingBody(transfer.framing)
        output = transfer.head
        written = 0
        if transfer.upload == nil {
            output += transfer.bytes
            progress.sent = UInt64(transfer.bytes.count)
            unsafe transfer.bytes.withUnsafeBytes { content in unsafe outgoing.append(content) { _ in } }
            _ = outgoing.end(trailers: nil)
        }
        setLimit(transfer.timeLimits.answer)
        send()
    }

    /// Sends what there is, and waits for what is to come.
    func send() {
        guard state == .exchanging else { return }
        while !isSendingOver {
            guard written < output.count || refill() else { break }
            guard state == .exchanging else { return }
            switch writeOutput() {
            case .bytes(let count):
                written += count
                if !hasHead { setLimit(transfer?.timeLimits.answer) }
            case .wouldBlock:
                return waitForEvents(toWrite: true)
            case .closed, .failed:
                // The server may have answered before it closed: the answer is read first.
                isSendingOver = true
            }
        }
        waitForEvents(toWrite: false)
    }

    /// Takes the next piece of a streamed body. Returns false if nothing is to be sent now.
    private func refill() -> Bool {
        guard let transfer, let upload = transfer.upload, !outgoing.isEnded else { return false }
        output.removeAll(keepingCapacity: true)
        written = 0
        switch upload.take() {
        case .nothing: return false
        case .piece(let piece):
            unsafe piece.withUnsafeBytes { content in
                unsafe outgoing.append(content) { unsafe output.append(contentsOf: $0) }
            }
            progress.sent += UInt64(piece.count)
            transfer.report(progress)
        case .end: output += outgoing.end(trailers: nil)
        case .failed(let error):
            fail(error, mayRepeat: false)
            return false
        }
        return written < output.count
    }

    private func waitForEvents(toWrite: Bool) {
        guard state == .exchanging else { return }
        transport?.wait(&readEvent, &writeEvent, toRead: !isPaused, toWrite: toWrite)
    }

    private func isReady() {
        switch state {
        case .tunnelling: continueTunnel()
        case .securing: continueHandshake()
        case .exchanging:
            receive()
            send()
        case .idle:
            // The event may be left from the answer. If there is something, nobody asked for it, or the server closes.
            if unsafe transport?.read(into: owner.buffer) == .wouldBlock { return }
            owner.forget(idle: self)
            close()
        case .opening, .closed: break
        }
    }

    /// The program has read: more may come.
    func resume() {
        guard state == .exchanging, isPaused else { return }
        isPaused = false
        setLimit(transfer?.timeLimits.silence)
        process()
        receive()
        send()
    }

    private func receive() {
        var reads = 0
        while state == .exchanging, !isPaused {
            guard reads < ClientLink.readsPerTurnMax else {
                if transport?.mustBeDrained == true { owner.loop.afterTurn { [weak self] in self?.isReady() } }
                return
            }
            reads += 1
            guard let result = unsafe transport?.read(into: owner.buffer) else { return }
            switch result {
            case .bytes(let count):
                hasReceived = true
                unsafe input.append(contentsOf: UnsafeRawBufferPointer(rebasing: owner.buffer[..<count]))
                process()
            case .wouldBlock: return
            case .closed: return serverClosed()
            case .failed: return fail(.brokeOff(hasHead ? .receiving : .waiting))
            }
        }
    }

    private func serverClosed() {
        guard reader.closed() else { return fail(.brokeOff(hasHead ? .receiving : .waiting)) }
        complete()
    }

    /// Hands on what has arrived.
    private func process() {
        var offset = 0
        var piece: [UInt8] = []
        while true {
            switch step(&offset) {
            case .failure(let fault):
                deliver(piece)
                return fail(.notHTTP(reason: fault.reason))
            case .success(.head(let head)):
                if let notice = program?.takeNotice() { return fail(.refused(.init(notice)), mayRepeat: false) }
                receive(head)
            case .success(.data(let range)):
                if range.count == input.count { piece = input } else { piece += input[range] }
            case .success(.more):
                input.removeFirst(offset)
                return deliver(piece)
            case .success(.end):
                input.removeFirst(offset)
                deliver(piece)
                return complete()
            }
        }
    }

    private func step(_ offset: inout Int) -> Result<ResponseReader.Step, ResponseFault> {
        let bytes = input  // shares the memory
        do throws(ResponseFault) { return .success(try reader.next(in: bytes.span, from: &offset)) } catch {
            return .failure(error)
        }
    }

    private func receive(_ head: AnswerHead) {
        guard let transfer else { preconditionFailure("an answer belongs to a request") }
        hasHead = true
        progress.toReceive = head.length.announced
        transfer.download.expect(head.length.announced)
        transfer.answer.decide(.success(head))
        setLimit(transfer.timeLimits.silence)
    }

    private func deliver(_ piece: [UInt8]) {
        guard let transfer, !piece.isEmpty else { return }
        progress.received += UInt64(piece.count)
        transfer.report(progress)
        if transfer.download.add(piece) { return setLimit(transfer.timeLimits.silence) }
        isPaused = true
        owner.loop.timers.cancel(self)
    }

    private func complete() {
        guard let transfer = self.transfer.take() else { preconditionFailure("an answer belongs to a request") }
        // What was not sent would be missing, and what came too much would be read as the next answer.
        let isReusable = reader.allowsReuse && outgoing.isEnded && written == output.count && input.isEmpty
        transfer.end(.success(()))
        if !isReusable { close() }
        owner.ended(transfer, keeping: isReusable ? self : nil)
    }

    // MARK: the end

    func becomeIdle(for time: Duration) {
        state = .idle
        output = []
        input = []
        writeEvent.remove()
        readEvent.add()
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
