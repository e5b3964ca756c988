import Accounts
import EventLoop
import Forwarding
import Framing
import Glibc
import LimitTables
import Message
import Origins
import Storage
import Transaction
import Transport

/// One client's connection and the HTTP/1 session on it: reads requests one after the other, and writes their answers in the same
/// order (RFC 9112 §9.3).
///
/// ```
/// idle ─head─▶ answering ─last byte─▶ idle
///   │              ├──▶ tunnelling (the socket goes to a relay)
///   │              └──▶ lingering ─▶ closed
///   └──▶ closed
/// ```
///
/// A hit begins and ends within one callback: one read, one write. A request that has to wait gets an `Exchange`, which knows this
/// connection only as its `ClientStream`.
///
/// Ownership: the worker's slab owns the connection; the connection owns its transport, its exchange and its delivery. All of it runs on
/// the worker's thread. Almost every call can end in `close`: the socket fails, a limit is reached, an exchange resets. `close` clears the
/// events, closes the socket and takes the connection out of the slab at once, but the object lives until the end of the turn, because one
/// of its methods may be running. So code that goes on after such a call checks `phase` first.
///
/// Thousands of connections may be idle: what few of them have is in objects of its own, and small properties stand together, which saves
/// the gaps between them.
@safe final class ClientConnection: TimedObject {
    enum Phase {
        /// No request is under way. At most a part of a head has been received.
        case idle
        /// A request is being answered. Further requests wait in `inbound`.
        case answering
        /// The socket belongs to a tunnel.
        case tunnelling
        /// Larder has closed its side. What the client still sends is discarded.
        case lingering
        case closed
    }
    /// The number of the present or last exchange. It makes jobs for an earlier exchange find nothing.
    var exchangeNumber: UInt32 = 0
    let worker: Worker
    let id: ConnectionID
    let context: ClientContext
    /// Nil once it is closed or surrendered. The access is unchecked, but exclusive: no method of a transport calls back.
    @exclusivity(unchecked) var transport: Transport?
    /// No method of an `IOEvent` calls back either.
    var readEvent: IOEvent {
        _read { yield unsafe uncheckedReadEvent }
        _modify { yield unsafe &uncheckedReadEvent }
    }
    @exclusivity(unchecked) private var uncheckedReadEvent = IOEvent()
    var writeEvent: IOEvent {
        _read { yield unsafe uncheckedWriteEvent }
        _modify { yield unsafe &uncheckedWriteEvent }
    }
    @exclusivity(unchecked) private var uncheckedWriteEvent = IOEvent()
    /// Bytes received but not parsed yet: part of a head, or pipelined requests. Bytes of a body go to its `InboundBody`.
    var inbound: [UInt8] {
        _read { yield unsafe uncheckedInbound }
        _modify { yield unsafe &uncheckedInbound }
    }
    @exclusivity(unchecked) private var uncheckedInbound: [UInt8] = []
    var progress = HeadProgress()
    /// Heads and framing that the socket has not accepted yet. They precede the bytes of `delivery`.
    ///
    /// A queue calls nothing while it changes: what is written into it is made before (`queue`, `step`), and sending its bytes calls the
    /// transport alone. So the unchecked access is exclusive.
    var output: OutputQueue {
        _read { yield unsafe uncheckedOutput }
        _modify { yield unsafe &uncheckedOutput }
    }
    @exclusivity(unchecked) private var uncheckedOutput = OutputQueue()
    var phase: Phase = .idle
    /// Why the connection closes after the present response; nil if it stays open.
    var closing: CloseReason?
    /// Why the connection closed or lingers. The first reason stays.
    var closeReason: CloseReason?
    /// The body that is sent behind the queued bytes.
    var delivery: Delivery?
    var exchange: Exchange?
    /// What few connections have. Nil until this one has something of it. Reading and setting it calls nothing: the unchecked access is exclusive.
    @exclusivity(unchecked) private var particulars: Particulars?
    /// How many were answered, or are being answered. It stays at the largest number, which is above every limit.
    private(set) var requestsAnswered: UInt32 = 0
    var isProcessing = false
    /// Requests in `inbound` wait for the next turn, because this turn has handled `limits.requests_per_turn_max`.
    private var awaitsTurn = false
    /// The client has sent its last byte (FIN). It may still be waiting for answers.
    private(set) var hasInputEnded = false
    /// What `process` has not used yet of the bytes that it was given: what follows the present head. Whoever takes bytes from here leaves the rest, so that
    /// each byte has one owner: `process` returns what is left to its caller, and a tunnel takes it along (`takeUnread`).
    ///
    /// It lies in the buffer of the caller of `process`, and is empty outside of that call.
    @exclusivity(unchecked) private var inHand = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    /// Bytes sent since the final head was queued, queued interim heads included.
    var answerBytesSent = 0
    /// The place of this connection among those that `limits.clients_max` bounds.
    let place: Occupancy.Place
    /// A plain value, which calls nothing while it changes: the unchecked access is exclusive.
    var account: Account {
        _read { yield unsafe uncheckedAccount }
        _modify { yield unsafe &uncheckedAccount }
    }
    @exclusivity(unchecked) private var uncheckedAccount = Account()
    /// Whether it goes on sending in a later turn of the loop (`ReaderQueue.postpone`).
    var isPostponed = false

