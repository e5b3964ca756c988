internal import Synchronization

/// Pointers to a row of pages (`BodyLayout.slot`).
typealias PageSegment = UnsafeMutablePointer<UnsafeMutableRawPointer?>

/// Pages by index. The body itself points to the first page, so a body of one page has no directory.
///
/// While a body grows, its writer alone adds pages, without a lock. To a partial body several fills add pages, under the
/// lock. Either way a page and what leads to it are in place before bytes in it are published, and stay: a reader that has
/// seen the length finds the page without the lock. (A large body's pages do go; its readers and writers take the lock.)
extension Body {
    /// Returns nil where the page was never added or has been freed.
    @inline(__always)
    func page(_ index: Int) -> UnsafeMutableRawPointer? {
        if index == 0 { return unsafe firstPage }
        let (segment, slot) = layout.slot(ofPage: index)
        return unsafe segments?[segment]?[slot]
    }

    /// Adds the pages that are missing up to the offset `end`. False: the budget has no room; nothing is lost.
    func reserve(upTo end: Int) -> Bool {
        while capacity < end {
            let next = layout.page(at: capacity)
            guard
                addPage(next, overdraft: windowed.load(ordering: .relaxed))
                    || isLeavingMemory && addPage(next, overdraft: true)
            else { return false }
            capacity = next.end
        }
        return true
    }

    /// Adds a page where it is not there yet. False: the budget has no room.
    func addPage(_ place: BodyLayout.Page, overdraft: Bool) -> Bool {
        guard place.index > 0 else {
            return unsafe install(place.capacity, overdraft, isSent: !isSparse, isThere: { unsafe firstPage != nil }) {
                unsafe firstPage = $0
            }
        }
        let (segment, slot) = layout.slot(ofPage: place.index)
        return unsafe addSegment(segment, overdraft)
            && install(
                place.capacity, overdraft, isSent: !isSparse, isThere: { unsafe segments![segment]![slot] != nil }
            ) {
                unsafe segments![segment]![slot] = $0
            }
    }

    private func addSegment(_ segment: Int, _ overdraft: Bool) -> Bool {
        let segmentCount = layout.segmentCount
        let slotCount = layout.slotCount(ofSegment: segment)
        return unsafe install(
            segmentCount * MemoryLayout<PageSegment?>.stride, overdraft, isThere: { unsafe segments != nil }
        ) {
            unsafe segments = $0.initializeMemory(as: PageSegment?.self, repeating: nil, count: segmentCount)
        }
            && install(
                slotCount * MemoryLayout<UnsafeMutableRawPointer?>.stride, overdraft,
                isThere: { unsafe segments![segment] != nil }
            ) {
                unsafe segments![segment] = $0.initializeMemory(
                    as: UnsafeMutableRawPointer?.self, repeating: nil, count: slotCount)
            }
    }

    /// Allocates memory and puts it in its place. Allocates outside the lock, because that may evict other responses; of
    /// two threads that allocate for one place, the first wins.
    @inline(__always)
    private func install(
        _ bytes: Int, _ overdraft: Bool, isSent: Bool = false, isThere: () -> Bool,
        place: (UnsafeMutableRawPointer) -> Void
    ) -> Bool {
        if exclusively(isThere) { return true }
        precondition(bytes > 0, "a page has bytes")
        guard let block = unsafe shelves.allocate(bytes, overdraft: overdraft, isSent: isSent) else { return false }
        let size = unsafe shelves.size(of: block)
        let isPlaced = exclusively {
            if isThere() { return false }
            unsafe place(block)
            return true
        }
        if isPlaced { held.add(size, ordering: .relaxed) } else { unsafe shelves.free(block) }
        return true
    }

    @inline(__always)
    private func exclusively<Result>(_ body: () -> Result) -> Result {
        state == .growing && !isSparse ? body() : locked(body)
    }

    /// Frees pages that were taken out of their places.
    func freePages(_ pages: [UnsafeMutableRawPointer]) {
        unsafe pages.forEach { page in
            unsafe held.subtract(shelves.size(of: page), ordering: .relaxed)
            unsafe shelves.free(page)
        }
    }

    /// Takes one page out of its place. The caller owns it then.
    func takePage(_ index: Int) -> UnsafeMutableRawPointer? {
        guard let block = unsafe page(index) else { return nil }
        if index == 0 {
            unsafe firstPage = nil
        } else {
            let (segment, slot) = layout.slot(ofPage: index)
            unsafe segments![segment]![slot] = nil
        }
        return unsafe block
    }

    func freeAllPages() {
        if let page = unsafe firstPage { unsafe shelves.free(page) }
        guard let segments = unsafe segments else { return }
        let layout = layout
        for index in 0..<layout.segmentCount {
            guard let segment = unsafe segments[index] else { continue }
            for slot in 0..<layout.slotCount(ofSegment: index) {
                if let page = unsafe segment[slot] { unsafe shelves.free(page) }
            }
            unsafe shelves.free(segment)
        }
        unsafe shelves.free(segments)
    }
}
