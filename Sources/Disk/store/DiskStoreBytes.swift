import EventLoop
import Glibc

/// A body in memory of its own.
@safe final class BytesInMemory: BodyBytes, @unchecked Sendable {  // filled by one thread before any other sees it
    let room: UnsafeMutableRawBufferPointer

    init(length: Int) {
        precondition(length >= 0, "a body has no negative length")
        unsafe room = .allocate(byteCount: length, alignment: 16)
    }
    deinit { unsafe room.deallocate() }

    var byteCount: Int { unsafe room.count }

    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int {
        precondition(offset >= 0 && offset <= byteCount, "the range begins within the body")
        guard limit > 0, vectors.count > 0, let start = unsafe room.baseAddress else { return 0 }
        unsafe vectors[0] = iovec(iov_base: start + offset, iov_len: min(limit, byteCount - offset))
        return 1
    }
}

/// One answer, yes or no, that a thread waits for.
final class BlockingAnswer: Sendable {
    private let given = CountingSemaphore()
    /// Nil until it is given.
    private let answer = Locked<Bool?>(nil)

    /// Must be called once, on any thread.
    func give(_ value: Bool) {
        answer.withLock { answer in
            precondition(answer == nil, "an answer is given once")
            answer = value
        }
        given.signal()
    }

    func wait() -> Bool {
        given.wait()
        return answer.withLock { $0 == true }
    }

    /// Returns false also if no answer was given in time.
    func wait(_ timeout: Duration) -> Bool { given.wait(timeout: timeout) && answer.withLock { $0 == true } }
}
