import Storage
import Synchronization

/// A piece of a large body that is read from the back store for one client, on a thread that may block.
///
/// That thread writes `room` and `count` and then sets `isDone`, releasing; the worker reads them only after it has seen
/// `isDone`, acquiring (`result`).
@safe final class DiskReading: @unchecked Sendable {
    /// Bytes read at once.
    private static let roomBytes = 256 << 10
    /// Bytes behind the piece that the back store is told will be wanted next.
    private static let readAheadBytes = 4 << 20

    private let body: Body
    private let offset: Int
    private let room: UnsafeMutableRawBufferPointer
    private var count = 0
    private let isDone = Atomic<Bool>(false)

    init(body: Body, offset: Int) {
        precondition(offset >= 0, "a piece begins at a byte of the body")
        self.body = body
        self.offset = offset
        unsafe room = .allocate(byteCount: Self.roomBytes, alignment: 4096)
    }

    deinit { unsafe room.deallocate() }

    /// Reads the piece, once. On a thread that may block.
    func read() {
        precondition(!isDone.load(ordering: .relaxed), "a piece is read once")
        body.readAhead(from: offset, length: Self.readAheadBytes)
        if case .bytes(let bytes) = unsafe body.piece(from: offset, limit: Self.roomBytes, room: room, waits: true) {
            precondition(bytes.count <= Self.roomBytes, "a piece fits its room")
            unsafe room.copyMemory(from: bytes)
            count = bytes.count
        }
        isDone.store(true, ordering: .releasing)
    }

    /// Itself when it was read; nil while that is under way.
    var result: DiskReading? { isDone.load(ordering: .acquiring) ? self : nil }

    /// What was read of the body from `position` on; nil: nothing.
    func bytes(from position: Int) -> UnsafeRawBufferPointer? {
        guard position >= offset, position < offset + count else { return nil }
        return unsafe UnsafeRawBufferPointer(rebasing: room[position - offset..<count])
    }
}
