internal import Synchronization

/// Partial bodies: bodies of known length with holes in them (RFC 9110 §14, RFC 9111 §3.3).
///
///     makeSparseBody ──▶ partial ──the last hole is filled──▶ complete        growing ──makePartial──▶ partial
///                           └──what had to be whole was not (`Fill.isIndivisible`)──▶ failed
///
/// Whoever needs a byte that is not there claims the hole around it and fills it. Others who need it wait.
extension Body {
    /// What is at an offset of a body, for a reader that needs the byte there.
    package enum Gap {
        /// Published, up to this offset.
        case available(end: Int)
        /// A fill is under way to it: `await(beyond:)` the offset, then look again.
        case awaited
        /// It is missing: the caller has claimed it and fetches it now.
        case missing(Fill)
        /// It is missing and cannot be kept here: the offset is beyond the end, the body failed, or the body is in as many
        /// pieces as are counted (`BlockMap.piecesMax`). Fetch it without storing it.
        case unavailable
    }

    /// Looks at `offset`. Where the byte is missing and no fill is under way to it, claims the hole from `offset` up to
    /// the next bytes that are there or claimed, or to `limit`.
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
        /// The map has to grow to this many pieces first; after the lock is released, because that charges the budget.
        case crowded(Int)
    }

    private func look(at offset: Int, limit: Int) -> Look {
        let end = published.load(ordering: .relaxed)
        if offset < end { return .decided(.available(end: end)) }
        guard offset < limit, state != .failed else { return .decided(.unavailable) }
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

    /// End of the bytes that are there without a hole from `offset` on; `offset` itself where it is in a hole.
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

    /// Keeps what is there of a growing body whose transfer broke off, and makes a hole of the rest. By the writer. False:
    /// nothing changed, because its length is not known, it is a window, it has ended, or the budget has no room.
    package func makePartial() -> Bool {
        guard state == .growing, let expectedLength, !windowed.load(ordering: .relaxed) else { return false }
        let start = published.load(ordering: .relaxed)
        if start == expectedLength { return finish() }
        guard beginPartial() else { return false }
        wakeReaders()
        reweigh()
        return true
    }

    /// Makes a growing body partial, with what is published. False: the budget has no room.
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
        // Another thread may have grown it meanwhile.
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
            let prefix = blocks.prefix
            precondition(prefix <= expectedLength ?? 0, "a fill writes within the body")
            published.store(prefix, ordering: .sequentiallyConsistent)
            if prefix == expectedLength {
                whole = blocks
                self.blocks = nil
                phase.store(State.complete.rawValue, ordering: .sequentiallyConsistent)
            }
            return takeDue()
        }
        for wake in due { wake() }
        if large != nil { writeBlocks(position..<position + count) }
        // Its response is weighed again when the fill ends.
        guard let whole else { return }
        held.subtract(whole.footprint, ordering: .relaxed)
        shelves.release(whole.footprint)
    }

    /// The bytes that the fill at `position` lacks must not come from elsewhere: nobody gets the whole.
    func failPartial(at position: Int) {
        let due = locked {
            blocks?.cut(at: position, to: position)
            phase.store(State.failed.rawValue, ordering: .sequentiallyConsistent)
            return takeDue()
        }
        for wake in due { wake() }
    }

    /// The fill at `position` fetches no further than `end`: the rest of its hole is free again.
    func cutClaim(at position: Int, to end: Int) {
        let due = locked {
            blocks?.cut(at: position, to: end)
            return takeDue()
        }
        for wake in due { wake() }
    }

    /// Whether these ranges can very likely be filled. They count with all their pages, although some may be there, and no
    /// body takes the last quarter of the budget, which others need as well.
    package func hasRoom(for ranges: [Range<Int>]) -> Bool {
        // Pages of a large body leave when they are written.
        if large != nil { return true }
        var bytes = held.load(ordering: .relaxed)
        for range in ranges where !range.isEmpty {
            bytes += layout.page(at: range.upperBound - 1).end - layout.page(at: range.lowerBound).start
        }
        if let expectedLength, expectedLength > lengthMax, bytes > lengthMax { return false }
        return bytes <= shelves.limit.load(ordering: .relaxed) / 4 * 3
    }

    /// Whether a body may take this page: one longer than the longest body stored holds no more than that length.
    func mayHold(_ page: BodyLayout.Page) -> Bool {
        guard let expectedLength, expectedLength > lengthMax else { return true }
        return held.load(ordering: .relaxed) + page.capacity <= lengthMax
    }
}
