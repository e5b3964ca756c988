internal import Glibc

/// A row of mutexes, each on a cache line of its own. An index identifies a lock.
///
/// They are `pthread_mutex_t`, because ThreadSanitizer knows these, and they cost the same as `Synchronization.Mutex`.
@safe final class LockBank: @unchecked Sendable {
    private static let stride = 128
    private let cells: UnsafeMutableRawPointer
    let count: Int

    init(count: Int) {
        precondition(count > 0 && count & (count - 1) == 0, "the number of locks is a power of two")
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

    /// The index of the lock for an object that has no lock of its own: its address selects one. Two objects may have the same lock, so
    /// a thread never holds two of these locks.
    func index(for object: AnyObject) -> Int {
        let address = UInt(bitPattern: ObjectIdentifier(object))
        return Int(truncatingIfNeeded: (address &* 0x9E37_79B9_7F4A_7C15) >> 40) & (count - 1)
    }
}
