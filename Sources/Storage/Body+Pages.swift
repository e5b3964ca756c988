internal import Synchronization

/// Pointers to 16, 32, 64 … pages: the directory grows without moving what readers may be looking at.
typealias PageSegment = UnsafeMutablePointer<UnsafeMutableRawPointer?>

/// Page by index. The first page stands in the body itself, so a body of one page has no directory.
extension Body {
    private static let segmentsMax = 28
    private static let firstSegmentCount = 16

    var layout: BodyLayout { BodyLayout(expectedLength: expectedLength) }

    /// nil: the page was never added or is freed.
    @inline(__always)
    func page(_ index: Int) -> UnsafeMutableRawPointer? {
        if index == 0 { return unsafe firstPage }
        let (segment, slot) = Self.locate(index)
        return unsafe segments?[segment]?[slot]
    }

    /// Sees to it that there are pages up to the offset `end`. False: the budget does not allow it; nothing is lost.
    func reserve(upTo end: Int) -> Bool {
        while capacity < end {
            let next = layout.page(at: capacity)
            guard addPage(next) else { return false }
            capacity = next.end
        }
        return true
    }

    private func addPage(_ page: BodyLayout.Page) -> Bool {
        let overdraft = windowed.load(ordering: .relaxed)
        guard prepareDirectory(page.index, overdraft) else { return false }
        guard let block = unsafe shelves.allocate(page.capacity, overdraft: overdraft) else { return false }
        unsafe held.add(Shelves.size(of: block), ordering: .relaxed)
        unsafe setPage(page.index, block)
        return true
    }

    /// Frees one page; its bytes are behind every reader.
    func freePage(_ index: Int) {
        guard let block = unsafe page(index) else { return }
        unsafe setPage(index, nil)
        unsafe held.subtract(Shelves.size(of: block), ordering: .relaxed)
        unsafe shelves.free(block)
    }

    func freeAllPages() {
        if let page = unsafe firstPage { unsafe shelves.free(page) }
        guard let segments = unsafe segments else { return }
        for index in 0..<Self.segmentsMax {
            guard let segment = unsafe segments[index] else { break }
            for slot in 0..<Self.firstSegmentCount << index {
                if let page = unsafe segment[slot] { unsafe shelves.free(page) }
            }
            unsafe shelves.free(segment)
        }
        unsafe shelves.free(segments)
    }

    private func setPage(_ index: Int, _ block: UnsafeMutableRawPointer?) {
        guard index > 0 else {
            unsafe firstPage = block
            return
        }
        let (segment, slot) = Self.locate(index)
        unsafe segments![segment]![slot] = block
    }

    private func prepareDirectory(_ index: Int, _ overdraft: Bool) -> Bool {
        guard index > 0 else { return true }
        if unsafe segments == nil {
            let bytes = unsafe Self.segmentsMax * MemoryLayout<PageSegment?>.stride
            guard let block = unsafe shelves.allocate(bytes, overdraft: overdraft) else { return false }
            unsafe segments = block.initializeMemory(as: PageSegment?.self, repeating: nil, count: Self.segmentsMax)
        }
        let segment = Self.locate(index).segment
        guard unsafe segments![segment] == nil else { return true }
        let count = Self.firstSegmentCount << segment
        let bytes = unsafe count * MemoryLayout<UnsafeMutableRawPointer?>.stride
        guard let block = unsafe shelves.allocate(bytes, overdraft: overdraft) else { return false }
        unsafe segments![segment] = block.initializeMemory(
            as: UnsafeMutableRawPointer?.self, repeating: nil, count: count)
        return true
    }

    @inline(__always)
    private static func locate(_ index: Int) -> (segment: Int, slot: Int) {
        let block = (index - 1) / firstSegmentCount + 1
        let segment = Int.bitWidth - 1 - block.leadingZeroBitCount
        return (segment, index - 1 - firstSegmentCount * (1 << segment - 1))
    }
}
