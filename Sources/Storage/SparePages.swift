internal import CLarder
internal import Glibc

/// Whole pages that no body uses, kept for the next body. They stay mapped, so a large body costs neither `mmap` nor page faults.
/// They stay charged to the budget, and are freed first when it is short.
@safe final class SparePages: @unchecked Sendable {
    /// How many bytes of the budget a whole page takes.
    static let pageSize = BodyLayout.pageBytes + 16

    private let lock = LockBank(count: 1)
    private let countMax: Int
    private let pages: UnsafeMutablePointer<UnsafeMutableRawPointer>
    private var count = 0

    /// Keeps at most a sixteenth of the budget, and at most 64 pages (16 MiB).
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

    /// Returns false, and does not keep the page, if there are enough.
    func keep(_ page: UnsafeMutableRawPointer) -> Bool {
        lock.withLock(0) {
            guard count < countMax else { return false }
            precondition(count < 64, "there is space for 64 pages")
            unsafe pages[count] = page
            count += 1
            return true
        }
    }

    var pageCount: Int { lock.withLock(0) { count } }
}

// MARK: Blocks of memory, charged

extension Shelves {
    /// The bytes that malloc(3) has in front of a block.
    static let blockHeaderBytes = 8

    /// How many bytes of memory a block takes: its usable size and the header of malloc(3).
    static func size(of block: UnsafeMutableRawPointer) -> Int {
        unsafe clarder_malloc_usable_size(block) + blockHeaderBytes
    }

    /// Allocates a block of memory and charges it to the budget. If the budget has no space, returns nil, or with `overdraft` exceeds
    /// the budget.
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
        // malloc(3) sometimes returns a little more, because the rest would be too small for a block.
        unsafe take(Self.size(of: block) - most)
        return unsafe block
    }

    func free(_ block: UnsafeMutableRawPointer) {
        let size = unsafe Self.size(of: block)
        if size >= BodyLayout.pageBytes, unsafe spare.keep(block) { return }
        unsafe Glibc.free(block)
        release(size)
    }

    /// Returns false if there was none.
    func dropSparePage() -> Bool {
        guard let page = unsafe spare.take() else { return false }
        let size = unsafe Self.size(of: page)
        unsafe Glibc.free(page)
        release(size)
        return true
    }
}
