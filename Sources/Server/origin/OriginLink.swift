import EventLoop
import Message

/// One HTTP/1 connection to an origin: its transport, the bytes that wait to be sent, and its present user.
///
/// While it is lent its owner gets the events. While it is idle any event means that the origin closes it.
///
/// ```
/// lent ──finish(.keep)──▶ idle in the pool ──lend──▶ lent
///   │                          │ origin closes, or too long
///   └─finish(.close), surrender┴──▶ closed
/// ```
final class OriginLink: TimedObject {
    /// A link carries one stream at a time: responses come in the order of their requests (RFC 9112 §9.3.2), so a slow one
    /// would delay all behind it.
    static let streamsMax = 1

    /// The pool that counts the link, and that keeps it while it is idle.
    let pool: OriginPool
    let address: SocketAddress
    /// The configuration under whose rules the link was opened.
    let snapshot: Snapshot
    private var streamsLent = 0
    /// The user of its stream; nil while it is idle.
    private var owner: (any OriginStreamOwner)?
    /// The log-in of the connection with NTLM or Negotiate. Nil if there is none, or if it held for one request.
    var logIn: LinkLogIn?
    private let worker: Worker
    private unowned let pools: OriginPools
    /// Nil once it is closed or surrendered. The access is unchecked, but exclusive: no method of a transport calls back.
    @exclusivity(unchecked) private var transport: Transport?
    /// No method of an `IOEvent` or an `OutputQueue` calls back either.
    private var readEvent: IOEvent {
        _read { yield unsafe uncheckedReadEvent }
        _modify { yield unsafe &uncheckedReadEvent }
    }
    @exclusivity(unchecked) private var uncheckedReadEvent = IOEvent()
    private var writeEvent: IOEvent {
        _read { yield unsafe uncheckedWriteEvent }
        _modify { yield unsafe &uncheckedWriteEvent }
    }
    @exclusivity(unchecked) private var uncheckedWriteEvent = IOEvent()
    /// Whether the owner wants to hear of bytes that arrive. Always true while the link is idle.
    private var isReading = false
    private var pending: OutputQueue {
        _read { yield unsafe uncheckedPending }
        _modify { yield unsafe &uncheckedPending }
    }
    @exclusivity(unchecked) private var uncheckedPending = OutputQueue()

    init(
        worker: Worker, pools: OriginPools, pool: OriginPool, address: SocketAddress,
        transport: consuming Transport, snapshot: Snapshot
    ) {
        self.worker = worker
        self.pools = pools
        self.pool = pool
        self.address = address
        self.snapshot = snapshot
        unsafe self.transport = consume transport
        super.init()
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe self.transport!.assign(
            &readEvent, on: worker.loop, .read,
            { _, _, context in unsafe link(context).socketIsReady(.read) }, context)
        unsafe self.transport!.assign(
            &writeEvent, on: worker.loop, .write,
            { _, _, context in unsafe link(context).socketIsReady(.write) }, context)
        resumeReading()
        worker.counters.add(.originConnectionsOpened)
    }

    var unsentBytes: Int { pending.count }

    // MARK: lending

    var streamsInUse: Int { owner == nil ? 0 : 1 }

    func lend(to owner: any OriginStreamOwner) -> OriginStream {
        precondition(streamsInUse < OriginLink.streamsMax, "the link is lent already")
        precondition(unsentBytes == 0, "the request before has not been sent")
        precondition(unsafe transport != nil, "a closed link is not lent")
        self.owner = owner
        streamsLent += 1
        return OriginStream(on: self, number: streamsLent)
    }

    /// Gives the loan to another owner.
    func pass(to owner: any OriginStreamOwner) {
        precondition(self.owner != nil, "what is not lent has no owner")
        self.owner = owner
    }

    /// Whether the stream of that number is in use.
    func isLending(_ number: Int) -> Bool { owner != nil && streamsLent == number }

    func finish(_ ending: OriginStream.Ending) {
        precondition(owner != nil, "a loan ends once")
        // Before the pool is told: it may lend the link to the next owner within that call.
        owner = nil
        switch ending {
        case .keep(let time):
            if !isReading { resumeReading() }
            pools.takeBack(self, keepFor: time)
        case .close: pools.discard(self)
        case .reset:
            unsafe transport?.resetOnClose()
            pools.discard(self)
        }
    }

    // MARK: events

    /// With TLS, reading may wait for the write event and writing for the read event. Sending may end the loan, so the transport is asked
    /// again before reading.
    private func socketIsReady(_ event: Readiness) {
        if unsentBytes > 0, unsafe transport?.awaits(event, toRead: false, toWrite: true) == true { sendPending() }
        if isReading, unsafe transport?.awaits(event, toRead: true, toWrite: false) == true { onReadable() }
    }

