internal import Synchronization

/// Readers of a growing body, and what becomes of a body that outgrows memory while it streams.
///
/// It leaves the cache and becomes a window: pages behind the slowest attached reader are freed, and the writer pauses
/// while that reader is a window behind. The few pages that it then needs are taken even where the budget is exhausted
/// (`Shelves.overdraw`). Its readers may be on any thread; a body that is a window from the start has one, on its writer's
/// own (Body+Passing.swift).
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
    }

    /// Takes the response out of the cache and makes the body a window. By the writer.
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

    /// Whether the slowest reader is a window behind, or the back store is. The writer then stops reading from the origin.
    package var writerShouldPause: Bool {
        switch residence {
        case .window(let window): return unsafe !window.pointee.hasRoom
        case .blocks(let large): return large.isBehind
        case .memory, .whole: break
        }
        guard windowed.load(ordering: .relaxed) else { return false }
        return locked { audience?.hasRoom(length: published.load(ordering: .relaxed)) == false }
    }

    /// Wakes the writer once when it need no longer pause; from within this call where it need not.
    package func awaitRoom(_ wake: Wake) {
        switch residence {
        case .window(let window): return unsafe awaitRoomPassing(window, wake)
        case .blocks(let large): return awaitWriting(large, wake)
        case .memory, .whole: break
        }
        let due = locked {
            let audience = makeAudience()
            audience.waitForRoom(wake)
            defer { dismissIdleAudience() }
            return audience.takeRoomWake(length: published.load(ordering: .relaxed))
        }
        due?()
    }

    /// Frees the pages behind the slowest reader, and wakes the writer where there is room again.
    func freeReadPages() {
        var freed: [Int] = []
        let due: Wake? = locked {
            guard let audience, audience.window != nil else { return nil }
            let length = published.load(ordering: .relaxed)
            let end = min(audience.slowest ?? length, length)
            precondition(audience.freedEnd <= length, "only what is published is freed")
            // Stops at `end`: the layout names pages behind the last byte as well, without end.
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
