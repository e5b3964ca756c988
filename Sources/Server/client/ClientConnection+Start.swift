import EventLoop
import Framing
import Glibc
import Transaction
import Transport

/// The beginning of a client's connection.
///
/// A connection that speaks HTTP/1 in plain text goes on as a session: its read event is redirected there, so later reads do not pass here.
/// About all others a `Doorstep` finds out more.
extension ClientConnection {
    /// Takes the transport and waits for the client's first bytes, for at most `timeouts.client_head`.
    func start(over transport: consuming Transport) {
        unsafe start(over: transport) { _, _, context in
            unsafe Unmanaged<ClientConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.onFirstBytes() }
        }
    }

    /// Takes the transport of a client whose protocol is known to be HTTP/1.
    ///
    /// - Parameter bytes: what the client has sent, decrypted. In the worker's read buffer, or elsewhere.
    func start(over transport: consuming Transport, received bytes: UnsafeRawBufferPointer) {
        startReading(over: transport)
        unsafe received(bytes)
        drain()
        finishHandshake()
    }

    /// Sends what is left of a TLS handshake, if no answer has taken it along. What the socket does not accept before there is a whole request goes with
    /// the answer.
    private func finishHandshake() {
        guard unsafe transport?.hasUnsentBytes == true, !writeEvent.isAdded else { return }
        switch unsafe transport?.flush() ?? .closed {
        case .bytes: break
        case .wouldBlock: if phase == .answering { waitForRoom() }
        case .closed, .failed: close(.clientLeft)
        }
    }

    /// Takes the transport of a client that is refused before it has made a request, in the terms of its own protocol.
    ///
    /// - Parameter reply: empty if nothing can be said that the client understands.
    func start(over transport: consuming Transport, refusing reason: CloseReason, reply: [UInt8]) {
        startReading(over: transport)
        refuse(reason, reply: reply)
    }

    private func startReading(over transport: consuming Transport) {
        unsafe start(over: transport) { _, _, context in
            unsafe Unmanaged<ClientConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.onReadable() }
        }
    }

    private func start(over transport: consuming Transport, readable callback: ReadinessCallback) {
        precondition(unsafe self.transport == nil && phase == .idle, "a connection starts once")
        unsafe self.transport = consume transport
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe self.transport!.assign(&readEvent, on: worker.loop, .read, callback, context)
        readEvent.add()
        worker.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
    }

    private func onFirstBytes() {
        precondition(phase == .idle && exchange == nil, "the first bytes come before any request")
        let count: Int
        switch unsafe readTransport(worker.readBuffer) {
        case .bytes(let read): count = read
        case .wouldBlock: return
        case .closed: return close(.clientClosed)
        case .failed: return close(.clientLeft)
        }
        worker.counters.add(.bytesFromClients, count)
        let bytes = unsafe UnsafeRawBufferPointer(start: worker.readBuffer.baseAddress, count: count)
        let terms = context.listener?.doorstep ?? DoorstepTerms()
        guard
            case .http1 = unsafe terms.step(
                after: bytes.bindMemory(to: UInt8.self).span, at: .beginning(isTrusted: false))
        else { return unsafe handOver(bytes) }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe readEvent.redirect(
            { _, _, context in
                unsafe Unmanaged<ClientConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.onReadable() }
            }, context)
        unsafe received(bytes)
    }

    /// Gives the transport to a doorstep, which finds out what the client speaks.
    private func handOver(_ bytes: UnsafeRawBufferPointer) {
        guard let listener = context.listener, let given = giveUp() else {
            preconditionFailure("only a client of a listener has a choice of protocols")
        }
        unsafe Doorstep.open(
            worker: worker, listener: listener, peer: context.peer, place: place, transport: given,
            received: Array(bytes), isTrusted: false)
    }

    /// Refuses a client before any request, in its own terms, then closes the connection.
    private func refuse(_ reason: CloseReason, reply: [UInt8]) {
        precondition(phase == .idle && unsentBytes == 0, "a protocol is refused before any request")
        account = worker.log.opened()
        account.outcome = .refused
        account.closeReason = reason
        account.isSocks = context.isSocks
        worker.counters.add(.refused)
        if worker.log.isOn { worker.log.append(account, client: context.peer, listener: context.listener?.nameInLog) }
        account.isLogged = true
        closing = reason
        phase = .answering
        guard !reply.isEmpty else { return linger(reason) }
        output.append(reply)
        flush()
    }
}