    /// Nothing calls back while one of these is read or set: the unchecked accesses are exclusive.
    private final class Particulars {
        @exclusivity(unchecked) var pins: ConnectionPins?
        @exclusivity(unchecked) var logIn: ClientLogIn?
        @exclusivity(unchecked) var shortWay: KeptShortWay?
        @exclusivity(unchecked) var limits: HeldLimits?
        @exclusivity(unchecked) var readingWatch: ProgressWatch?
        @exclusivity(unchecked) var sendingWatch: ProgressWatch?
        @exclusivity(unchecked) var lingerBytes = 0
        @exclusivity(unchecked) var receivedTarget: ReceivedTarget?
    }

    /// A target with bytes beyond ASCII, as its client sent it.
    struct ReceivedTarget {
        let bytes: [UInt8]
        /// Which request of the connection has it, counted from 1.
        let request: UInt32
    }

    init(worker: Worker, id: ConnectionID, context: ClientContext, place: Occupancy.Place) {
        self.worker = worker
        self.id = id
        self.context = context
        self.place = place
    }

    func countRequest() { if requestsAnswered < .max { requestsAnswered += 1 } }

    /// The present exchange, if it has this number.
    func exchange(_ number: UInt32) -> Exchange? { number == exchangeNumber ? exchange : nil }

    /// Whether no request is under way.
    var isIdle: Bool { phase == .idle }

    /// Whether a request is likely to be on its way: the client has made none yet, or has sent the beginning of one.
    var mayBeAsking: Bool { isIdle && (requestsAnswered == 0 || !inbound.isEmpty) }

    // MARK: reading

    func onReadable() {
        switch unsafe readTransport(worker.readBuffer) {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            unsafe received(UnsafeRawBufferPointer(start: worker.readBuffer.baseAddress, count: count))
            if context.isSecured { drain() }
        case .wouldBlock:
            return
        case .closed:
            endInput()
        case .failed:
            close(.clientLeft)
        }
    }

    /// Reads bytes that TLS has received, and that no event of the socket announces. In the next turn, so that others have theirs.
    func drain() {
        guard unsafe transport?.mustBeDrained == true, readEvent.isAdded else { return }
        worker.loop.afterTurn { [self] in if readEvent.isAdded { onReadable() } }
    }

    @inline(__always)
    func readTransport(_ buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        unsafe transport?.read(into: buffer) ?? .closed
    }

