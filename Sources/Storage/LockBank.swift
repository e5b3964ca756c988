internal import Glibc

/// A row of mutexes, each on a cache line of its own. A lock is named by its index.
///
/// `pthread_mutex_t` because ThreadSanitizer sees it; it costs the same as `Synchronization.Mutex`.
@safe final class LockBank: @unchecked Sendable {
    private static let stride = 128
    private let cells: UnsafeMutableRawPointer
    let count: Int

    init(count: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "an address picks a lock by its lower bits")
        self.count = count
        unsafe cells = .allocate(byteCount: count * Self.stride, alignment: Self.stride)
        for index in 0..<count {
            let cell = unsafe (cells + index * Self.stride).bindMemory(to: pthread_mutex_t.self, capacity: 1)
            unsafe cell.initialize(to: pthread_mutex_t())
            let status = unsafe pthread_mutex_init(cell, nil)
            precondition(status == 0, "pthread_mutex_init failed")
        }
    }

    deinit {
        for index in 0..<count { _ = unsafe pthread_mutex_destroy(cell(index)) }
        unsafe cells.deallocate()
    }

    private func cell(_ index: Int) -> UnsafeMutablePointer<pthread_mutex_t> {
        unsafe (cells + index &* Self.stride).assumingMemoryBound(to: pthread_mutex_t.self)
    }

    @inline(__always)
    func withLock<Result>(_ index: Int, _ body: () -> Result) -> Result {
        let mutex = unsafe cell(index)
        _ = unsafe pthread_mutex_lock(mutex)
        defer { _ = unsafe pthread_mutex_unlock(mutex) }
        return body()
    }

    /// The lock of an object that has none of its own: objects share the row by address. Two objects may have the same, so
    /// no two of these locks are ever held at once.
    func index(for object: AnyObject) -> Int {
        let address = UInt(bitPattern: ObjectIdentifier(object))
        return Int(truncatingIfNeeded: (address &* 0x9E37_79B9_7F4A_7C15) >> 40) & (count - 1)
    }
}
