internal import Synchronization

/// Readers of a growing body, and what becomes of a body that can no longer be stored while it streams: it outgrows memory and
/// there is no back store for it, it outgrows what may be stored, or the back store stopped accepting its blocks.
///
/// It leaves the cache and becomes a window: pages behind the slowest attached reader are freed, and the writer pauses
/// while that reader is a window behind. The few pages that it then needs are taken even where the budget is exhausted
/// (`Shelves.overdraw`). What a large body has on the back store by then is read from there as long as somebody reads it. Its
/// readers may be on any thread; a body that is a window from the start has one, on its writer's own (Body+Passing.swift).
extension Body {
    /// Every reader of a body that still grows attaches first, so that a window knows which bytes are still wanted.
    /// Returns nil where the bytes at `offset` are freed already: the reader must fetch for itself. A partial body frees
    /// nothing, and keeps no account of its readers.
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

    /// The reader is done with everything below `offset`.
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
        if let next = continuation?.body, next.isWindowed { next.freeReadPages() }
    }

    /// Takes the response out of the cache and makes the body a window. By the writer.
    /// - Parameter window: bytes the writer may be ahead of the slowest reader.
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

    /// Somebody has attached and not left; to a window from the start, nobody has left.
    package var hasReaders: Bool { readerCount > 0 }
    package var readerCount: Int {
        if let passing = unsafe passing { return unsafe passing.pointee.reader == .gone ? 0 : 1 }
        let earlier = large?.predecessor?.readerCount ?? 0
        return earlier + locked { audience?.readerCount ?? 0 }
    }

    package var isWindowed: Bool { windowed.load(ordering: .acquiring) }

    /// Whether the slowest reader is a window behind, or the back store is. The writer then stops reading from the origin.
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

    /// Wakes the writer once when it need no longer pause; from within this call where it need not.
    package func awaitRoom(_ wake: Wake) {
        switch residence {
        case .window(let window): return unsafe awaitRoomPassing(window, wake)
        case .blocks(let large): if !windowed.load(ordering: .relaxed) { return awaitWriting(large, wake) }
        case .memory, .whole: break
        }
        let others = earlierReaders
        let due = locked {
            let audience = makeAudience()
            audience.waitForRoom(wake)
            defer { dismissIdleAudience() }
            return audience.takeRoomWake(length: published.load(ordering: .relaxed), others: others)
        }
        due?()
    }

    /// Frees the pages behind the slowest reader, and wakes the writer where there is room again.
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

    /// Where those stand who read the body that moved on to this one, and will go on here; nil: there are none.
    private var earlierReaders: Int? {
        guard let earlier = large?.predecessor, earlier.hasReaders else { return nil }
        return earlier.length
    }

    /// Under the lock: the back store's writer reads this page.
    private func isBeingWritten(_ place: BodyLayout.Page) -> Bool {
        large?.queued.contains(place.start / Body.blockBytes) ?? false
    }

    /// Under the lock: end of the bytes from the first on that have left memory for the back store.
    private var endOnBackStore: Int {
        guard large != nil else { return 0 }
        let length = published.load(ordering: .relaxed)
        var end = 0
        while end < length, case let place = layout.page(at: end), unsafe page(place.index) == nil { end = place.end }
        return min(end, length)
    }
}
