internal import Synchronization

/// Readers of a growing body, and window mode: what becomes of a body that outgrows the budget while it streams.
///
/// It leaves the cache, pages behind the slowest attached reader are freed, and the writer pauses while that reader is
/// a window behind. The few pages it then needs are taken even where the budget is exhausted (`Shelves.overdraw`).
extension Body {
    /// Every reader of a body that still grows attaches first, so that window mode knows what is still wanted.
    /// nil: the bytes at `offset` are gone already; the reader must fetch for itself. A partial body frees nothing, and
    /// takes no note of who reads it.
    package func attach(at offset: Int) -> ReaderID? {
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
    }

    /// Begins window mode; by the writer. The record leaves the cache.
    /// - Parameter window: bytes the writer may be ahead of the slowest reader.
    package func abandonStorage(window: Int) {
        precondition(window > 0 && state == .growing && !isWindowed, "a body that grows becomes a window once")
        if let home { shelves.removeRecord(carrying: self, home) }
        home = nil
        locked { makeAudience().window = window }
        windowed.store(true, ordering: .releasing)
        freeReadPages()
    }

    /// Somebody has attached and not left; to a window from the start, nobody has left.
    package var hasReaders: Bool { readerCount > 0 }
    package var readerCount: Int {
        if let passing = unsafe passing { return unsafe passing.pointee.reader == .gone ? 0 : 1 }
        return locked { audience?.readerCount ?? 0 }
    }

    package var isWindowed: Bool { windowed.load(ordering: .acquiring) }

    /// Whether the slowest reader is a window behind, or the disk; the writer then stops reading from the origin.
    package var writerShouldPause: Bool {
        if let large { return large.isBehind }
        if let passing = unsafe passing { return unsafe !passing.pointee.hasRoom }
        guard windowed.load(ordering: .relaxed) else { return false }
        return locked { audience?.hasRoom(length: published.load(ordering: .relaxed)) == false }
    }

    /// Wakes the writer once, when it need no longer pause; at once, from within this call, where that is so already.
    package func awaitRoom(_ wake: Wake) {
        if let large { return awaitWriting(large, wake) }
        if let passing = unsafe passing { return unsafe awaitRoomPassing(passing, wake) }
        let due = locked {
            let audience = makeAudience()
            audience.waitForRoom(wake)
            defer { dismissIdleAudience() }
            return audience.takeRoomWake(length: published.load(ordering: .relaxed))
        }
        due?()
    }

    /// Frees the pages behind the slowest reader and lets the writer go on where there is room.
    func freeReadPages() {
        var freed: [Int] = []
        let due: Wake? = locked {
            guard let audience, audience.window != nil else { return nil }
            let length = published.load(ordering: .relaxed)
            let end = min(audience.slowest ?? length, length)
            // Behind the last byte there is no page, and asking for it would give one without end.
            while audience.freedEnd < end, case let place = layout.page(at: audience.freedEnd), place.end <= end {
                freed.append(place.index)
                audience.freedEnd = place.end
            }
            return audience.takeRoomWake(length: length)
        }
        for index in freed { freePage(index) }
        due?()
    }
}
