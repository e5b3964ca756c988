import EventLoop
import Glibc
import Message
import TLS

/// Where a connection leads: connections with equal keys may be used for each other's requests.
struct OriginKey: Hashable {
    var scheme: Scheme
    var host: String
    var port: UInt16
}

/// One connection to an origin: the socket, its TLS session where there is one, and bytes that wait to be sent.
///
/// In the pool it watches for the origin's close; in use it tells its fetch when it can be read or written.
final class OriginConnection: TimedObject {
    /// Its pool, which stays the one of its origin while it is open.
    let pool: OriginPools.Pool
    let address: SocketAddress
    /// Under whose rules it was opened.
    let snapshot: Snapshot
    private(set) var requestsSent = 0
    /// The fetch that uses the connection; nil while it is idle in the pool.
    var fetch: Fetch?
    private let worker: Worker
    private let pools: OriginPools
    private var fd: CInt
    private let tls: TLSSession?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    private var pendingOut: [UInt8] = []
    private var pendingOffset = 0
    private(set) var isClosed = false

    init(
        worker: Worker, pools: OriginPools, pool: OriginPools.Pool, address: SocketAddress, fd: CInt, tls: TLSSession?,
        snapshot: Snapshot
    ) {
        self.worker = worker
        self.pools = pools
        self.pool = pool
        self.address = address
        self.snapshot = snapshot
        self.fd = fd
        self.tls = tls
        super.init()
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe readEvent.assign(
            worker.loop, fd: fd, .read,
            { _, _, context in
                unsafe Unmanaged<OriginConnection>.fromOpaque(context!).takeUnretainedValue().onReadable()
            }, context)
        readEvent.add()
        worker.counters.add(.originConnectionsOpened)
    }

    var isReused: Bool { requestsSent > 1 }
    var unsentBytes: Int { pendingOut.count - pendingOffset }

    func beginRequest() { requestsSent += 1 }

    // MARK: reading

    private func onReadable() {
        if let fetch { return fetch.originReadable() }
        // Idle: an origin has nothing to say but that it closes (RFC 9112 §9.5); anything else is not trusted.
        pools.drop(self)
    }

    override func timerFired() { if fetch == nil { pools.drop(self) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        if let tls { return unsafe TLSIO.read(tls, into: buffer) }
        return unsafe IO.read(fd, into: buffer)
    }

    /// A TLS session can hold bytes that the socket no longer shows: it is read until it has no more.
    var mustBeDrained: Bool { tls != nil }

    func pauseReading() { readEvent.remove() }
    func resumeReading() { if !isClosed { readEvent.add() } }

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
        if !writeEvent.isAdded {
            let context = unsafe Unmanaged.passUnretained(self).toOpaque()
            unsafe writeEvent.assign(
                worker.loop, fd: fd, .write,
                { _, _, context in
                    unsafe Unmanaged<OriginConnection>.fromOpaque(context!).takeUnretainedValue().onWritable()
                }, context)
            writeEvent.add()
        }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        let result = unsafe tls.map { unsafe TLSIO.write($0, bytes) } ?? IO.send(fd, bytes, more: false)
        if case .bytes(let count) = result { worker.counters.add(.bytesToOrigins, count) }
        return result
    }

    private func onWritable() {
        let pending = pendingOut[pendingOffset...]
        let result = unsafe pending.withUnsafeBytes { unsafe write($0) }
        switch result {
        case .bytes(let count):
            pendingOffset += count
            guard pendingOffset == pendingOut.count else {
                if pendingOffset > 64 << 10 {
                    pendingOut.removeFirst(pendingOffset)
                    pendingOffset = 0
                }
                return
            }
            pendingOut = []
            pendingOffset = 0
            writeEvent.clear()
            fetch?.originDrained()
        case .wouldBlock:
            return
        case .closed, .failed:
            writeEvent.clear()
            fetch?.originWriteFailed()
        }
    }

    // MARK: the end

    /// Gives the socket away, for a tunnel after 101; nil where TLS is in between.
    func surrender() -> CInt? {
        guard tls == nil, !isClosed else { return nil }
        readEvent.clear()
        writeEvent.clear()
        isClosed = true
        let surrendered = fd
        fd = -1
        return surrendered
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        worker.loop.timers.cancel(self)
        readEvent.clear()
        writeEvent.clear()
        _ = tls?.shutdown()
        Glibc.close(fd)
        fd = -1
        worker.counters.add(.originConnectionsClosed)
    }
}

/// TLS results in the words of sockets.
enum TLSIO {
    static func read(_ session: TLSSession, into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        switch unsafe session.read(into: buffer) {
        case .bytes(let count): .bytes(count)
        case .wantRead, .wantWrite: .wouldBlock
        case .closed: .closed
        case .failed: .failed(errno: ECONNRESET)
        }
    }

    static func write(_ session: TLSSession, _ bytes: UnsafeRawBufferPointer) -> IOResult {
        switch unsafe session.write(bytes) {
        case .bytes(let count): .bytes(count)
        case .wantRead, .wantWrite: .wouldBlock
        case .closed: .closed
        case .failed: .failed(errno: ECONNRESET)
        }
    }
}