    /// Parses and answers, or keeps, bytes that were read. `bytes` lie in the worker's read buffer, which the next read of any connection
    /// of this worker overwrites: what is not used here is copied.
    func received(_ bytes: UnsafeRawBufferPointer) {
        switch phase {
        case .idle:
            if inbound.isEmpty {
                let rest = unsafe process(bytes)
                // Most requests are hits: no byte is left over, and no exchange takes a body.
                if unsafe rest.isEmpty, exchange == nil { return }
                if unsafe !rest.isEmpty { unsafe keep(rest) }
            } else {
                unsafe inbound.append(contentsOf: bytes)
                processInbound()
            }
            exchange?.uploadMore()
            pauseWhereFull()
        case .answering:
            unsafe keep(bytes)
            // A body that is dropped has the time of one pause, so that nobody holds a connection with it. Nor do bytes that a client sends
            // prolong the time in which it has to read its answer.
            if exchange?.discardsBody != true, !writeEvent.isAdded {
                worker.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
            }
            exchange?.uploadMore()
            pauseWhereFull()
        case .lingering:
            // Read and discarded, so that no unread byte makes the system send a reset. A client that goes on for ever is cut off.
            lingerBytes += bytes.count
            if lingerBytes > ClientConnection.lingerBytesMax { close() }
        case .tunnelling, .closed:
            return
        }
    }

    /// The client has sent its last byte (FIN). Requests that it sent before are still answered. Whether the client itself is gone shows
    /// only when it resets the connection or accepts no bytes, so `timerFired` looks for a reset once a second.
    private func endInput() {
        precondition(!hasInputEnded, "the input of a connection ends once")
        hasInputEnded = true
        // A socket whose input has ended stays readable, and the loop would spin.
        readEvent.remove()
        switch phase {
        case .idle:
            if !awaitsTurn { close(inbound.isEmpty ? .clientClosed : .clientLeft) }
        case .answering:
            // A request whose body is cut off is not answered, unless its answer has begun already.
            let isCut = exchange?.stream.isAwaiting == true && exchange?.stream.body?.isWhole == false
            if isCut || isClientGone { return close(.clientLeft) }
            if exchange?.discardsBody == true { return flush() }
            worker.timers.schedule(self, after: ClientConnection.resetCheckInterval)
        case .lingering:
            close()
        case .tunnelling, .closed:
            return
        }
    }

    /// How often to look whether a client that has sent its last byte has reset the connection. No read event would tell.
    private static let resetCheckInterval: Duration = .seconds(1)

    /// Whether the connection was reset, so that nobody receives the answer.
    private var isClientGone: Bool { unsafe transport?.isReset ?? true }

    /// Keeps bytes that cannot be parsed now: gives those of a body to the body, and the rest to `inbound`.
    func keep(_ bytes: UnsafeRawBufferPointer) {
        guard phase != .closed && phase != .lingering else { return }
        precondition(phase != .tunnelling, "what a tunnel has not read stays in its socket")
        let ofBody = unsafe appendToBody(bytes)
        unsafe inbound.append(contentsOf: bytes[ofBody...])
        // The time limit for a head starts with its first byte, however slowly the rest arrives.
        if phase == .idle {
            worker.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
        }
    }

