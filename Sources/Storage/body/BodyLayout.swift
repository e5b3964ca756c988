/// Where the bytes of a body lie: which page holds an offset.
///
/// Known length up to 256 KiB: one page of that size. Longer: pages of 256 KiB, the last as long as is needed. Unknown:
/// 4 KiB, 8 KiB, … 256 KiB, then 256 KiB each. A sparse body has pages of 64 KiB: a few bytes of it take a whole page, and
/// a back store writes and frees one page at a time. Nothing is ever moved, so readers may hold pointers.
struct BodyLayout {
    static let pageBytes = 256 * 1024
    static let sparsePageBytes = 64 * 1024
    /// First page of a body of unknown length.
    static let firstBytes = 4 * 1024
    /// Pages before all are of `pageBytes`, and the bytes in them, where the length is unknown.
    private static let rampCount = 6
    private static let rampBytes = firstBytes * (1 << rampCount - 1)

    struct Page: Equatable {
        var index: Int
        /// Offset of its first byte in the body.
        var start: Int
        var capacity: Int
        var end: Int { start + capacity }
    }

    /// nil: unknown.
    let expectedLength: Int?
    var isSparse = false

    /// The page that holds the byte at `offset`.
    func page(at offset: Int) -> Page {
        guard let length = expectedLength else {
            guard isSparse else { return Self.rampPage(at: offset) }
            let index = offset / Self.sparsePageBytes
            return Page(index: index, start: index * Self.sparsePageBytes, capacity: Self.sparsePageBytes)
        }
        let most = isSparse ? Self.sparsePageBytes : Self.pageBytes
        if length <= most { return Page(index: 0, start: 0, capacity: Self.rounded(length)) }
        let index = offset / most
        let start = index * most
        return Page(index: index, start: start, capacity: min(most, Self.rounded(length - start)))
    }

    private static func rampPage(at offset: Int) -> Page {
        if offset >= rampBytes {
            let index = (offset - rampBytes) / pageBytes
            return Page(index: rampCount + index, start: rampBytes + index * pageBytes, capacity: pageBytes)
        }
        let block = offset / firstBytes + 1
        let index = Int.bitWidth - 1 - block.leadingZeroBitCount
        return Page(index: index, start: firstBytes * (1 << index - 1), capacity: firstBytes << index)
    }

    private static func rounded(_ bytes: Int) -> Int { (bytes + 63) & ~63 }
}

/// Where the pointer to a page stands: the directory is a row of segments, each made when it is needed and never moved,
/// so that it grows while readers look at it.
///
/// Of 16, 32, 64 … pages where bytes come in order: a short body has a short directory. Of 512 pages each where they
/// come in any order, which is where the length is known: a range at the end of a large object takes no directory for what
/// is before it.
extension BodyLayout {
    /// Longest sparse body (1 TiB): its row of segments takes 256 KiB.
    static let sparseLengthMax = 1 << 40
    private static let sparseSlots = 512
    private static let firstSlots = 16

    var segmentCount: Int {
        guard isSparse, let length = expectedLength else { return 28 }
        return (length + Self.sparseSlots * Self.sparsePageBytes - 1) / (Self.sparseSlots * Self.sparsePageBytes)
    }

    func slotCount(ofSegment segment: Int) -> Int {
        isSparse && expectedLength != nil ? Self.sparseSlots : Self.firstSlots << segment
    }

    /// Of every page but the first, which stands in the body itself.
    @inline(__always)
    func slot(ofPage index: Int) -> (segment: Int, slot: Int) {
        if isSparse, expectedLength != nil { return (index / Self.sparseSlots, index % Self.sparseSlots) }
        let block = (index - 1) / Self.firstSlots + 1
        let segment = Int.bitWidth - 1 - block.leadingZeroBitCount
        return (segment, index - 1 - Self.firstSlots * (1 << segment - 1))
    }
}
