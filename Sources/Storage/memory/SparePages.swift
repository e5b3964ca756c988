internal import CLarder
internal import Glibc

/// Whole pages that no body uses, kept for the next body. They stay in memory, so a large body costs no page faults. They stay charged
/// to the budget, and are freed first when it is short. None of them was ever sent by reference (`PageArena`).
@safe final class SparePages: @unchecked Sendable {
    private let arena: PageArena?
    private let lock = LockBank(count: 1)
    private let countMax: Int
    private let pages: UnsafeMutablePointer<UnsafeMutableRawPointer>
    private var count = 0

    /// Keeps at most a sixteenth of the budget, and at most 64 pages (16 MiB).
    init(budget: Int, arena: PageArena?) {
        self.arena = arena
        countMax = min(64, budget / 16 / BodyLayout.pageBytes)
        unsafe pages = .allocate(capacity: 64)
    }

    deinit {
        while let page = unsafe take() { unsafe release(page) }
        unsafe pages.deallocate()
    }

    /// Frees a page that this took out.
    func release(_ page: UnsafeMutableRawPointer) {
        if let arena, unsafe arena.contains(page) { unsafe arena.free(page) } else { unsafe Glibc.free(page) }
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

    /// What they take of the budget: those of malloc(3) a little more than a slot of the arena.
    var byteCount: Int {
        lock.withLock(0) {
            (0..<count).reduce(0) { sum, index in
                let isOfArena = unsafe arena?.contains(pages[index]) == true
                return sum + BodyLayout.pageBytes + (isOfArena ? 0 : 16)
            }
        }
    }
}

// MARK: Blocks of memory, charged

extension Shelves {
    /// How many bytes of memory a block of malloc(3) takes, with its header.
    static func size(of block: UnsafeMutableRawPointer) -> Int { unsafe clarder_malloc_size(block) }

    /// How many bytes of memory a block takes, wherever it is from.
    func size(of block: UnsafeMutableRawPointer) -> Int {
        if let arena, unsafe arena.contains(block) { return unsafe arena.size(of: block) }
        return unsafe Self.size(of: block)
    }

    /// How many bytes of memory a page of a body takes at most.
    static func pageSize(_ bytes: Int) -> Int {
        PageArena.serves(bytes) ? max(PageArena.footprint(bytes), chunkBytes(bytes)) : chunkBytes(bytes)
    }

    /// Allocates a block of memory and charges it to the budget. If the budget has no space, returns nil, or with `overdraft` exceeds
    /// the budget.
    /// - Parameter isSent: whether clients will get it as it is, so that it is worth a slot of the arena.
    func allocate(_ bytes: Int, overdraft: Bool = false, isSent: Bool = false) -> UnsafeMutableRawPointer? {
        let most = isSent ? Self.pageSize(bytes) : chunkBytes(bytes)
        var page: UnsafeMutableRawPointer?
        let isCharged = charge(most) {
            if bytes == BodyLayout.pageBytes { unsafe page = spare.take() }
            return unsafe page != nil
        }
        if let page = unsafe page { return unsafe page }
        if !isCharged {
            guard overdraft else { return nil }
            overdraw(most)
        }
        guard let block = unsafe obtain(bytes, isSent) else {
            release(most)
            return nil
        }
        // malloc(3) sometimes returns a little more, because the rest would be too small for a block.
        unsafe take(size(of: block) - most)
        return unsafe block
    }

    private func obtain(_ bytes: Int, _ isSent: Bool) -> UnsafeMutableRawPointer? {
        if isSent, PageArena.serves(bytes), let page = unsafe arena?.take(bytes) { return unsafe page }
        return unsafe malloc(bytes)
    }

    func free(_ block: UnsafeMutableRawPointer) {
        let size = unsafe size(of: block)
        if size >= BodyLayout.pageBytes, unsafe !wasSent(block), unsafe spare.keep(block) { return }
        unsafe spare.release(block)
        release(size)
    }

    private func wasSent(_ block: UnsafeMutableRawPointer) -> Bool {
        guard let arena, unsafe arena.contains(block) else { return false }
        return unsafe arena.wasSent(block)
    }

    /// Returns false if there was none.
    func dropSparePage() -> Bool {
        guard let page = unsafe spare.take() else { return false }
        let size = unsafe size(of: page)
        unsafe spare.release(page)
        release(size)
        return true
    }
}
