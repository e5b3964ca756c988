/// Which bytes of a partial body are present and which are being fetched: pieces in increasing order, exact to the byte. Bytes
/// between two pieces are neither. Protected by the lock of the body (`Body.locked`).
final class BlockMap {
    private struct Piece {
        var start, end: Int
        /// The bytes are present. If false, a fill is fetching them, and its position is `start`.
        var isPublished: Bool
    }
    /// The most pieces of one body. It bounds the memory and time that requests for every other byte can cost.
    static let piecesMax = 1024
    private static let piecesAtFirst = 8

    /// In increasing order and disjoint. Two published pieces never touch.
    private var pieces: [Piece] = []
    private var claimCount = 0
    /// How many pieces are charged to the budget.
    private var slots: Int

    /// Makes a map in which `0..<length` is present.
    convenience init(published length: Int) { self.init(extents: length > 0 ? [0..<length] : []) }

    /// Makes a map in which these ranges are present. They are in increasing order and never touch.
    init(extents: [Range<Int>]) {
        precondition(
            zip(extents, extents.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound },
            "ranges are in order and never touch")
        slots = Self.piecesAtFirst
        while slots < extents.count + 2 { slots *= 2 }
        pieces.reserveCapacity(slots)
        pieces = extents.map { Piece(start: $0.lowerBound, end: $0.upperBound, isPublished: true) }
    }

    // MARK: Looking

    enum Spot: Equatable {
        case published(end: Int)
        case claimed
        /// Neither present nor being fetched, up to `end`, where the next piece begins. Nil if no piece follows.
        case free(end: Int?)
    }

    func spot(at offset: Int) -> Spot {
        let index = index(at: offset)
        guard index < pieces.count else { return .free(end: nil) }
        let piece = pieces[index]
        if offset < piece.start { return .free(end: piece.start) }
        return piece.isPublished ? .published(end: piece.end) : .claimed
    }

    var extents: [Range<Int>] { pieces.filter(\.isPublished).map { $0.start..<$0.end } }

    /// How many bytes are present at the beginning of the body.
    var prefix: Int {
        guard let first = pieces.first, first.start == 0, first.isPublished else { return 0 }
        return first.end
    }

    /// The position of the fill that will write the byte at `offset`. Nil if there is none.
    func fillPosition(before offset: Int) -> Int? {
        let index = index(at: offset)
        guard index < pieces.count, pieces[index].start <= offset, !pieces[index].isPublished else { return nil }
        return pieces[index].start
    }

    // MARK: Claims

    /// Whether there is space for one more claim, and for the piece of bytes that its fill publishes.
    var hasRoom: Bool { pieces.count + claimCount + 2 <= slots }

    /// Returns nil if the map must not grow further.
    var slotsAfterGrowth: Int? { slots < Self.piecesMax ? slots * 2 : nil }

    func grow(to slots: Int) {
        precondition(slots > self.slots, "a map grows")
        self.slots = slots
        pieces.reserveCapacity(slots)
    }

    /// Notes that a fill fetches the range. The range must be free.
    func claim(_ range: Range<Int>) {
        precondition(hasRoom && !range.isEmpty, "the caller made space for the claim")
        precondition(spot(at: range.lowerBound) != .claimed, "a hole has one fill")
        let piece = Piece(start: range.lowerBound, end: range.upperBound, isPublished: false)
        pieces.insert(piece, at: index(at: range.lowerBound))
        claimCount += 1
    }

    /// The fill at `position` has written `count` bytes.
    func publish(_ count: Int, at position: Int) {
        var index = claim(at: position)
        let end = position + count
        precondition(end <= pieces[index].end, "a fill writes into its hole only")
        pieces[index].start = end
        if index > 0, pieces[index - 1].isPublished, pieces[index - 1].end == position {
            pieces[index - 1].end = end
        } else {
            pieces.insert(Piece(start: position, end: end, isPublished: true), at: index)
            index += 1
        }
        guard pieces[index].start == pieces[index].end else { return }
        removeClaim(index)
        if index < pieces.count, pieces[index].isPublished, pieces[index].start == end {
            pieces[index - 1].end = pieces[index].end
            pieces.remove(at: index)
        }
    }

    /// Makes a hole of bytes that no longer exist. No fill may be under way in that range.
    func unpublish(_ range: Range<Int>) {
        var kept: [Piece] = []
        for piece in pieces {
            guard piece.isPublished, piece.start < range.upperBound, piece.end > range.lowerBound else {
                kept.append(piece)
                continue
            }
            if piece.start < range.lowerBound {
                kept.append(Piece(start: piece.start, end: range.lowerBound, isPublished: true))
            }
            if piece.end > range.upperBound {
                kept.append(Piece(start: range.upperBound, end: piece.end, isPublished: true))
            }
        }
        pieces = kept
        slots = max(slots, pieces.count + claimCount + 2)
    }

    /// Ends the claim of the fill at `position` at `end`.
    func cut(at position: Int, to end: Int) {
        let index = claim(at: position)
        pieces[index].end = min(end, pieces[index].end)
        if pieces[index].end <= position { removeClaim(index) }
    }

    private func removeClaim(_ index: Int) {
        precondition(claimCount > 0, "a claim that is removed was counted")
        pieces.remove(at: index)
        claimCount -= 1
    }

    private func claim(at position: Int) -> Int {
        let index = index(at: position)
        precondition(
            index < pieces.count && pieces[index].start == position && !pieces[index].isPublished,
            "the position of a fill is where its claim begins")
        return index
    }

    /// The index of the first piece that ends beyond the offset.
    private func index(at offset: Int) -> Int {
        var low = 0
        var high = pieces.count
        while low < high {
            let middle = (low + high) / 2
            if pieces[middle].end > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }

    // MARK: Memory

    /// The most bytes of memory that the map takes.
    var footprint: Int { Self.footprint(slots: slots) }

    static func footprint(slots: Int) -> Int {
        chunkBytes(64) + chunkBytes(32 + slots * MemoryLayout<Piece>.stride)
    }
}
