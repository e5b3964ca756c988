import EventLoop
import Forwarding
import Framing
import Message
import Transaction

/// How a response ends, and how the connection does.
extension ClientConnection {
    /// The connection stays open after the response under way.
    var persists: Bool { closing == nil }

    func finishResponse() {
        guard phase == .answering else { return }
        if let exchange {
            exchange.finished()
            if exchange.leavesRequestUnread { closing = closing ?? .requestUnread }
        }
        exchange = nil
        if closing == nil && worker.isDraining { closing = .draining }
        if let closing { return linger(closing) }
        phase = .idle
        worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
        if !isProcessing { continueReading() }
    }

    /// The client does not get its whole answer, and must be able to tell: the connection ends without one.
    func abort(_ reason: CloseReason) {
        exchange?.markBroken()
        close(reason)
    }

    func refuse(violation: FramingError) {
        worker.counters.count(violation)
        beginRefusal(.malformedRequest, status: violation.requestStatus)
        output.append {
            ErrorResponse(violation).append(isHead: false, persists: false, date: worker.wallTime, to: &$0)
        }
        if worker.log.isOn { worker.log.append(account, violation: violation, client: context.peer) }
        flush()
    }

    /// The head of a request is not whole after its time.
    func refuseLateHead() {
        worker.counters.add(.timeouts)
        refuse(.requestTimeout, closing: .headTimeout)
    }

    /// A request whose head cannot be answered otherwise.
    func refuse(_ refusal: Refusal, closing reason: CloseReason) {
        worker.counters.refusals.add(Int(refusal.rawValue), 1)
        beginRefusal(reason, status: refusal.status)
        account.refusal = refusal
        output.append {
            ErrorResponse(refusal).append(isHead: false, persists: false, date: worker.wallTime, to: &$0)
        }
        if worker.log.isOn { worker.log.append(account, client: context.peer) }
        flush()
    }

    /// An answer to what never became a request: there is no exchange for it.
    private func beginRefusal(_ reason: CloseReason, status: UInt16) {
        worker.counters.add(.requests)
        worker.counters.add(.refused)
        account = Account(worker.log)
        account.status = status
        account.outcome = .refused
        account.isLogged = true
        closing = reason
        phase = .answering
    }

    /// Our side is closed; what the client still sends is read and dropped for a moment, since a reset would destroy
    /// the answer on its way (RFC 9112 §9.6).
    func linger(_ reason: CloseReason) {
        guard phase != .closed, phase != .lingering else { return }
        if closeReason == nil { closeReason = reason }
        // There is nothing left to read, so no reset either.
        if hasInputEnded { return close() }
        phase = .lingering
        inbound = []
        unsafe transport?.shutdownWrite()
        lingerBytes = 0
        readEvent.add()
        worker.loop.timers.schedule(self, after: .seconds(2))
    }

    /// The exchange has a connection for the body that it waits to send: once this turn's bytes are put by.
    func uploadSoon() { if !isProcessing { exchange?.uploadMore() } }

    static let lingerBytesMax = 1 << 20

    /// The socket goes to somebody else; this connection is over.
    func surrender() -> SurrenderedSocket? {
        readEvent.clear()
        writeEvent.clear()
        let unread = inbound
        inbound = []
        guard let descriptor = unsafe transport.take()?.surrender() else {
            close(.tunnelRefused)
            return nil
        }
        phase = .tunnelling
        release(.becameTunnel)
        return SurrenderedSocket(descriptor, unread: unread)
    }

    /// The connection lingered, and is closed for the reason that it did.
    func close() {
        guard let closeReason else { preconditionFailure("a connection that lingers has its reason") }
        close(closeReason)
    }

    func close(_ reason: CloseReason) {
        guard phase != .closed else { return }
        phase = .closed
        readEvent.clear()
        writeEvent.clear()
        if isCut { unsafe transport?.resetOnClose() }
        unsafe transport = nil
        release(reason)
    }

    /// It closes before the end of a body that the end of the connection ends (HTTP/1.0): only a reset tells the client.
    private var isCut: Bool {
        delivery?.endsWithConnection ?? false
    }

    private func release(_ reason: CloseReason) {
        let reason = closeReason ?? reason
        closeReason = reason
        worker.counters.closes.add(Int(reason.rawValue), 1)
        account.closeReason = reason
        worker.loop.timers.cancel(self)
        endDelivery()
        let exchange = self.exchange
        self.exchange = nil
        exchange?.clientLeft()
        worker.forget(id)
    }
}
