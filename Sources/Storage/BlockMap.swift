/// Which bytes of a partial body are there, and which are being fetched: pieces in order, to the byte. What lies between
/// them is neither. Guarded by the body's lock among `Shelves.waiting`.
final class BlockMap {
    private struct Piece {
        var start, end: Int
        /// The bytes are there; otherwise a fill is fetching them, and stands at `start`.
        var isPublished: Bool
    }
    /// Most pieces of one body: bounds the memory and the time somebody can make it cost by asking for every other byte.
    static let piecesMax = 1024
    private static let piecesAtFirst = 8

    /// Disjoint; published ones are never adjacent to each other.
    private var pieces: [Piece] = []
    private var claimCount = 0
    /// Pieces there is room for.
    private var slots: Int

    /// All of `0..<length` is there.
    convenience init(published length: Int) { self.init(extents: length > 0 ? [0..<length] : []) }

    /// These ranges are there: in order, never adjacent.
    init(extents: [Range<Int>]) {
        slots = Self.piecesAtFirst
        while slots < extents.count + 2 { slots *= 2 }
        pieces.reserveCapacity(slots)
        pieces = extents.map { Piece(start: $0.lowerBound, end: $0.upperBound, isPublished: true) }
    }

    // MARK: Looking

    enum Spot: Equatable {
        case published(end: Int)
        case claimed
        /// Up to where the next piece begins; nil: there is none.
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

    /// Where the fill stands that will come to the byte at `offset`; nil: none will.
    func fillPosition(before offset: Int) -> Int? {
        let index = index(at: offset)
        guard index < pieces.count, pieces[index].start <= offset, !pieces[index].isPublished else { return nil }
        return pieces[index].start
    }

    // MARK: Claims

    /// Room for one claim more, and for the bytes it leaves behind.
    var hasRoom: Bool { pieces.count + claimCount + 2 <= slots }

    /// nil: it may not grow further.
    var slotsAfterGrowth: Int? { slots < Self.piecesMax ? slots * 2 : nil }

    func grow(to slots: Int) {
        self.slots = slots
        pieces.reserveCapacity(slots)
    }

    /// The range is free, and there is room.
    func claim(_ range: Range<Int>) {
        precondition(hasRoom && !range.isEmpty)
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

    /// These bytes turned out not to be there any more. Nobody is fetching in that range.
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
        pieces.remove(at: index)
        claimCount -= 1
    }

    private func claim(at position: Int) -> Int {
        let index = index(at: position)
        precondition(index < pieces.count && pieces[index].start == position && !pieces[index].isPublished)
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

    /// What it takes of memory, at most, in bytes.
    var footprint: Int { Self.footprint(slots: slots) }

    static func footprint(slots: Int) -> Int {
        chunkBytes(64) + chunkBytes(32 + slots * MemoryLayout<Piece>.stride)
    }
}