    /// Gives bytes to the body of the present request. Returns how many of them belong to it.
    private func appendToBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard phase == .answering, let body = exchange?.stream.body, !body.isWhole else { return 0 }
        let used = unsafe body.receive(bytes)
        precondition(used >= 0 && used <= bytes.count, "a body takes no more bytes than were received")
        return used
    }

    /// Whether the client has sent bytes beyond the present request.
    var hasUnreadBytes: Bool { unsafe !inHand.isEmpty || !inbound.isEmpty }

    /// Takes all bytes behind the present request out of this connection.
    func takeUnread() -> [UInt8] {
        // Bytes in hand were received first.
        let unread = unsafe inHand + inbound
        unsafe inHand = UnsafeRawBufferPointer(start: nil, count: 0)
        inbound = []
        return unread
    }

    /// How many bytes `inbound` may hold before reading pauses: at least a whole head.
    var inboundBytesMax: Int {
        max(worker.snapshot.limits.pipelinedBytesMax, worker.snapshot.limits.headBytesMax)
    }

    /// Stops reading if the bytes that nobody has taken reach `inboundBytesMax`.
    private func pauseWhereFull() {
        if max(inbound.count, exchange?.stream.body?.waitingBytes ?? 0) >= inboundBytesMax { pauseReading() }
    }

    func pauseReading() {
        readEvent.remove()
        noteContentAwaited()
    }

    func resumeReading() {
        if !hasInputEnded, phase == .answering || phase == .idle, !readEvent.isAdded {
            readEvent.add()
            drain()
        }
        noteContentAwaited()
    }

    /// Parses and answers the requests in `inbound`.
    func processInbound() {
        // Taken out while they are parsed: an answer may cause more to be received, which is kept in `inbound` meanwhile.
        let bytes = inbound
        inbound = []
        unsafe bytes.withUnsafeBytes { bytes in
            let rest = unsafe process(bytes)
            guard unsafe !rest.isEmpty, phase != .closed, phase != .lingering else { return }
            // A new head has begun behind a complete request: its own time limit starts.
            if rest.count < bytes.count, phase == .idle {
                worker.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
            }
            let ofBody = unsafe appendToBody(rest)
            // Answering may have read more, which belongs behind the bytes that are kept here.
            inbound = unsafe rest[ofBody...] + inbound
        }
    }

    /// Parses and answers the requests in `bytes`, until one of them has to wait or the turn is over.
    ///
    /// - Returns: the bytes that nobody has used. None behind a head that violates HTTP, because nothing there can be interpreted, and none if the
    ///   connection has become a tunnel, which owns them then.
    func process(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        isProcessing = true
        unsafe inHand = bytes
        defer {
            isProcessing = false
            unsafe inHand = UnsafeRawBufferPointer(start: nil, count: 0)
        }
        var requests = 0
        while unsafe phase == .idle && !inHand.isEmpty {
            guard unsafe requests < worker.scratch.pointee.limits.requestsPerTurnMax else {
                awaitsTurn = true
                worker.loop.afterTurn { [self] in continueReading() }
                break
            }
            let rest = unsafe inHand.bindMemory(to: UInt8.self)
            var progress = progress
            do throws(FramingError) {
                // The first request of a connection may be its only one: nothing is remembered of it.
                let isComplete =
                    requestsAnswered == 0
                    ? unsafe try parseRequestHead(
                        rest.span, into: &worker.scratch.pointee.requestHead, progress: &progress,
                        limits: worker.scratch.pointee.limits)
                    : unsafe try parseRequestHead(
                        rest.span, into: &worker.scratch.pointee.requestHead, progress: &progress,
                        limits: worker.scratch.pointee.limits, memory: worker.headMemory, owner: id.number)
                self.progress = isComplete ? HeadProgress() : progress
                guard isComplete else { break }
            } catch {
                if unsafe error != .badTarget || !takeEncoded(rest) { refuse(violation: error) }
                return unsafe UnsafeRawBufferPointer(start: nil, count: 0)
            }
            let headBytes = unsafe worker.scratch.pointee.requestHead.byteCount
            unsafe inHand = UnsafeRawBufferPointer(rebasing: inHand[headBytes...])
            requests += 1
            unsafe answer(UnsafeBufferPointer(rebasing: rest[..<headBytes]))
        }
        return unsafe inHand
    }

    /// Keeps a head whose target has bytes beyond ASCII, with these encoded, and all that follows it. They are parsed in the next turn, so that
    /// many such requests do not hold up other clients.
    ///
    /// - Returns: false if encoding does not help.
    @inline(never)
    private func takeEncoded(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let encoded = unsafe EncodedTarget(ofHead: bytes.span) else { return false }
        inbound = unsafe encoded.applied(to: bytes.span)
        progress = HeadProgress()
        receivedTarget = unsafe ReceivedTarget(bytes: Array(bytes[encoded.range]), request: requestsAnswered &+ 1)
        awaitsTurn = true
        worker.loop.afterTurn { [self] in continueReading() }
        return true
    }

    /// The target of the present request as received, if it is not the one that was parsed.
    var receivedTargetOfRequest: [UInt8]? {
        guard let receivedTarget, receivedTarget.request == requestsAnswered else { return nil }
        return receivedTarget.bytes
    }

    /// Goes on with bytes that were received while an answer was under way. Called at the end of an answer, and for requests that were left
    /// for the next turn.
    func continueReading() {
        guard phase == .idle, !isProcessing else { return }
        awaitsTurn = false
        if !inbound.isEmpty { processInbound() }
        // What is left is the beginning of a head, which came while the answer before it was under way.
        if phase == .idle, !inbound.isEmpty, !awaitsTurn {
            worker.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
        }
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
            worker.timers.schedule(self, after: ClientConnection.resetCheckInterval)
        case .answering where !(readEvent.isAdded && owesBody):
            // The client waits for the origin, which has its own time limit.
            worker.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientIdle)
        case .answering where exchange?.discardsBody == true:
            worker.counters.add(.timeouts)
            close(.bodyTimeout)
        case .answering:
            worker.counters.add(.timeouts)
            contentIsLate(.bodyTimeout)
        case .lingering:
            close()
        case .tunnelling, .closed:
            break
        }
    }
}

