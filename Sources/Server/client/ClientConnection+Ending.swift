import CLarder
import Caching
import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Storage
import Transaction

/// How a response ends, and how the connection does.
extension ClientConnection {
    func finishResponse() {
        guard phase == .answering else { return }
        if let exchange {
            exchange.finished()
            if exchange.leavesRequestUnread { persists = false }
        }
        exchange = nil
        guard persists, !worker.isDraining else { return linger() }
        phase = .idle
        worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
        if !isProcessing { continueReading() }
    }

    /// The client does not get its whole answer, and must be able to tell: the connection ends without one.
    func abort() {
        exchange?.broke()
        close()
    }

    func refuse(violation: FramingError) {
        worker.counters.add(.requests)
        worker.counters.count(violation)
        worker.counters.add(.refused)
        account = Account(worker.log)
        account.status = violation.requestStatus
        account.outcome = .refused
        persists = false
        phase = .answering
        ErrorResponse(violation).append(isHead: false, persists: false, date: worker.wallTime, to: &pending)
        if worker.log.isOn { worker.log.append(account, violation: violation, client: peer) }
        flush()
    }

    /// Our side is closed; what the client still sends is read and dropped for a moment, since a reset would destroy
    /// the answer on its way (RFC 9112 §9.6).
    func linger() {
        guard phase != .closed, phase != .lingering else { return }
        phase = .lingering
        inbound = []
        Sockets.shutdownWrite(fd)
        lingerBytes = 0
        readEvent.add()
        worker.loop.timers.schedule(self, after: .seconds(2))
    }

    /// The exchange has a connection for the body that it waits to send: once this turn's bytes are put by.
    func uploadSoon() { if !isProcessing { exchange?.uploadMore() } }

    static let lingerBytesMax = 1 << 20

    /// The socket goes to somebody else; this connection is over.
    func surrender() -> (fd: CInt, early: [UInt8]) {
        let surrendered = (fd, inbound)
        inbound = []
        fd = -1
        phase = .tunnelling
        release()
        return surrendered
    }

    func close() {
        guard phase != .closed else { return }
        let isOpen = fd >= 0
        phase = .closed
        if isOpen {
            readEvent.clear()
            writeEvent.clear()
            if isCut { Sockets.resetOnClose(fd) }
            Glibc.close(fd)
            fd = -1
        }
        release()
    }

    /// It closes before the end of a body that the end of the connection ends (HTTP/1.0): only a reset tells the client.
    private var isCut: Bool {
        if let delivery { return delivery.endsWithConnection }
        return exchange?.stream.isCutByClosing ?? false
    }

    func release() {
        readEvent.clear()
        writeEvent.clear()
        worker.loop.timers.cancel(self)
        endDelivery()
        let exchange = self.exchange
        self.exchange = nil
        exchange?.clientLeft()
        worker.forget(id)
    }
}
