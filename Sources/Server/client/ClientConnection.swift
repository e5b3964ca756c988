import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Storage
import Transaction

/// One client's connection, and the session of HTTP/1 on it: reads requests, one after the other, and writes their answers in order
/// (RFC 9112 §9.3).
///
/// ```
/// idle ─head─▶ answering ─last byte─▶ idle
///   │              ├──▶ tunnelling (the socket goes to a relay)
///   │              └──▶ lingering ─▶ closed
///   └──▶ closed
/// ```
///
/// A hit begins and ends within one callback: one read, one write. Whatever has to wait lives in an `Exchange`, which knows this
/// connection as its `ClientStream` alone.
final class ClientConnection: TimedObject {
    let worker: Worker
    let id: ConnectionID
    let context: ClientContext
    enum Phase { case idle, answering, tunnelling, lingering, closed }
    var phase: Phase = .idle
    /// Nil once it is closed or surrendered. No method of a transport calls back, so the unchecked access is exclusive.
    @exclusivity(unchecked) var transport: Transport?
    var readEvent = IOEvent()
    var writeEvent = IOEvent()
    /// Bytes received and not yet understood: part of a head, pipelined requests. A body goes to its `InboundBody`.
    var inbound: [UInt8] = []
    var progress = HeadProgress()
    /// Heads and framing that the socket did not take yet.
    var output = OutputQueue()
    /// A stored body that goes out behind what is queued.
    var delivery: Delivery?
    var exchange: Exchange?
    /// Counts the exchanges, to tell one from the next.
    var exchangeNumber: UInt32 = 0
    /// Why the connection closes after the response under way; nil where it stays open.
    var closing: CloseReason?
    /// Why it closed, or is about to.
    var closeReason: CloseReason?
    var isProcessing = false
    /// Requests that are here already wait for the connection's next turn.
    private var awaitsTurn = false
    /// The client has sent its last byte (FIN). It may wait for answers still.
    private(set) var hasInputEnded = false
    var requestsAnswered = 0
    /// Bytes that the socket took since the final head was queued.
    var answerBytesSent = 0
    var lingerBytes = 0
    var account = Account()
    /// One of the connections that `limits.clients_max` bounds.
    private let place: Occupancy.Place

    init(worker: Worker, id: ConnectionID, context: ClientContext, place: Occupancy.Place) {
        self.worker = worker
        self.id = id
        self.context = context
        self.place = place
    }

    /// The exchange under way, if it is still the one of that number.
    func exchange(_ number: UInt32) -> Exchange? { number == exchangeNumber ? exchange : nil }

    /// No request has begun; at most a part of a head is there.
    var isIdle: Bool { phase == .idle }

    // MARK: reading

    func onReadable() {
        switch unsafe readTransport(worker.readBuffer) {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            unsafe received(UnsafeRawBufferPointer(start: worker.readBuffer.baseAddress, count: count))
        case .wouldBlock:
            return
        case .closed:
            endInput()
        case .failed:
            close(.clientLeft)
        }
    }

