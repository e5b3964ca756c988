/// The right to fill one hole of a partial body (`Body.claim`). It is the only writer of the bytes from `position` to the end of
/// `range`. One thread at a time uses it; other fills may write to other holes of the same body at the same moment.
///
/// Bytes that it has written can be read at once. When it ends, for whatever reason, the rest of the hole is free again: the readers
/// that wait for it are woken, and the first of them claims the rest.
@safe package final class Fill: @unchecked Sendable {
    package let body: Body
    /// The hole, as offsets in the body. `shrink` makes it end earlier.
    package private(set) var range: Range<Int>
    /// The offset of the next byte to be written.
    package private(set) var position: Int
    /// The offset up to which pages are allocated.
    private var capacity: Int
    /// Bytes of pages that were taken beyond the budget.
    private var overdrawn = 0
    private var hasEnded = false
    /// The bytes are right together or not at all, because a digest says so. If the fill ends early, the body fails: what is missing must not be
    /// fetched by itself.
    package var isIndivisible = false
    /// Blocks that end at or before this offset were discarded.
    private var discardedEnd: Int

    /// How many bytes of pages one fill may take if the budget has no space even after evicting. Without them, the answer to a short
    /// range would break off because of what others use.
    private static let overdraftMax = 1 << 20

    init(_ range: Range<Int>, of body: Body) {
        precondition(!range.isEmpty && range.lowerBound >= 0, "a hole has bytes")
        self.body = body
        self.range = range
        position = range.lowerBound
        capacity = range.lowerBound
        discardedEnd = range.lowerBound
    }

    deinit { abandon() }

    /// Appends all of the bytes or none. Returns `.tooLarge` if they would exceed the hole. Returns `.full` if the budget has no space, or
    /// the body has as many bytes as the longest body that is stored: abandon the fill, and continue without storing.
    package func append(_ bytes: UnsafeRawBufferPointer) -> Body.AppendResult {
        precondition(!hasEnded, "a fill is not used after its end")
        guard bytes.count <= range.upperBound - position else { return .tooLarge }
        guard reserve(upTo: position + bytes.count) else { return .full }
        unsafe body.copy(bytes, to: position)
        publish(bytes.count)
        return .appended
    }

    /// Returns memory to read(2) into: at most `hint` bytes, and often fewer, because it ends with a page. Call `commit` afterwards.
    /// Returns nil if `append` would return `.full`, or if the hole is filled.
    package func writable(_ hint: Int) -> UnsafeMutableRawBufferPointer? {
        precondition(!hasEnded, "a fill is not used after its end")
        let wanted = min(hint, range.upperBound - position)
        guard wanted > 0, reserve(upTo: position + 1) else { return nil }
        return unsafe body.gap(from: position, limit: wanted)
    }

    /// Publishes `count` bytes that were written into the memory that `writable` returned.
    package func commit(_ count: Int) {
        precondition(!hasEnded, "a fill is not used after its end")
        precondition(
            count >= 0 && position + count <= min(capacity, range.upperBound),
            "the bytes fit into the memory that was returned")
        publish(count)
    }

    /// Ends the hole at `end`, because the origin sends less than was claimed. The rest is free again. Does nothing if the hole ends
    /// there or earlier.
    package func shrink(to end: Int) {
        guard !hasEnded, end < range.upperBound else { return }
        let end = max(end, position)
        if position < range.upperBound { body.cutClaim(at: position, to: end) }
        range = range.lowerBound..<end
    }

    /// Frees the pages before `end`, which the reader of this fill has taken: for a body that the back store no longer
    /// takes (`Body.isLeftByDisk`) and memory has no room for. Whoever else wants those bytes fetches them again.
    package func discard(before end: Int) {
        let end = min(end, position)
        guard end > discardedEnd else { return }
        overdrawn = max(0, overdrawn - body.discardBlocks(in: discardedEnd..<end))
        discardedEnd = end / Body.blockBytes * Body.blockBytes
    }

    /// Ends the fill, because no more bytes follow. Returns false if the hole is not filled; the rest of it is free again.
    package func finish() -> Bool {
        abandon()
        return position == range.upperBound
    }

    /// Ends the fill. Written bytes stay, and the rest of the hole is free again. Does nothing if the fill has ended.
    package func abandon() {
        guard !hasEnded else { return }
        hasEnded = true
        if position < range.upperBound {
            isIndivisible ? body.failPartial(at: position) : body.cutClaim(at: position, to: position)
        }
        body.reweigh()
    }

    private func publish(_ count: Int) {
        guard count > 0 else { return }
        precondition(position + count <= range.upperBound, "a fill writes into its hole only")
        position += count
        body.publish(count, at: position - count)
    }

    private func reserve(upTo end: Int) -> Bool {
        while capacity < end {
            let page = body.layout.page(at: capacity)
            guard body.mayHold(page) else { return false }
            if !body.addPage(page, overdraft: false) {
                guard body.isLeavingMemory || overdrawn + page.capacity <= Self.overdraftMax,
                    body.addPage(page, overdraft: true)
                else { return false }
                if !body.isLeavingMemory { overdrawn += page.capacity }
            }
            capacity = page.end
        }
        return true
    }
}
