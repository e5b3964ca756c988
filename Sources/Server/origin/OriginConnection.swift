import EventLoop
import Message

/// Where a connection leads: connections with equal keys may be used for each other's requests.
struct OriginKey: Hashable {
    var scheme: Scheme
    var host: String
    var port: UInt16
}

/// One connection to an origin: its transport, and the bytes that wait to be sent.
///
/// In the pool it watches for the origin's close; in use it tells its fetch when it can be read or written.
final class OriginConnection: TimedObject {
    /// Its pool, which stays the one of its origin while it is open.
    let pool: OriginPools.Pool
    let address: SocketAddress
    /// The rules under which it was opened.
    let snapshot: Snapshot
    private(set) var requestsSent = 0
    /// The fetch that uses the connection; nil while it is idle in the pool.
    var fetch: Fetch?
    private let worker: Worker
    private let pools: OriginPools
    /// Nil once it is closed or surrendered. No method of a transport calls back, so the unchecked access is exclusive.
    @exclusivity(unchecked) private var transport: Transport?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    /// The owner wants to be told of bytes that arrive.
    private var isReading = false
    private var pendingOut: [UInt8] = []
    private var pendingOffset = 0

    init(
        worker: Worker, pools: OriginPools, pool: OriginPools.Pool, address: SocketAddress,
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
            { _, _, context in unsafe connection(context).socketIsReady(.read) }, context)
        unsafe self.transport!.assign(
            &writeEvent, on: worker.loop, .write,
            { _, _, context in unsafe connection(context).socketIsReady(.write) }, context)
        resumeReading()
        worker.counters.add(.originConnectionsOpened)
    }

    var isClosed: Bool { unsafe transport == nil }
    var isReused: Bool { requestsSent > 1 }
    var unsentBytes: Int { pendingOut.count - pendingOffset }

    func beginRequest() { requestsSent += 1 }

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
        if let fetch { return fetch.originReadable() }
        // TLS has its own messages, such as session tickets, which a read takes in without a byte for us.
        if unsafe transport?.isSecured == true, unsafe read(into: worker.readBuffer) == .wouldBlock { return }
        // An origin has nothing to say on an idle connection but that it closes (RFC 9112 §9.5); anything else is not
        // trusted.
        pools.drop(self)
    }

    override func timerFired() { if fetch == nil { pools.drop(self) } }

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
    func send(_ bytes: UnsafeRawBufferPointer) -> WriteOutcome {
        guard unsentBytes == 0 else {
            unsafe pendingOut.append(contentsOf: bytes)
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

    enum WriteOutcome { case sent, kept, failed }

    private func keep(_ bytes: UnsafeRawBufferPointer) {
        unsafe pendingOut.append(contentsOf: bytes)
        updateEvents()
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        guard let result = unsafe transport?.write(bytes) else { return .closed }
        if case .bytes(let count) = result { worker.counters.add(.bytesToOrigins, count) }
        return result
    }

    private func sendPending() {
        let pending = pendingOut[pendingOffset...]
        let result = unsafe pending.withUnsafeBytes { unsafe write($0) }
        switch result {
        case .bytes(let count):
            pendingOffset += count
            precondition(pendingOffset <= pendingOut.count, "no more is sent than was pending")
            guard pendingOffset == pendingOut.count else {
                if pendingOffset > OriginConnection.sentBytesKeptMax {
                    pendingOut.removeFirst(pendingOffset)
                    pendingOffset = 0
                }
                return updateEvents()
            }
            dropPending()
            fetch?.originDrained()
        case .wouldBlock:
            updateEvents()
        case .closed, .failed:
            dropPending()
            fetch?.originWriteFailed()
        }
    }

    /// Bytes at the front of the buffer that are sent already; beyond this they are removed, which moves the rest.
    private static let sentBytesKeptMax = 64 << 10

    private func dropPending() {
        pendingOut = []
        pendingOffset = 0
        updateEvents()
    }

    // MARK: the end

    /// Gives the socket away, for a tunnel after 101. Returns nil with TLS; the connection is closed in any case.
    func surrender() -> Descriptor? {
        guard let surrendered = unsafe transport.take() else { return nil }
        clearEvents()
        worker.counters.add(.originConnectionsClosed)
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

private func connection(_ context: UnsafeMutableRawPointer?) -> OriginConnection {
    unsafe Unmanaged<OriginConnection>.fromOpaque(context!).takeUnretainedValue()
}
