import Storage
import Synchronization

/// A piece of a large body that is read from the disk on a thread that may block, for one client.
@safe final class DiskReading: @unchecked Sendable {
    /// Bytes read at once.
    private static let roomBytes = 256 << 10
    /// Bytes the kernel is told of that will be wanted next.
    private static let readAheadBytes = 4 << 20

    private let body: Body
    private let offset: Int
    private let room: UnsafeMutableRawBufferPointer
    private var count = 0
    private let isDone = Atomic<Bool>(false)

    init(body: Body, offset: Int) {
        self.body = body
        self.offset = offset
        unsafe room = .allocate(byteCount: Self.roomBytes, alignment: 4096)
    }

    deinit { unsafe room.deallocate() }

    /// On a thread that may block.
    func read() {
        body.readAhead(from: offset, length: Self.readAheadBytes)
        if case .bytes(let bytes) = unsafe body.piece(from: offset, limit: Self.roomBytes, room: room, waits: true) {
            unsafe room.copyMemory(from: bytes)
            count = bytes.count
        }
        isDone.store(true, ordering: .releasing)
    }

    /// What was read; nil: it is under way.
    var result: DiskReading? { isDone.load(ordering: .acquiring) ? self : nil }

    /// nil: none of them.
    func bytes(from position: Int) -> UnsafeRawBufferPointer? {
        guard position >= offset, position < offset + count else { return nil }
        return unsafe UnsafeRawBufferPointer(rebasing: room[position - offset..<count])
    }
}