// MARK: what few connections have

extension ClientConnection {
    /// The origins at which this connection logs in with NTLM or Negotiate. Nil if there is none.
    var pins: ConnectionPins? {
        get { unsafe particulars?.pins }
        set { unsafe particulars(toSet: newValue != nil)?.pins = newValue }
    }
    /// Nil for clients that do not log in for their connection.
    var logIn: ClientLogIn? {
        get { unsafe particulars?.logIn }
        set { unsafe particulars(toSet: newValue != nil)?.logIn = newValue }
    }
    /// What was decided about the last request that was answered from memory. Nil where nothing looks at requests.
    var shortWay: KeptShortWay? {
        get { unsafe particulars?.shortWay }
        set { unsafe particulars(toSet: newValue != nil)?.shortWay = newValue }
    }
    /// What the present request holds of the buckets of `limits.rules`, until its answer ends.
    var limits: HeldLimits? {
        get { unsafe particulars?.limits }
        set { unsafe particulars(toSet: newValue != nil)?.limits = newValue }
    }
    /// Holds the client to `limits.download_rate_min`. Nil as long as no answer had to wait for it.
    var readingWatch: ProgressWatch? {
        get { unsafe particulars?.readingWatch }
        set { unsafe particulars(toSet: newValue != nil)?.readingWatch = newValue }
    }
    /// Holds the client to `limits.upload_rate_min`. Nil unless it has content to send.
    var sendingWatch: ProgressWatch? {
        get { unsafe particulars?.sendingWatch }
        set { unsafe particulars(toSet: newValue != nil)?.sendingWatch = newValue }
    }
    /// Bytes that were read and discarded while it lingers.
    var lingerBytes: Int {
        get { unsafe particulars?.lingerBytes ?? 0 }
        set { unsafe particulars(toSet: newValue > 0)?.lingerBytes = newValue }
    }

    /// The last target that was not parsed as it was received. Nil as long as there was none.
    var receivedTarget: ReceivedTarget? {
        get { unsafe particulars?.receivedTarget }
        set { unsafe particulars(toSet: newValue != nil)?.receivedTarget = newValue }
    }

    /// Returns the particulars. Makes them when the first one is set.
    private func particulars(toSet isThere: Bool) -> Particulars? {
        if isThere, unsafe particulars == nil { unsafe particulars = Particulars() }
        return unsafe particulars
    }
}
