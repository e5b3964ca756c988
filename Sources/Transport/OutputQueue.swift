public import Glibc

/// Bytes that wait, in order, until a socket accepts them.
///
/// Bytes that were sent are dropped when the queue is empty, or when there are many of them: a peer that always leaves a few bytes unread
/// must not make Larder keep everything that it has received.
@usableFromInline
package struct OutputQueue: ~Copyable {
    @usableFromInline var bytes: [UInt8] = []
    /// How many of them were sent: at most `sentBytesMax` after each call.
    @usableFromInline var sentBytes: UInt32 = 0
    @usableFromInline var isLent = false

    @inlinable
    var sent: Int {
        get { Int(sentBytes) }
        set { sentBytes = UInt32(newValue) }
    }

    /// The most memory, in bytes, that an empty queue keeps for the next bytes.
    @usableFromInline static let capacityKept = 2 << 10
    /// The most bytes that were sent and are kept before they are dropped.
    @usableFromInline static let sentBytesMax = 64 << 10

    @inlinable
    package init() {}

    /// Bytes that have not been sent.
    @inlinable
    package var count: Int { bytes.count - sent }
    @inlinable
    package var isEmpty: Bool { count == 0 }
    /// Bytes held in memory, those included that were sent but not dropped.
    package var bytesHeld: Int { bytes.count }

    @inlinable
    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(!isLent, "bytes that are queued during a loan would come before those that are lent")
        unsafe self.bytes.append(contentsOf: bytes)
    }

    @inlinable
    package mutating func append(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe append($0) } }

    @inlinable
    package mutating func append(_ text: StaticString) {
        unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Hands out the bytes so that the caller appends to them. Until `takeBack` the queue must not be used. Bytes that are queued already
    /// must not change.
    @inlinable
    package mutating func lendBytes() -> [UInt8] {
        precondition(!isLent, "the bytes are lent to one caller at a time")
        isLent = true
        var lent: [UInt8] = []
        swap(&lent, &bytes)
        return lent
    }

    @inlinable
    package mutating func takeBack(_ lent: consuming [UInt8]) {
        precondition(
            isLent && bytes.isEmpty && lent.count >= sent,
            "queued bytes were removed, or others were queued in the meantime")
        bytes = lent
        isLent = false
    }

    /// The socket accepted `count` bytes.
    @inlinable
    package mutating func advance(by count: Int) {
        precondition(count >= 0 && count <= self.count, "a socket accepts no more bytes than are queued")
        sent += count
        trim()
    }

    /// Drops all unsent bytes but the first `count`.
    package mutating func truncate(to count: Int) {
        precondition(count >= 0 && count <= self.count, "only what is queued can be kept")
        bytes.removeLast(self.count - count)
        trim()
    }

    @inlinable
    mutating func trim() {
        precondition(sent <= bytes.count, "more bytes were sent than were queued")
        if sent == bytes.count {
            bytes.removeAll(keepingCapacity: bytes.capacity <= OutputQueue.capacityKept)
            sent = 0
        } else if sent > OutputQueue.sentBytesMax {
            bytes.removeFirst(sent)
            sent = 0
        }
    }

    /// Calls `body` with the unsent bytes.
    @inlinable
    package borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        precondition(!isLent, "a queue whose bytes are lent would look empty")
        return unsafe bytes.withUnsafeBytes { unsafe body(UnsafeRawBufferPointer(rebasing: $0[sent...])) }
    }

    /// Gathers the unsent bytes, and what follows them, for one `writev`. Does not remove them: call `advance` with what was accepted.
    ///
    /// - Parameters:
    ///   - vectors: room for the vectors, one more than `rest` fills.
    ///   - rest: fills vectors with what follows the queue, and returns how many.
    ///   - send: writes; gets the number of vectors in use.
    @inlinable
    package borrowing func gather<Result>(
        into vectors: UnsafeMutableBufferPointer<iovec>, rest: (UnsafeMutableBufferPointer<iovec>) -> Int,
        send: (Int) -> Result
    ) -> Result {
        unsafe withBytes { queued in
            guard unsafe !queued.isEmpty else {
                let used = unsafe rest(vectors)
                precondition(used >= 0 && used <= vectors.count, "more vectors than there is room for")
                return send(used)
            }
            unsafe vectors[0] = unsafe iovec(iov_base: .init(mutating: queued.baseAddress), iov_len: queued.count)
            // The queue takes the first vector, and `rest` fills those behind it.
            let used = unsafe 1 + rest(UnsafeMutableBufferPointer(rebasing: vectors[1...]))
            precondition(used >= 1 && used <= vectors.count, "more vectors than there is room for")
            return send(used)
        }
    }
}
