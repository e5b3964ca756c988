import Storage
import Synchronization

/// A piece of a body that a thread of the back store reads for one client.
///
/// That thread writes `room` and `count`, then sets `isDone` with release order. The worker reads them only after it has read
/// `isDone` with acquire order (`result`). That is why the class is `@unchecked Sendable`. The delivery may be gone by the time the read
/// ends; the job then holds the last reference.
@safe final class DiskReading: @unchecked Sendable {
    /// The most bytes that are read at once.
    private static let roomBytes = 256 << 10
    /// How many bytes the back store is asked to read ahead.
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

    /// Reads the piece. Called once, on a thread that may block.
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

    /// This object once the read has ended; nil before. `bytes` may be used on the result only.
    var result: DiskReading? { isDone.load(ordering: .acquiring) ? self : nil }

    /// Whether the back store has no bytes to give at this position of the body.
    func hasFoundNothing(at position: Int) -> Bool { position == offset && count == 0 }

    /// The bytes that were read, from `position` in the body on. Returns nil if the piece has none there.
    func bytes(from position: Int) -> UnsafeRawBufferPointer? {
        guard position >= offset, position < offset + count else { return nil }
        return unsafe UnsafeRawBufferPointer(rebasing: room[position - offset..<count])
    }
}
