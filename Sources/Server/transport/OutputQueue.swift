import CLarder
import EventLoop
import Glibc

/// Bytes that wait until a socket takes them, in order.
///
/// What has been sent is dropped when everything is out, or when it is a lot: a peer that always leaves a little must not make us keep
/// all that it has taken.
package struct OutputQueue: ~Copyable {
    private var bytes: [UInt8] = []
    private var sent = 0

    /// Memory that an empty queue keeps for the next bytes.
    private static let capacityKept = 16 << 10
    /// Bytes that were sent and are not dropped yet.
    private static let sentBytesMax = 64 << 10

    package init() {}

    /// Bytes that have not been sent.
    package var count: Int { bytes.count - sent }
    package var isEmpty: Bool { count == 0 }
    /// Memory in use, for bytes that were sent as well.
    package var bytesHeld: Int { bytes.count }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes.append(contentsOf: bytes) }
    package mutating func append(_ bytes: [UInt8]) { self.bytes.append(contentsOf: bytes) }

    /// Lets somebody else append; bytes that are there already must stay as they are.
    package mutating func append<Result>(_ write: (inout [UInt8]) -> Result) -> Result {
        let before = bytes.count
        defer { precondition(bytes.count >= before, "what is queued goes out") }
        return write(&bytes)
    }

    /// The socket took some.
    package mutating func advance(by count: Int) {
        precondition(count >= 0 && count <= self.count, "a socket takes no more than there is")
        sent += count
        trim()
    }

    /// Drops all but the first bytes of those that have not been sent.
    package mutating func truncate(to count: Int) {
        precondition(count >= 0 && count <= self.count, "only what is queued can be kept")
        bytes.removeLast(self.count - count)
        trim()
    }

    private mutating func trim() {
        if sent == bytes.count {
            bytes.removeAll(keepingCapacity: bytes.capacity <= OutputQueue.capacityKept)
            sent = 0
        } else if sent > OutputQueue.sentBytesMax {
            bytes.removeFirst(sent)
            sent = 0
        }
    }

    /// The bytes that have not been sent.
    package borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        unsafe bytes.withUnsafeBytes { unsafe body(UnsafeRawBufferPointer(rebasing: $0[sent...])) }
    }

    /// Gathers the bytes that have not been sent and what follows them for one `writev`.
    ///
    /// - Parameters:
    ///   - vectors: has room for one more than `rest` fills.
    ///   - rest: fills the vectors behind the queue's own, and returns how many.
    ///   - send: gets the number of vectors in use.
    borrowing func gather<Result>(
        into vectors: UnsafeMutableBufferPointer<iovec>, rest: (UnsafeMutableBufferPointer<iovec>) -> Int,
        send: (Int) -> Result
    ) -> Result {
        unsafe withBytes { queued in
            guard unsafe !queued.isEmpty else { return unsafe send(rest(vectors)) }
            unsafe vectors[0] = unsafe iovec(iov_base: .init(mutating: queued.baseAddress), iov_len: queued.count)
            return unsafe send(1 + rest(UnsafeMutableBufferPointer(rebasing: vectors[1...])))
        }
    }
}
