/// Fetches one hole of a partial body (`Body.claim`): the one writer of the bytes from `position` to the end of `range`.
/// One thread at a time; other fills may write elsewhere in the same body at the same moment.
///
/// What it has written can be read at once. What it has not written is free again when it ends, in whatever way: readers
/// that wait for it look again, and the first of them claims what is left.
@safe package final class Fill: @unchecked Sendable {
    package let body: Body
    /// The hole, as offsets in the body. It ends earlier after `shrink`.
    package private(set) var range: Range<Int>
    /// Offset of the next byte to be written.
    package private(set) var position: Int
    /// Offset up to which there are pages.
    private var capacity: Int
    /// Bytes of pages taken beyond the budget.
    private var overdrawn = 0
    private var hasEnded = false
    /// Blocks that end before this were discarded.
    private var discardedEnd: Int

    /// Bytes of pages one fill may take where the budget has no room even after evicting, so that the answer to a short
    /// range is not broken off by what others hold.
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

    /// Appends all of the bytes or none. `.tooLarge`: they would go beyond the hole. `.full`: the budget has no room, or
    /// the body holds as much as the longest body stored: abandon, and fetch on without storing.
    package func append(_ bytes: UnsafeRawBufferPointer) -> Body.AppendResult {
        precondition(!hasEnded, "a fill that ended does not go on")
        guard bytes.count <= range.upperBound - position else { return .tooLarge }
        guard reserve(upTo: position + bytes.count) else { return .full }
        unsafe body.copy(bytes, to: position)
        publish(bytes.count)
        return .appended
    }

    /// Room to read(2) into, at most `hint` bytes, often less: up to the end of a page. Follow with `commit`. Returns nil
    /// as `append` returns `.full`, and where the hole is filled.
    package func writable(_ hint: Int) -> UnsafeMutableRawBufferPointer? {
        precondition(!hasEnded, "a fill that ended does not go on")
        let wanted = min(hint, range.upperBound - position)
        guard wanted > 0, reserve(upTo: position + 1) else { return nil }
        return unsafe body.gap(from: position, limit: wanted)
    }

    /// Publishes `count` bytes written into what `writable` gave.
    package func commit(_ count: Int) {
        precondition(!hasEnded, "a fill that ended does not go on")
        precondition(count >= 0 && position + count <= min(capacity, range.upperBound), "more than there was room for")
        publish(count)
    }

    /// Ends the hole at `end`, because the origin gives less than was claimed: the rest is free. No effect where it ends
    /// there already, or before.
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

    /// No more bytes follow. False: fewer came than the hole has; the rest of it is free again.
    package func finish() -> Bool {
        abandon()
        return position == range.upperBound
    }

    /// Ends it: what was written stays, the rest of the hole is free. No effect on a fill that has ended.
    package func abandon() {
        guard !hasEnded else { return }
        hasEnded = true
        if position < range.upperBound { body.cutClaim(at: position, to: position) }
        body.reweigh()
    }

    private func publish(_ count: Int) {
        guard count > 0 else { return }
        precondition(position + count <= range.upperBound, "a fill writes into its hole")
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
