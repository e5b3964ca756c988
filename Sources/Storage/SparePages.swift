internal import CLarder
internal import Glibc

/// Whole pages that are free at the moment, kept for the next body: they stay mapped, so a large body costs neither
/// `mmap` nor page faults. They stay charged to the budget, and are the first to go when it is short.
@safe final class SparePages: @unchecked Sendable {
    /// Bytes of the budget in a whole page.
    static let pageSize = BodyLayout.pageBytes + 16

    private let lock = LockBank(count: 1)
    private let countMax: Int
    private let pages: UnsafeMutablePointer<UnsafeMutableRawPointer>
    private var count = 0

    /// Keeps at most a sixteenth of the budget, and 64 pages (16 MiB).
    init(budget: Int) {
        countMax = min(64, budget / 16 / BodyLayout.pageBytes)
        unsafe pages = .allocate(capacity: 64)
    }

    deinit {
        while let page = unsafe take() { unsafe Glibc.free(page) }
        unsafe pages.deallocate()
    }

    func take() -> UnsafeMutableRawPointer? {
        unsafe lock.withLock(0) {
            guard count > 0 else { return nil }
            count -= 1
            return unsafe pages[count]
        }
    }

    /// False: there are enough.
    func keep(_ page: UnsafeMutableRawPointer) -> Bool {
        lock.withLock(0) {
            guard count < countMax else { return false }
            precondition(count < 64, "there is room for 64 pages")
            unsafe pages[count] = page
            count += 1
            return true
        }
    }

    var pageCount: Int { lock.withLock(0) { count } }
}

// MARK: Blocks of memory, charged

extension Shelves {
    /// Bytes that malloc(3) keeps in front of a block.
    static let blockHeaderBytes = 8

    /// What a block takes of memory, in bytes: what malloc(3) gave and its header.
    static func size(of block: UnsafeMutableRawPointer) -> Int {
        unsafe clarder_malloc_usable_size(block) + blockHeaderBytes
    }

    /// A block of memory, charged to the budget. Returns nil where the budget has no room; with `overdraft` it is charged
    /// all the same.
    func allocate(_ bytes: Int, overdraft: Bool = false) -> UnsafeMutableRawPointer? {
        if bytes == BodyLayout.pageBytes, let page = unsafe spare.take() { return unsafe page }
        let most = chunkBytes(bytes)
        if !charge(most) {
            guard overdraft else { return nil }
            overdraw(most)
        }
        guard let block = unsafe malloc(bytes) else {
            release(most)
            return nil
        }
        // malloc(3) gives a little more than that at times, when what would be left is too small for a block.
        unsafe take(Self.size(of: block) - most)
        return unsafe block
    }

    func free(_ block: UnsafeMutableRawPointer) {
        let size = unsafe Self.size(of: block)
        if size >= BodyLayout.pageBytes, unsafe spare.keep(block) { return }
        unsafe Glibc.free(block)
        release(size)
    }

    /// False: there was none.
    func dropSparePage() -> Bool {
        guard let page = unsafe spare.take() else { return false }
        let size = unsafe Self.size(of: page)
        unsafe Glibc.free(page)
        release(size)
        return true
    }
}
