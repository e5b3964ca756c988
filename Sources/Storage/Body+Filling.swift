internal import Synchronization

/// Partial bodies: of known length, with some ranges of bytes there and others not (RFC 9110 §14, RFC 9111 §3.3).
///
///     makeSparseBody ──▶ partial ──the last hole is filled──▶ complete        growing ──makePartial──▶ partial
///
/// Who needs a byte that is not there claims the hole around it and fills it; those who need it as well wait.
extension Body {
    /// What stands at an offset of a body, for somebody who needs the byte there.
    package enum Gap {
        /// Published, up to this offset.
        case available(end: Int)
        /// Somebody fetches it: `await(beyond:)` the offset, then look again.
        case awaited
        /// Nobody has it: the caller fetches it now.
        case missing(Fill)
        /// Nobody has it, and it can not be kept here: the offset is beyond the end, the body failed, or it is in more
        /// pieces than are counted (`BlockMap.piecesMax`). Fetch it without storing it.
        case unavailable
    }

    /// Looks at `offset`, and where nothing is and nobody fetches, claims the hole: from `offset` up to the next bytes
    /// that are there or fetched by others, or to `limit`.
    package func claim(at offset: Int, limit: Int) -> Gap {
        precondition(offset >= 0 && offset < limit, "a claim has a first byte")
        while true {
            switch locked({ look(at: offset, limit: min(limit, expectedLength ?? .max)) }) {
            case .decided(let gap): return gap
            case .claimed(let range): return .missing(Fill(range, of: self))
            case .crowded(let slots): if !growBlocks(to: slots) { return .unavailable }
            }
        }
    }

    private enum Look {
        case decided(Gap)
        case claimed(Range<Int>)
        /// The map has to grow first, to this many pieces; not under the lock, for that takes from the budget.
        case crowded(Int)
    }

    private func look(at offset: Int, limit: Int) -> Look {
        let end = published.load(ordering: .relaxed)
        if offset < end { return .decided(.available(end: end)) }
        guard offset < limit else { return .decided(.unavailable) }
        guard let blocks else { return .decided(state == .growing ? .awaited : .unavailable) }
        switch blocks.spot(at: offset) {
        case .published(let end): return .decided(.available(end: end))
        case .claimed: return .decided(.awaited)
        case .free(let end):
            guard blocks.hasRoom else { return blocks.slotsAfterGrowth.map(Look.crowded) ?? .decided(.unavailable) }
            let hole = offset..<min(limit, end ?? limit)
            blocks.claim(hole)
            return .claimed(hole)
        }
    }

    /// End of the bytes that are there without a hole from `offset` on; `offset` where none is.
    package func available(from offset: Int) -> Int {
        let end = length
        if offset < end { return end }
        guard state == .partial else { return max(offset, length) }
        return locked {
            if case .published(let end)? = blocks?.spot(at: offset) { return end }
            return max(offset, published.load(ordering: .relaxed))
        }
    }

    /// The bytes that are there, in order; never adjacent to each other.
    package var extents: [Range<Int>] {
        locked {
            if let blocks { return blocks.extents }
            let end = published.load(ordering: .relaxed)
            return end > 0 ? [0..<end] : []
        }
    }

    /// The transfer of a growing body broke off: what is there stays, the rest is a hole. By the writer. False: not
    /// possible, for its length is not known, it is in window mode, has ended, or the budget has no room; it is as it was.
    package func makePartial() -> Bool {
        guard state == .growing, let expectedLength, !windowed.load(ordering: .relaxed) else { return false }
        let start = published.load(ordering: .relaxed)
        if start == expectedLength { return finish() }
        guard beginPartial() else { return false }
        wakeReaders()
        reweigh()
        return true
    }

    /// From growing to partial, with what is published. False: the budget has no room.
    func beginPartial() -> Bool {
        let made = BlockMap(published: published.load(ordering: .relaxed))
        let bytes = made.footprint
        guard shelves.charge(bytes) else { return false }
        held.add(bytes, ordering: .relaxed)
        locked {
            blocks = made
            phase.store(State.partial.rawValue, ordering: .sequentiallyConsistent)
        }
        return true
    }

    /// False: the budget has no room.
    private func growBlocks(to slots: Int) -> Bool {
        let bytes = BlockMap.footprint(slots: slots) - BlockMap.footprint(slots: slots / 2)
        guard shelves.charge(bytes) else { return false }
        // Somebody else may have let it grow meanwhile.
        let hasGrown = locked {
            guard let blocks, blocks.slotsAfterGrowth == slots else { return false }
            blocks.grow(to: slots)
            return true
        }
        if hasGrown { held.add(bytes, ordering: .relaxed) } else { shelves.release(bytes) }
        return true
    }
}

// MARK: What fills do

extension Body {
    /// The fill at `position` has written `count` bytes.
    func publish(_ count: Int, at position: Int) {
        var whole: BlockMap?
        let due = locked {
            guard let blocks else { preconditionFailure("a body with a claim is partial") }
            blocks.publish(count, at: position)
            published.store(blocks.prefix, ordering: .sequentiallyConsistent)
            if blocks.prefix == expectedLength {
                whole = blocks
                self.blocks = nil
                phase.store(State.complete.rawValue, ordering: .sequentiallyConsistent)
            }
            return takeDue()
        }
        for wake in due { wake() }
        if large != nil { writeBlocks(position..<position + count) }
        // Its record is counted anew when the fill ends.
        guard let whole else { return }
        held.subtract(whole.footprint, ordering: .relaxed)
        shelves.release(whole.footprint)
    }

    /// The fill at `position` fetches no further than `end`.
    func cutClaim(at position: Int, to end: Int) {
        let due = locked {
            blocks?.cut(at: position, to: end)
            return takeDue()
        }
        for wake in due { wake() }
    }

    /// Whether these ranges can very likely be filled: they count with all their pages, although some may be there, and no body
    /// takes the last quarter of the budget, of which others want some as well.
    package func hasRoom(for ranges: [Range<Int>]) -> Bool {
        // Its pages leave when they are written.
        if large != nil { return true }
        var bytes = held.load(ordering: .relaxed)
        for range in ranges where !range.isEmpty {
            bytes += layout.page(at: range.upperBound - 1).end - layout.page(at: range.lowerBound).start
        }
        if let expectedLength, expectedLength > lengthMax, bytes > lengthMax { return false }
        return bytes <= shelves.limit.load(ordering: .relaxed) / 4 * 3
    }

    /// Whether a sparse body may take this page: one longer than the largest object holds no more than that of it.
    func mayHold(_ page: BodyLayout.Page) -> Bool {
        guard let expectedLength, expectedLength > lengthMax else { return true }
        return held.load(ordering: .relaxed) + page.capacity <= lengthMax
    }
}
