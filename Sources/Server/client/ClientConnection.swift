import CLarder
import Caching
import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Storage
import Transaction

/// One client's connection: reads requests, one after the other, and writes their answers in order (RFC 9112 §9.3).
///
/// ```
/// idle ─head─▶ answering ─last byte─▶ idle
///   │              ├──▶ tunnelling (the socket goes to a relay)
///   │              └──▶ lingering ─▶ closed
///   └──▶ closed
/// ```
///
/// A hit begins and ends within one callback: one read, one write. Whatever has to wait lives in an `Exchange`.
final class ClientConnection: TimedObject {
    let worker: Worker
    let id: ConnectionID
    let peer: IPAddress?
    enum Phase { case idle, answering, tunnelling, lingering, closed }
    var phase: Phase = .idle
    var fd: CInt
    var readEvent = IOEvent()
    var writeEvent = IOEvent()
    /// Bytes received and not yet understood: part of a head, pipelined requests, a body that can not be sent on yet.
    var inbound: [UInt8] = []
    var progress = HeadProgress()
    /// Bytes of heads and framing that the socket did not take yet.
    var pending: [UInt8] = []
    var pendingOffset = 0
    /// A stored body that goes out behind what is queued.
    var delivery: Delivery?
    var exchange: Exchange?
    /// Counts the exchanges, to tell one from the next.
    var exchangeNumber: UInt32 = 0
    /// The connection stays open after the response under way.
    var persists = true
    var isProcessing = false
    var requestsAnswered = 0
    /// Bytes that the socket took since the final head was queued.
    var answerBytesSent = 0
    var lingerBytes = 0
    var account = Account()

    /// False: not among those who may use the proxy at all; it is told so, and nothing else.
    let isAdmitted: Bool

    init(worker: Worker, id: ConnectionID, fd: CInt, peer: IPAddress?, isAdmitted: Bool) {
        self.isAdmitted = isAdmitted
        self.worker = worker
        self.id = id
        self.fd = fd
        self.peer = peer
    }

    /// The exchange under way, if it is still the one of that number.
    func exchange(_ number: UInt32) -> Exchange? { number == exchangeNumber ? exchange : nil }

    /// No request has begun; at most a part of a head is there.
    var isIdle: Bool { phase == .idle }

    func start() {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe readEvent.assign(
            worker.loop, fd: fd, .read,
            { _, _, context in
                unsafe Unmanaged<ClientConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.onReadable() }
            }, context)
        readEvent.add()
        worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
    }

    // MARK: reading

    func onReadable() {
        switch unsafe IO.read(fd, into: worker.readBuffer) {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            unsafe received(UnsafeRawBufferPointer(start: worker.readBuffer.baseAddress, count: count))
        case .wouldBlock:
            return
        case .closed, .failed:
            close()
        }
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .idle:
            if inbound.isEmpty {
                let consumed = unsafe process(bytes)
                if consumed < bytes.count { unsafe keep(UnsafeRawBufferPointer(rebasing: bytes[consumed...])) }
            } else {
                unsafe inbound.append(contentsOf: bytes)
                processInbound()
            }
            exchange?.uploadMore()
            if inbound.count >= inboundBytesMax { pauseReading() }
        case .answering:
            unsafe inbound.append(contentsOf: bytes)
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
            exchange?.uploadMore()
            if inbound.count >= inboundBytesMax { pauseReading() }
        case .lingering:
            lingerBytes += bytes.count
            if lingerBytes > ClientConnection.lingerBytesMax { close() }
        case .tunnelling, .closed:
            return
        }
    }

    func keep(_ bytes: UnsafeRawBufferPointer) {
        guard phase != .closed && phase != .lingering else { return }
        unsafe inbound.append(contentsOf: bytes)
        // An incomplete head has its time from the first byte on, however slowly the rest drips in.
        if phase == .idle {
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
        }
    }

    /// The client has sent more than the request under way.
    var hasUnreadBytes: Bool { hasMoreInTurn || !inbound.isEmpty }
    var hasMoreInTurn = false

    /// What is received and not understood yet; what is left of it is put back before anything else is read.
    func takeInbound() -> [UInt8] {
        defer { inbound = [] }
        return inbound
    }

    func putBack(_ bytes: [UInt8]) { inbound = inbound.isEmpty ? bytes : bytes + inbound }

    /// Room for a head that is not whole, or for requests that wait for their turn.
    var inboundBytesMax: Int {
        max(worker.snapshot.limits.pipelinedBytesMax, worker.snapshot.limits.headBytesMax)
    }

    func pauseReading() { readEvent.remove() }
    func resumeReading() { if phase == .answering || phase == .idle { readEvent.add() } }

    func processInbound() {
        let bytes = inbound
        inbound = []
        let consumed = unsafe bytes.withUnsafeBytes { unsafe process($0) }
        guard consumed < bytes.count, phase != .closed, phase != .lingering else { return }
        // A new head has begun, behind a request that was whole: it has its own time.
        if consumed > 0, phase == .idle {
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
        }
        // What came meanwhile is behind what is kept.
        inbound = bytes[consumed...] + inbound
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
        if !inbound.isEmpty { processInbound() }
        if inbound.count < inboundBytesMax { resumeReading() }
        exchange?.uploadMore()
    }

    override func timerFired() {
        switch phase {
        case .idle where !inbound.isEmpty:
            worker.counters.add(.timeouts)
            worker.counters.add(.requests)
            worker.counters.add(.refused)
            worker.counters.refusals.add(Int(Refusal.requestTimeout.rawValue), 1)
            account = Account(worker.log)
            phase = .answering
            persists = false
            ErrorResponse(.requestTimeout).append(isHead: false, persists: false, date: worker.wallTime, to: &pending)
            flush()
        case .answering where !writeEvent.isAdded && !(readEvent.isAdded && exchange?.owesBody == true):
            // The origin is taking its time, and has its own limit.
            worker.loop.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
        case .answering where !writeEvent.isAdded && exchange?.isAnswered == false && account.status == 0:
            worker.counters.add(.timeouts)
            exchange?.bodyIsLate()
        case .idle, .answering, .lingering:
            if phase == .answering { worker.counters.add(.timeouts) }
            abort()
        case .tunnelling, .closed:
            break
        }
    }
}
