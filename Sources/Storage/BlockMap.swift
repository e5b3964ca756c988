/// Which bytes of a partial body are there, and which are being fetched: pieces in order, to the byte. What lies between
/// them is neither. Under the body's lock (`Body.locked`).
final class BlockMap {
    private struct Piece {
        var start, end: Int
        /// The bytes are there; otherwise a fill is fetching them, and stands at `start`.
        var isPublished: Bool
    }
    /// Most pieces of one body: bounds the memory and time that requests for every other byte can cost.
    static let piecesMax = 1024
    private static let piecesAtFirst = 8

    /// Disjoint; published ones are never adjacent to each other.
    private var pieces: [Piece] = []
    private var claimCount = 0
    /// Pieces that were charged to the budget.
    private var slots: Int

    /// All of `0..<length` is there.
    convenience init(published length: Int) { self.init(extents: length > 0 ? [0..<length] : []) }

    /// These ranges are there: in order, never adjacent.
    init(extents: [Range<Int>]) {
        precondition(zip(extents, extents.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }, "in order")
        slots = Self.piecesAtFirst
        while slots < extents.count + 2 { slots *= 2 }
        pieces.reserveCapacity(slots)
        pieces = extents.map { Piece(start: $0.lowerBound, end: $0.upperBound, isPublished: true) }
    }

    // MARK: Looking

    enum Spot: Equatable {
        case published(end: Int)
        case claimed
        /// Up to where the next piece begins; nil: no piece follows.
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

    /// Bytes that are there from the first on.
    var prefix: Int {
        guard let first = pieces.first, first.start == 0, first.isPublished else { return 0 }
        return first.end
    }

    /// How far the fill is that will come to the byte at `offset`; nil: no fill will.
    func fillPosition(before offset: Int) -> Int? {
        let index = index(at: offset)
        guard index < pieces.count, pieces[index].start <= offset, !pieces[index].isPublished else { return nil }
        return pieces[index].start
    }

    // MARK: Claims

    /// Whether there is room for one more claim, and for the bytes that it leaves behind.
    var hasRoom: Bool { pieces.count + claimCount + 2 <= slots }

    /// Returns nil where it must not grow further.
    var slotsAfterGrowth: Int? { slots < Self.piecesMax ? slots * 2 : nil }

    func grow(to slots: Int) {
        precondition(slots > self.slots, "a map grows")
        self.slots = slots
        pieces.reserveCapacity(slots)
    }

    /// Notes that a fill fetches the range, which is free.
    func claim(_ range: Range<Int>) {
        precondition(hasRoom && !range.isEmpty, "there was room for a claim")
        precondition(spot(at: range.lowerBound) != .claimed, "of two fills of one hole one is enough")
        let piece = Piece(start: range.lowerBound, end: range.upperBound, isPublished: false)
        pieces.insert(piece, at: index(at: range.lowerBound))
        claimCount += 1
    }

    /// The fill at `position` has written `count` bytes.
    func publish(_ count: Int, at position: Int) {
        var index = claim(at: position)
        let end = position + count
        precondition(end <= pieces[index].end, "a fill writes into its hole")
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

    /// Makes a hole of bytes that are gone. No fill is under way in that range.
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

    /// The fill at `position` fetches no further than `end`.
    func cut(at position: Int, to end: Int) {
        let index = claim(at: position)
        pieces[index].end = min(end, pieces[index].end)
        if pieces[index].end <= position { removeClaim(index) }
    }

    private func removeClaim(_ index: Int) {
        precondition(claimCount > 0, "claims are counted")
        pieces.remove(at: index)
        claimCount -= 1
    }

    private func claim(at position: Int) -> Int {
        let index = index(at: position)
        precondition(
            index < pieces.count && pieces[index].start == position && !pieces[index].isPublished,
            "a fill is where its claim begins")
        return index
    }

    /// The first piece that ends beyond the offset.
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

    /// Bytes of memory that it takes at most.
    var footprint: Int { Self.footprint(slots: slots) }

    static func footprint(slots: Int) -> Int {
        chunkBytes(64) + chunkBytes(32 + slots * MemoryLayout<Piece>.stride)
    }
}