    private func updateEvents() {
        guard unsafe transport != nil else { return }
        let writes = unsentBytes > 0
        if unsafe transport!.awaits(.read, toRead: isReading, toWrite: writes) {
            readEvent.add()
        } else {
            readEvent.remove()
        }
        if unsafe transport!.awaits(.write, toRead: isReading, toWrite: writes) {
            writeEvent.add()
        } else {
            writeEvent.remove()
        }
    }

    // MARK: reading

    private func onReadable() {
        if let owner { return owner.readable() }
        // TLS has messages of its own, such as session tickets. Reading consumes them without returning a byte.
        if unsafe transport?.isSecured == true, unsafe read(into: worker.readBuffer) == .wouldBlock { return }
        // On an idle connection an origin can only close (RFC 9112 §9.5). If it sends anything else, it is not trusted.
        pools.drop(self)
    }

    override func timerFired() { if owner == nil { pools.drop(self) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        guard let result = unsafe transport?.read(into: buffer) else { return .closed }
        if case .wouldBlock = result { updateEvents() }
        return result
    }

    /// Whether bytes have been received that no event will announce.
    var mustBeDrained: Bool { unsafe transport?.mustBeDrained ?? false }

    /// Whether the origin has closed the connection or sent bytes behind its response, as far as TLS has read already. Its own messages,
    /// such as session tickets, are consumed and do not count.
    var hasBytesBehindResponse: Bool {
        guard mustBeDrained else { return false }
        var byte: UInt8 = 0
        return unsafe withUnsafeMutableBytes(of: &byte) { unsafe read(into: $0) } != .wouldBlock
    }

    var isAskedForCertificate: Bool { unsafe transport?.isAskedForCertificate ?? false }
    var isCertificateRefused: Bool { unsafe transport?.isCertificateRefused ?? false }
    /// See `Transport.endPointHash`.
    var endPointHash: [UInt8]? { unsafe transport?.endPointHash ?? nil }

    func pauseReading() {
        precondition(owner != nil, "an idle link must see the origin close it")
        isReading = false
        updateEvents()
    }

    func resumeReading() {
        isReading = true
        updateEvents()
    }

    // MARK: writing

    /// Sends what the socket accepts and queues the rest, in order.
    func send(_ bytes: UnsafeRawBufferPointer) -> OriginStream.WriteOutcome {
        guard unsentBytes == 0 else {
            unsafe pending.append(bytes)
            return .kept
        }
        switch unsafe write(bytes) {
        case .bytes(let count) where count == bytes.count:
            return .sent
        case .bytes(let count):
            unsafe keep(UnsafeRawBufferPointer(rebasing: bytes[count...]))
            return .kept
        case .wouldBlock:
            unsafe keep(bytes)
            return .kept
        case .closed, .failed:
            return .failed
        }
    }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        unsafe pending.append(bytes)
        updateEvents()
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        guard let result = unsafe transport?.write(bytes) else { return .closed }
        if case .bytes(let count) = result {
            precondition(count <= bytes.count, "the socket accepted more bytes than it was offered")
            worker.counters.add(.bytesToOrigins, count)
        }
        return result
    }

    private func sendPending() {
        switch unsafe pending.withBytes({ unsafe write($0) }) {
        case .bytes(let count):
            pending.advance(by: count)
            updateEvents()
            if pending.isEmpty { owner?.drained() }
        case .wouldBlock:
            updateEvents()
        case .closed, .failed:
            // Nothing of it can be sent any more, and a queue that is not empty would make the event fire for ever.
            dropPending()
            owner?.writeFailed()
        }
    }

    private func dropPending() {
        pending.truncate(to: 0)
        updateEvents()
    }

    // MARK: the end

    /// Gives the transport to a tunnel, and ends the loan.
    func surrender() -> Transport {
        guard let surrendered = unsafe transport.take() else { preconditionFailure("a link that is lent is open") }
        precondition(owner != nil, "a loan ends once")
        clearEvents()
        owner = nil
        logIn = nil
        worker.counters.add(.originConnectionsClosed)
        pools.discard(self)
        return surrendered
    }

    /// Closes the socket. Called by the pools only, which count the links.
    func close() {
        precondition(owner == nil, "a link that is lent is not closed")
        guard unsafe transport != nil else { return }
        // No event may outlive the socket.
        clearEvents()
        // What is being made for it calls nobody any more.
        logIn = nil
        unsafe transport = nil
        worker.counters.add(.originConnectionsClosed)
    }

    private func clearEvents() {
        worker.timers.cancel(self)
        readEvent.clear()
        writeEvent.clear()
    }
}

private func link(_ context: UnsafeMutableRawPointer?) -> OriginLink {
    unsafe Unmanaged<OriginLink>.fromOpaque(context!).takeUnretainedValue()
}
