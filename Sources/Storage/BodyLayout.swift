/// Where the bytes of a body lie: which page holds an offset.
///
/// Known length up to 256 KiB: one page of that size. Longer: pages of 256 KiB, the last as long as is needed. Unknown:
/// 4 KiB, 8 KiB, … 256 KiB, then 256 KiB each. Nothing is ever moved, so readers may hold pointers.
struct BodyLayout {
    static let pageBytes = 256 * 1024
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

    /// The page that holds the byte at `offset`.
    func page(at offset: Int) -> Page {
        guard let length = expectedLength else { return Self.rampPage(at: offset) }
        if length <= Self.pageBytes { return Page(index: 0, start: 0, capacity: Self.rounded(length)) }
        let index = offset / Self.pageBytes
        let start = index * Self.pageBytes
        return Page(index: index, start: start, capacity: min(Self.pageBytes, Self.rounded(length - start)))
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
