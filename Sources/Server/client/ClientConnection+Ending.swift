import Accounts
import EventLoop
import Forwarding
import Framing
import Message
import Routing
import Transaction
import Transport

/// Ends responses and connections.
extension ClientConnection {
    /// Whether the connection stays open after the present response.
    var persists: Bool { closing == nil }

    /// Ends a response whose last byte has been sent: the connection closes, or goes on with the next request.
    func finishResponse() {
        guard phase == .answering else { return }
        precondition(delivery == nil && unsentBytes == 0, "a response ends behind its last byte")
        // The exchange writes its log line and detaches its fetch before it is released. Nothing that it does here writes to this client.
        if let exchange {
            exchange.finished()
            precondition(exchange.isAnswered, "a response that has not begun cannot end")
            if exchange.leavesRequestUnread { closing = closing ?? .requestUnread }
        }
        exchange = nil
        limits = nil
        endSendingWatch()
        if closing == nil && worker.isDraining { closing = .draining }
        if let closing { return linger(closing) }
        // Idle before the next request is read: `process` answers only where no answer is under way. If this is called from within `process`,
        // its loop goes on by itself; starting another one here would nest once for each pipelined request.
        phase = .idle
        unsafe worker.timers.schedule(self, afterNanoseconds: worker.scratch.pointee.clientIdleNanoseconds)
        if !isProcessing { continueReading() }
    }

    /// Closes the connection in the middle of an answer, so that the client sees that the answer is incomplete (RFC 9112 §8).
    func abort(_ reason: CloseReason) {
        exchange?.markBroken()
        close(reason)
    }

    /// Refuses a head that violates HTTP, and closes the connection: nothing behind such a head can be interpreted.
    func refuse(violation: FramingError) {
        worker.counters.count(violation)
        beginRefusal(.malformedRequest, status: violation.requestStatus)
        context.program?.refused(
            .init(
                name: "\(violation.reason)", status: Int(violation.requestStatus), error: "http_request_error",
                details: "\(violation.reason)"))
        queue {
            if context.isSocks { return $0 += SocksReply.generalFailure.bytes }
            ErrorResponse(violation, requestID: requestID).append(
                isHead: false, persists: false, date: worker.wallTime, to: &$0)
        }
        if worker.log.isOn {
            worker.log.append(
                account, violation: violation, client: context.peer, listener: context.listener?.nameInLog)
        }
        flush()
    }

    /// Refuses a request whose head was not complete within `timeouts.client_head`.
    func refuseLateHead() {
        worker.counters.add(.timeouts)
        refuse(.requestTimeout, closing: .headTimeout)
    }

    /// Refuses a request without an exchange, and closes the connection.
    func refuse(_ refusal: Refusal, closing reason: CloseReason) {
        queueRefusal(refusal, closing: reason)
        if worker.log.isOn { worker.log.append(account, client: context.peer, listener: context.listener?.nameInLog) }
        flush()
    }

    /// Refuses a request in an opened tunnel that does not name the origin of the tunnel, and closes the connection.
    ///
    /// The log line has the URL that the request asked for. The line of the CONNECT, whose ID it has, names the tunnel's origin.
    ///
    /// - Parameter bytes: the head. `Worker.scratch` has its parsed form.
    func refuseMisdirected(_ bytes: UnsafeBufferPointer<UInt8>, in tunnel: FixedOrigin) {
        queueRefusal(.misdirected, closing: .malformedRequest)
        if worker.log.isOn {
            unsafe worker.log.append(
                account, head: LoggedHead(worker.scratch.pointee.requestHead), bytes, in: tunnel, client: context.peer,
                listener: context.listener?.nameInLog, user: nil)
        }
        flush()
    }

    private func queueRefusal(_ refusal: Refusal, closing reason: CloseReason) {
        worker.counters.refusals.add(Int(refusal.rawValue), 1)
        beginRefusal(reason, status: refusal.status)
        account.refusal = refusal
        context.program?.refused(.init(refusal, details: refusal.name))
        queue {
            if context.isSocks { return $0 += SocksReply(refusal).bytes }
            ErrorResponse(refusal, requestID: requestID).append(
                isHead: false, persists: false, date: worker.wallTime, to: &$0)
        }
    }

    private var requestID: String { worker.shared.requestIDs.text(of: account.id) }

