internal import Synchronization

/// The readers of a growing body, and windows. A growing body becomes a window if it can no longer be stored: it outgrows memory and
/// no back store accepts it, it becomes longer than a stored body may be, or the back store stops accepting its blocks.
///
/// Its response leaves the cache, and it becomes a window: pages behind the slowest attached reader are freed, and the writer pauses
/// while that reader is a window behind. The few pages that it then needs are taken even where the budget is exhausted
/// (`Shelves.overdraw`). Blocks of a large body that are on the back store by then are read from there. The
/// readers of a window may be on any thread; a body that is a window from the start has one, on its writer's own (Body+Passing.swift).
extension Body {
    /// Registers a reader. Every reader of a growing body attaches first, so that a window knows which bytes are still needed. Returns
    /// nil if the bytes at `offset` have been freed: the reader must fetch for itself. A partial body frees nothing and does not
    /// count its readers.
    package func attach(at offset: Int) -> ReaderID? {
        precondition(offset >= 0, "a reader begins at a byte of the body")
        if let passing = unsafe passing { return unsafe attachToPassing(passing, at: offset) }
        if state == .partial { return ReaderID(id: shelves.nextID()) }
        return locked {
            let audience = makeAudience()
            guard offset >= audience.freedEnd else { return nil }
            let reader = ReaderID(id: shelves.nextID())
            audience.addReader(reader, at: offset)
            return reader
        }
    }

    /// Says that the reader no longer needs the bytes below `offset`.
    package func advance(_ reader: ReaderID, to offset: Int) {
        if let passing = unsafe passing { return unsafe advancePassing(passing, to: offset) }
        locked { audience?.moveReader(reader, to: offset) }
        if windowed.load(ordering: .relaxed) { freeReadPages() }
    }

    package func detach(_ reader: ReaderID) {
        if let passing = unsafe passing { return unsafe detachFromPassing(passing) }
        locked {
            audience?.removeReader(reader)
            dismissIdleAudience()
        }
        if windowed.load(ordering: .relaxed) { freeReadPages() }
        // The body that goes on with these bytes may wait for those who still read them here.
        if state == .moved, let next = continuation?.body, next.isWindowed { next.freeReadPages() }
    }

    /// Removes the response from the cache and makes the body a window. The writer calls this.
    /// - Parameter window: how many bytes the writer may be ahead of the slowest reader.
    package func abandonStorage(window: Int) {
        precondition(window > 0 && state == .growing && !isWindowed, "a body that grows becomes a window once")
        if let home { shelves.removeRecord(carrying: self, home) }
        home = nil
        large?.blocks.abandon()
        locked {
            let audience = makeAudience()
            audience.window = window
            audience.elsewhereEnd = endOnBackStore
        }
        windowed.store(true, ordering: .releasing)
        freeReadPages()
    }

    /// Whether a reader is attached. A body that is a window from the start counts as read until its reader has left.
    package var hasReaders: Bool { readerCount > 0 }
    package var readerCount: Int {
        if let passing = unsafe passing { return unsafe passing.pointee.reader == .gone ? 0 : 1 }
        let earlier = large?.predecessor?.readerCount ?? 0
        return earlier + locked { audience?.readerCount ?? 0 }
    }

    package var isWindowed: Bool { windowed.load(ordering: .acquiring) }

    /// Whether the slowest reader or the back store is too far behind. The writer then stops reading from the origin.
    package var writerShouldPause: Bool {
        switch residence {
        case .window(let window): return unsafe !window.pointee.hasRoom
        case .blocks(let large): if !windowed.load(ordering: .relaxed) { return large.isBehind }
        case .memory, .whole: break
        }
        guard windowed.load(ordering: .relaxed) else { return false }
        let others = earlierReaders
        return locked { audience?.hasRoom(length: published.load(ordering: .relaxed), others: others) == false }
    }

    /// Wakes the writer once when it no longer has to pause. If it does not have to now, the wake comes from within this call.
    package func awaitRoom(_ wake: Wake) {
        switch residence {
        case .window(let window): return unsafe awaitRoomPassing(window, wake)
        case .blocks(let large): if !windowed.load(ordering: .relaxed) { return awaitWriting(large, wake) }
        case .memory, .whole: break
        }
        // Registered before the earlier readers are looked at: one that leaves meanwhile takes the wake.
        locked { makeAudience().waitForRoom(wake) }
        let others = earlierReaders
        let due = locked {
            defer { dismissIdleAudience() }
            return audience?.takeRoomWake(length: published.load(ordering: .relaxed), others: others)
        }
        due?()
    }

    /// Frees the pages behind the slowest reader, and wakes the writer if there is room again.
    func freeReadPages() {
        let others = earlierReaders
        var freed: [UnsafeMutableRawPointer] = unsafe []
        let due: Wake? = locked {
            guard let audience, audience.window != nil else { return nil }
            let length = published.load(ordering: .relaxed)
            let end = min(audience.slowest ?? length, others ?? length, length)
            precondition(audience.freedEnd <= length, "only what is published is freed")
            var start = max(audience.freedEnd, audience.elsewhereEnd)
            // Stops at `end`: the layout names pages behind the last byte as well, without end.
            while start < end, case let place = layout.page(at: start), place.end <= end, !isBeingWritten(place) {
                if let page = unsafe takePage(place.index) { unsafe freed.append(page) }
                start = place.end
                audience.freedEnd = start
            }
            return audience.takeRoomWake(length: length, others: others)
        }
        unsafe freePages(freed)
        due?()
    }

    /// The offset at which readers of the body that moved to this one will continue here. Nil if it has no readers.
    private var earlierReaders: Int? {
        guard let earlier = large?.predecessor, earlier.hasReaders else { return nil }
        return earlier.length
    }

    /// Whether the writer of the back store may be reading the page. Called under the lock.
    private func isBeingWritten(_ place: BodyLayout.Page) -> Bool {
        large?.queued.contains(place.start / Body.blockBytes) ?? false
    }

    /// The end of the bytes, counted from the first, that are on the back store and not in memory. Called under the lock.
    private var endOnBackStore: Int {
        guard large != nil else { return 0 }
        let length = published.load(ordering: .relaxed)
        var end = 0
        while end < length, case let place = layout.page(at: end), unsafe page(place.index) == nil { end = place.end }
        return min(end, length)
    }
}
