package import Glibc
internal import Synchronization

/// The readers' side: any thread. A reader attaches to a growing body (Body+Window.swift); to a complete one it need not.
extension Body {
    /// Fills `vectors` with the published bytes from `offset`, at most `limit` bytes; returns the vectors used, zero
    /// where nothing is there. The pointers are valid as long as the body is held and, in window mode, the reader is
    /// attached and has not advanced beyond them.
    package func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int {
        var offset = offset
        var left = min(limit, available(from: offset) - offset)
        var used = 0
        while left > 0, used < vectors.count {
            let place = layout.page(at: offset)
            guard let base = unsafe page(place.index) else {
                // A window has no pages: it is asked here, so that a hit does not ask.
                return unsafe used > 0 || !hasWindow ? used : passingVectors(from: offset, limit: left, into: vectors)
            }
            let count = min(left, place.end - offset)
            unsafe vectors[used] = iovec(iov_base: base + (offset - place.start), iov_len: count)
            offset += count
            left -= count
            used += 1
        }
        return used
    }

    /// The first `count` bytes, if memory has them in one page. Nil if it does not: send `vectors`. All of these bytes are published.
    package func firstBytes(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count <= layout.page(at: 0).end, isResident, let page = unsafe firstPage else { return nil }
        precondition(count >= 0 && count <= length, "bytes are read once they are published")
        return unsafe UnsafeRawBufferPointer(start: page, count: count)
    }

    /// The bytes from `offset` on as a range of a file, to be sent without a copy: as many as are together, at most `limit`. Nil where
    /// they are not in a file, are too few, or must be read first: send `vectors` or `piece`.
    /// - Parameter limit: all of these bytes are published.
    package func fileRange(from offset: Int, limit: Int) -> FileRange? {
        guard limit >= Self.fileBytesMin else { return nil }
        switch residence {
        case .window: return nil
        case .memory: return rangeOfPages(from: offset, limit: limit)
        case .whole(let copy):
            return isResident
                ? rangeOfPages(from: offset, limit: limit) : copy.fileRange(from: offset, count: limit)
        case .blocks(let large):
            guard let range = large.blocks.fileRange(from: offset, limit: limit), range.count >= Self.fileBytesMin
            else { return nil }
            return range
        }
    }

    /// Of complete bodies alone. Pages of a body that streams through a window are freed behind its readers all the time: punching each of
    /// them costs more than the copy.
    private func rangeOfPages(from offset: Int, limit: Int) -> FileRange? {
        guard isComplete, let arena = shelves.arena else { return nil }
        let end = offset + limit
        var place = layout.page(at: offset)
        guard let first = unsafe page(place.index), unsafe arena.contains(first) else { return nil }
        let start = unsafe first + (offset - place.start)
        var count = min(end, place.end) - offset
        while offset + count < end {
            place = layout.page(at: offset + count)
            guard unsafe page(place.index) == start + count else { break }
            count = min(end, place.end) - offset
        }
        guard count >= Self.fileBytesMin else { return nil }
        return unsafe arena.share(start, count)
    }

    /// Fewer bytes than this are copied, because `sendfile` is a system call of its own, and touches what the kernel knows of each page.
    /// Measured: 64 KiB of the disk cost 24 µs with a copy and a checksum, and 32 µs by `sendfile`; 128 KiB 46 and 42 µs; 96 KiB of memory
    /// 21 and 16 µs (docs/performance.md).
    package static let fileBytesMin = 96 << 10

    /// Registers a wake-up for the moment when the byte at `offset` is there, nobody fetches it any more, or the body
    /// ends; it comes once. Returns nil where that is so already: look again.
    ///
    /// The wait is counted before the bytes are looked at, and the writer publishes bytes before it looks at the count,
    /// both sequentially consistent: so one of the two sees the other, and no wake-up is lost.
    package func `await`(beyond offset: Int, _ wake: Wake) -> WaitTicket? {
        if let passing = unsafe passing { return unsafe awaitPassing(passing, beyond: offset, wake) }
        precondition(offset >= 0, "a reader waits for a byte of the body")
        return locked {
            let ticket = WaitTicket(id: shelves.nextID())
            makeAudience().addWait(ticket, beyond: offset, wake)
            waitCount.add(1, ordering: .sequentiallyConsistent)
            guard isDue(offset) else { return ticket }
            audience?.removeWait(ticket)
            waitCount.subtract(1, ordering: .relaxed)
            dismissIdleAudience()
            return nil
        }
    }

    /// Forgets a wait; one that is being woken at this moment may still be called.
    package func cancel(_ ticket: WaitTicket) {
        if let passing = unsafe passing { return unsafe passing.pointee.removeWait(ticket) }
        // The wake may hold the last reference to something that ends by cancelling: it is released after the lock.
        let forgotten = locked {
            let wake = audience?.removeWait(ticket)
            if wake != nil { waitCount.subtract(1, ordering: .relaxed) }
            dismissIdleAudience()
            return wake
        }
        withExtendedLifetime(forgotten) {}
    }

    /// Calls the waits that are due, outside the lock.
    func wakeReaders() {
        let due = locked { takeDue() }
        for wake in due { wake() }
    }

    /// Under the lock: takes the waits that are due. The caller calls them after the lock is released.
    func takeDue() -> [Wake] {
        guard let audience else { return [] }
        let due = audience.takeDue(where: isDue)
        let left = waitCount.subtract(due.count, ordering: .relaxed).newValue
        precondition(left >= 0, "a wait ends once")
        dismissIdleAudience()
        return due
    }

    /// Under the lock.
    private func isDue(_ offset: Int) -> Bool {
        if published.load(ordering: .sequentiallyConsistent) > offset { return true }
        // While it grows there is one writer, and it comes to every byte.
        guard let blocks else { return phase.load(ordering: .sequentiallyConsistent) != State.growing.rawValue }
        return blocks.spot(at: offset) != .claimed
    }

    /// Under the lock.
    func makeAudience() -> Audience {
        if let audience { return audience }
        let made = Audience()
        audience = made
        return made
    }

    /// Under the lock: a stored body keeps nothing of readers that once waited for it.
    func dismissIdleAudience() {
        if audience?.isIdle == true { audience = nil }
    }

    /// Runs `body` under the lock that guards readers, waits and blocks. It must not call a wake, charge the budget or
    /// take another lock.
    func locked<Result>(_ body: () -> Result) -> Result {
        shelves.waiting.withLock(shelves.waiting.index(for: self), body)
    }
}