    /// Begins the answer to a head for which there is no exchange. The caller writes its log line.
    private func beginRefusal(_ reason: CloseReason, status: UInt16) {
        precondition(
            phase == .idle && exchange == nil && delivery == nil, "a head is refused when no answer is under way")
        worker.counters.add(.requests)
        worker.counters.add(.refused)
        account = worker.log.opened()
        account.tunnel = context.tunnel
        account.status = status
        account.outcome = .refused
        account.isSocks = context.isSocks
        account.isLogged = true
        closing = reason
        phase = .answering
    }

    /// Closes Larder's side, and discards what the client still sends for two seconds. Closing the socket while unread bytes arrive would
    /// send a reset, which may destroy the answer before the client reads it (RFC 9112 §9.6).
    func linger(_ reason: CloseReason) {
        guard phase != .closed, phase != .lingering else { return }
        precondition(delivery == nil && unsentBytes == 0, "a connection lingers when its answer has been sent")
        if closeReason == nil { closeReason = reason }
        // No byte can arrive any more, so closing sends no reset.
        if hasInputEnded { return close() }
        phase = .lingering
        inbound = []
        unsafe transport?.shutdownWrite()
        lingerBytes = 0
        readEvent.add()
        worker.timers.schedule(self, after: .seconds(2))
    }

    /// Starts sending the request's body, unless `received` is about to do so with more bytes of it.
    func uploadSoon() { if !isProcessing { exchange?.uploadMore() } }

    /// Bytes that a lingering connection discards before it closes.
    static let lingerBytesMax = 1 << 20

    /// Gives the transport to a tunnel, and ends this connection.
    func surrender() -> SurrenderedConnection {
        precondition(phase == .answering, "a tunnel begins in place of an answer")
        precondition(delivery == nil, "the rest of a body would be lost")
        // The tunnel registers events of its own for the socket, so those of this connection go first.
        readEvent.clear()
        writeEvent.clear()
        let unread = takeUnread()
        guard let given = unsafe transport.take() else { preconditionFailure("an answer has its connection") }
        phase = .tunnelling
        release(.becameTunnel)
        return SurrenderedConnection(given, unread: unread)
    }

    /// Gives the transport to another owner, and ends this connection without a word: for its client it goes on.
    func giveUp() -> Transport? {
        precondition(phase == .idle && unsentBytes == 0, "a connection is given up before any request")
        readEvent.clear()
        writeEvent.clear()
        worker.timers.cancel(self)
        phase = .tunnelling
        worker.forget(id, isOver: false)
        return unsafe transport.take()
    }

    /// Closes a connection that lingers, for the reason for which it lingers.
    func close() {
        guard let closeReason else { preconditionFailure("a connection that lingers has its reason") }
        close(closeReason)
    }

    /// Closes the connection. Does nothing if it is closed already, so that every path that finds a failure may call it.
    func close(_ reason: CloseReason) {
        guard phase != .closed else { return }
        // Set first: whatever runs below, and finds another failure, must not close a second time.
        phase = .closed
        // The events before the socket: the system may give its number to the next connection at once.
        readEvent.clear()
        writeEvent.clear()
        if isCut || leavesUnreadBytes(reason) { unsafe transport?.resetOnClose() }
        unsafe transport = nil
        release(reason)
    }

    /// Whether the client has not read what it was sent. A normal close would leave these bytes in the kernel for minutes more.
    private func leavesUnreadBytes(_ reason: CloseReason) -> Bool {
        reason == .clientStalled || reason == .clientTooSlow
    }

    /// Whether the connection closes within a body that only the end of the connection ends (HTTP/1.0). A normal close would look like the
    /// end of the body, so the client gets a reset.
    private var isCut: Bool {
        delivery?.endsWithConnection ?? false
    }

    /// Releases everything that the connection holds, in an order that lets the exchange see a connection that cannot be written to.
    private func release(_ reason: CloseReason) {
        precondition(phase == .closed || phase == .tunnelling, "a connection is released when its socket is gone")
        let reason = closeReason ?? reason
        closeReason = reason
        worker.counters.closes.add(Int(reason.rawValue), 1)
        account.closeReason = reason
        worker.timers.cancel(self)
        endReadingWatch()
        endSendingWatch()
        // The body must not wait for a reader that is gone, and the fetch asks it who still reads when the exchange detaches it.
        endDelivery()
        let exchange = self.exchange
        self.exchange = nil
        exchange?.clientLeft()
        limits = nil
        precondition(self.exchange == nil && delivery == nil, "nothing is sent on a connection that is gone")
        if let pins {
            self.pins = nil
            for identity in pins.identities { worker.origins.endPin(identity, .clientClosed(reason)) }
        }
        worker.forget(id)
    }
}
