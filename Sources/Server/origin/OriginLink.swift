import EventLoop
import Message

/// One connection to an origin that speaks HTTP/1: its transport, the bytes that wait to be sent, and who uses it.
///
/// ```
/// lent ──finish(.keep)──▶ idle in the pool ──lend──▶ lent
///   │                          │ origin closes, or too long
///   └─finish(.close), surrender┴──▶ closed
/// ```
final class OriginLink: TimedObject {
    /// Responses come in the order of the requests (RFC 9112 §9.3.2), and one that is slow holds up all behind it: a
    /// link has room for one stream.
    static let streamsMax = 1

    /// Where it is counted and where it waits while idle.
    let pool: OriginPool
    let address: SocketAddress
    /// The rules under which it was opened.
    let snapshot: Snapshot
    private var streamsLent = 0
    /// Who uses its stream; nil while it is idle.
    private var owner: (any OriginStreamOwner)?
    private let worker: Worker
    private unowned let pools: OriginPools
    /// Nil once it is closed or surrendered. No method of a transport calls back, so the unchecked access is exclusive.
    @exclusivity(unchecked) private var transport: Transport?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    /// The owner wants to be told of bytes that arrive.
    private var isReading = false
    private var pending = OutputQueue()

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
        precondition(streamsInUse < OriginLink.streamsMax, "a link lends no more streams than it has room for")
        precondition(unsentBytes == 0, "no request begins behind an unfinished one")
        self.owner = owner
        streamsLent += 1
        return OriginStream(on: self, number: streamsLent)
    }

    /// Whether the stream of that number is in use.
    func isLending(_ number: Int) -> Bool { owner != nil && streamsLent == number }

    func finish(_ ending: OriginStream.Ending) {
        owner = nil
        switch ending {
        case .keep(let time):
            if !isReading { resumeReading() }
            pools.takeBack(self, keepFor: time)
        case .close: pools.discard(self)
        }
    }

    // MARK: events

    /// With TLS, either event may be what reading or writing waits for.
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
        // TLS has its own messages, such as session tickets, which a read takes in without a byte for us.
        if unsafe transport?.isSecured == true, unsafe read(into: worker.readBuffer) == .wouldBlock { return }
        // An origin has nothing to say on an idle connection but that it closes (RFC 9112 §9.5); anything else is not
        // trusted.
        pools.drop(self)
    }

    override func timerFired() { if owner == nil { pools.drop(self) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        guard let result = unsafe transport?.read(into: buffer) else { return .closed }
        if result == .wouldBlock { updateEvents() }
        return result
    }

    /// Bytes are there that no event will announce: read until they are gone.
    var mustBeDrained: Bool { unsafe transport?.mustBeDrained ?? false }

    func pauseReading() {
        isReading = false
        updateEvents()
    }

    func resumeReading() {
        isReading = true
        updateEvents()
    }

    // MARK: writing

    /// Sends now what the socket takes and keeps the rest, in order.
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
        if case .bytes(let count) = result { worker.counters.add(.bytesToOrigins, count) }
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
            dropPending()
            owner?.writeFailed()
        }
    }

    private func dropPending() {
        pending.truncate(to: 0)
        updateEvents()
    }

    // MARK: the end

    /// Gives the socket away. Returns nil with TLS, and changes nothing.
    func surrender() -> Descriptor? {
        guard unsafe transport?.isSecured == false, let surrendered = unsafe transport.take() else { return nil }
        clearEvents()
        owner = nil
        worker.counters.add(.originConnectionsClosed)
        pools.discard(self)
        return surrendered.surrender()
    }

    func close() {
        guard unsafe transport != nil else { return }
        worker.loop.timers.cancel(self)
        // No event may outlive the socket.
        clearEvents()
        unsafe transport = nil
        worker.counters.add(.originConnectionsClosed)
    }

    private func clearEvents() {
        readEvent.clear()
        writeEvent.clear()
    }
}

private func link(_ context: UnsafeMutableRawPointer?) -> OriginLink {
    unsafe Unmanaged<OriginLink>.fromOpaque(context!).takeUnretainedValue()
}