    @inline(__always)
    func readTransport(_ buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        unsafe transport?.read(into: buffer) ?? .closed
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .idle:
            if inbound.isEmpty {
                let consumed = unsafe process(bytes)
                // Most requests are hits: nothing is left of them, and nobody takes a body.
                if consumed == bytes.count, exchange == nil { return }
                if consumed < bytes.count { unsafe keep(UnsafeRawBufferPointer(rebasing: bytes[consumed...])) }
            } else {
                unsafe inbound.append(contentsOf: bytes)
                processInbound()
            }
            exchange?.uploadMore()
            pauseWhereFull()
        case .answering:
            unsafe keep(bytes)
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
            exchange?.uploadMore()
            pauseWhereFull()
        case .lingering:
            lingerBytes += bytes.count
            if lingerBytes > ClientConnection.lingerBytesMax { close() }
        case .tunnelling, .closed:
            return
        }
    }

    /// The client has sent its last byte. What it sent before is answered; that the client itself is gone shows when it resets the
    /// connection or does not take its answer.
    private func endInput() {
        hasInputEnded = true
        readEvent.remove()
        switch phase {
        case .idle:
            if !awaitsTurn { close(inbound.isEmpty ? .clientClosed : .clientLeft) }
        case .answering:
            // A body that ends before its end makes no request, unless its answer has come already.
            let isCut = exchange?.stream.isAwaiting == true && exchange?.stream.body?.isWhole == false
            if isCut || isClientGone { return close(.clientLeft) }
            worker.loop.timers.schedule(self, after: ClientConnection.presenceInterval)
        case .lingering:
            close()
        case .tunnelling, .closed:
            return
        }
    }

    /// A client that has sent its last byte cannot be watched by reading: it is asked for at intervals whether it is still there.
    private static let presenceInterval: Duration = .seconds(1)

    /// The connection was reset, so nobody will take the answer.
    private var isClientGone: Bool { unsafe transport?.isReset ?? true }

    func keep(_ bytes: UnsafeRawBufferPointer) {
        guard phase != .closed && phase != .lingering else { return }
        let ofBody = unsafe appendToBody(bytes)
        unsafe inbound.append(contentsOf: bytes[ofBody...])
        // An incomplete head has its time from the first byte on, however slowly the rest drips in.
        if phase == .idle {
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
        }
    }

    /// Returns how many of the bytes belong to the body of the request under way.
    private func appendToBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard phase == .answering, let body = exchange?.stream.body, !body.isWhole else { return 0 }
        return unsafe body.receive(bytes)
    }

    /// The client has sent more than the request under way.
    var hasUnreadBytes: Bool { hasMoreInTurn || !inbound.isEmpty }
    var hasMoreInTurn = false

    /// Room for a head that is not whole, or for requests that wait for their turn.
    var inboundBytesMax: Int {
        max(worker.snapshot.limits.pipelinedBytesMax, worker.snapshot.limits.headBytesMax)
    }

    /// Enough is here that nobody has taken yet.
    private func pauseWhereFull() {
        if max(inbound.count, exchange?.stream.body?.waitingBytes ?? 0) >= inboundBytesMax { pauseReading() }
    }

    func pauseReading() { readEvent.remove() }
    func resumeReading() { if !hasInputEnded && (phase == .answering || phase == .idle) { readEvent.add() } }

    func processInbound() {
        let bytes = inbound
        inbound = []
        let consumed = unsafe bytes.withUnsafeBytes { unsafe process($0) }
        guard consumed < bytes.count, phase != .closed, phase != .lingering else { return }
        // A new head has begun, behind a request that was whole: it has its own time.
        if consumed > 0, phase == .idle {
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
        }
        let ofBody = unsafe bytes.withUnsafeBytes {
            unsafe appendToBody(UnsafeRawBufferPointer(rebasing: $0[consumed...]))
        }
        // What came meanwhile is behind what is kept.
        inbound = bytes[(consumed + ofBody)...] + inbound
    }

    /// Answers the requests in `bytes` as long as each is done at once.
    /// - Returns: how many bytes are used up.
    func process(_ bytes: UnsafeRawBufferPointer) -> Int {
        isProcessing = true
        defer { isProcessing = false }
        var consumed = 0
        var requests = 0
        while phase == .idle && consumed < bytes.count {
            guard unsafe requests < worker.scratch.pointee.limits.requestsPerTurnMax else {
                awaitsTurn = true
                worker.loop.afterTurn { [self] in continueReading() }
                break
            }
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes.bindMemory(to: UInt8.self)[consumed...])
            var progress = progress
            do throws(FramingError) {
                let isComplete = unsafe try parseRequestHead(
                    rest.span, into: &worker.scratch.pointee.requestHead, progress: &progress,
                    limits: worker.scratch.pointee.limits)
                self.progress = isComplete ? HeadProgress() : progress
                guard isComplete else { break }
            } catch {
                refuse(violation: error)
                return bytes.count
            }
            let headBytes = unsafe worker.scratch.pointee.requestHead.byteCount
            consumed += headBytes
            requests += 1
            hasMoreInTurn = consumed < bytes.count
            unsafe answer(UnsafeBufferPointer(rebasing: rest[..<headBytes]))
        }
        return consumed
    }

    /// Goes on with what was received while an answer was under way.
    func continueReading() {
        guard phase == .idle, !isProcessing else { return }
        awaitsTurn = false
        if !inbound.isEmpty { processInbound() }
        if inbound.count < inboundBytesMax { resumeReading() }
        exchange?.uploadMore()
        if hasInputEnded && phase == .idle && !awaitsTurn { close(inbound.isEmpty ? .clientClosed : .clientLeft) }
    }

    override func timerFired() {
        let owesBody = exchange?.owesBody == true
        switch phase {
        case .idle where !inbound.isEmpty:
            refuseLateHead()
        case .idle:
            close(.idle)
        case .answering where writeEvent.isAdded:
            worker.counters.add(.timeouts)
            abort(.clientStalled)
        case .answering where hasInputEnded:
            if isClientGone { return close(.clientLeft) }
            worker.loop.timers.schedule(self, after: ClientConnection.presenceInterval)
        case .answering where !(readEvent.isAdded && owesBody):
            // The origin is taking its time, and has its own limit.
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
        case .answering where exchange?.stream.isAwaiting == true:
            worker.counters.add(.timeouts)
            closing = .bodyTimeout
            exchange?.requestBodyTimedOut()
        case .answering:
            worker.counters.add(.timeouts)
            abort(.bodyTimeout)
        case .lingering:
            close()
        case .tunnelling, .closed:
            break
        }
    }
}
