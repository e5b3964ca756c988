/// Walks the trees of one root, page by page, and checks everything that LMDB follows without checking: each page is of the expected
/// kind and used once, nodes lie side by side within their page, keys are in order and within the bounds set by the pages above, and
/// each tree has as many entries as it counts.
@safe final class BookWalk {
    private let pages: BookPages
    private let root: BookRoot
    /// One bit for each page that is in use.
    private var seen: [UInt64]
    /// One page for each level of the path from the root.
    private var levels: [UnsafeMutableRawBufferPointer] = unsafe []
    /// For the page under examination: where a node of n bytes begins, n is stored at half its offset. Zero everywhere between pages.
    private var nodeBytes: [UInt16]
    private(set) var hasUnknownDatabase = false

    private enum Content { case entries, databases, freePages }
    private typealias Leaf = (_ key: UnsafeRawBufferPointer, _ node: BookNode, _ page: UInt64) throws(BookError) -> Void

    /// How many pages beyond the end of the file a root may count: a transaction may have allocated and freed them.
    private static let unwrittenPagesMax: UInt64 = 1 << 16

    init(_ pages: BookPages, _ root: BookRoot) throws(BookError) {
        self.pages = pages
        self.root = root
        let filePages = pages.fileBytes / UInt64(root.pageBytes)
        guard root.lastPage < filePages + Self.unwrittenPagesMax else {
            throw .damaged(BookDefect("it counts more pages than the file has", page: root.page))
        }
        // Bounded by the length of the file: a damaged number must not ask for all of memory.
        seen = Array(repeating: 0, count: Int(root.lastPage / 64) + 1)
        seen[0] = 3  // the meta pages
        nodeBytes = Array(repeating: 0, count: root.pageBytes / 2)
    }

    deinit {
        unsafe levels.forEach { unsafe $0.deallocate() }
    }

    // MARK: questions

    /// The databases of the root, by name.
    func databases() throws(BookError) -> [BookDatabase: BookTree] {
        var found: [BookDatabase: BookTree] = [:]
        unsafe try walk(root.main, .databases) { key, node, page throws(BookError) in
            let tree = BookTree(node.page, at: node.value.lowerBound)
            let name = unsafe String(decoding: key, as: UTF8.self)
            guard let database = BookDatabase.allCases.first(where: { $0.name == name }) else {
                hasUnknownDatabase = true
                return
            }
            guard tree.flags == 0 else {
                throw .damaged(BookDefect("a database has flags that are not ours", page: page))
            }
            found[database] = tree
        }
        return found
    }

    /// Checks a tree.
    func walk(_ tree: BookTree) throws(BookError) {
        unsafe try walk(tree, .entries) { _, _, _ throws(BookError) in }
    }

    /// Checks a tree and returns its entries, except those with long values.
    func records(_ tree: BookTree) throws(BookError) -> [[UInt8]: [UInt8]] {
        var records: [[UInt8]: [UInt8]] = [:]
        unsafe try walk(tree, .entries) { key, node, _ throws(BookError) in
            guard !node.isLong else { return }
            unsafe records[[UInt8](key)] = unsafe [UInt8](node.page.slice(node.value))
        }
        return records
    }

    /// Checks the lists of free pages, which must come last. Returns how many there are.
    func freePages() throws(BookError) -> UInt64 {
        var count: UInt64 = 0
        unsafe try walk(root.free, .freePages) { key, node, page throws(BookError) in
            let transaction = unsafe key.loadUnaligned(as: UInt64.self)
            guard transaction > 0, transaction <= root.transaction else {
                throw .damaged(BookDefect("free pages of a transaction that never was", page: page))
            }
            count += try freePages(node, page)
        }
        return count
    }

    // MARK: trees

    private func walk(_ tree: BookTree, _ content: Content, _ leaf: Leaf) throws(BookError) {
        guard let start = tree.root else {
            guard tree.depth == 0, tree.entryCount == 0 else {
                throw .damaged(BookDefect("a tree without a root counts \(tree.entryCount) entries"))
            }
            return
        }
        guard (1...BookTree.depthMax).contains(tree.depth) else {
            throw .damaged(BookDefect("a tree has \(tree.depth) levels", page: start))
        }
        var entryCount: UInt64 = 0
        unsafe try visit(
            start, level: 0, of: tree.depth, BookBounds(lower: nil, upper: nil), content, &entryCount, leaf)
        guard entryCount == tree.entryCount else {
            throw .damaged(
                BookDefect("a tree counts \(tree.entryCount) entries and has \(entryCount)", page: start))
        }
    }

    /// The depth bounds the recursion. No page is visited twice, which bounds the whole walk.
    private func visit(
        _ number: UInt64, level: Int, of depth: Int, _ bounds: BookBounds, _ content: Content,
        _ entryCount: inout UInt64, _ leaf: Leaf
    ) throws(BookError) {
        precondition(level < depth && depth <= BookTree.depthMax, "the path from the root is within its bounds")
        let page = try readPage(number, level: level)
        let isLeaf = level == depth - 1
        guard page.number == number, page.flags == (isLeaf ? BookPageBytes.isLeaf : BookPageBytes.isBranch) else {
            throw .damaged(BookDefect("it is not the page that it should be", page: number))
        }
        let count = try checkNodes(page, number, isLeaf: isLeaf, content)
        unsafe try checkOrder(page, number, count, isLeaf: isLeaf, bounds, content)
        if isLeaf {
            entryCount += UInt64(count)
            for index in 0..<count {
                let node = BookNode(page, page.nodeOffset(index), isLeaf: true)
                if node.isLong { try checkOverflow(node) }
                unsafe try leaf(page.slice(node.key), node, number)
            }
        } else {
            for index in 0..<count {
                let node = BookNode(page, page.nodeOffset(index), isLeaf: false)
                // Nobody uses the first key of a branch.
                // The first node of a branch has no key that counts: the lower bound of the page is that of its child.
                let lower = unsafe index == 0 ? bounds.lower : page.slice(node.key)
                let next = index + 1 < count ? BookNode(page, page.nodeOffset(index + 1), isLeaf: false) : nil
                let upper = unsafe next.map { unsafe page.slice($0.key) } ?? bounds.upper
                unsafe try visit(
                    node.child, level: level + 1, of: depth, BookBounds(lower: lower, upper: upper), content,
                    &entryCount, leaf)
            }
        }
    }

    private func readPage(_ number: UInt64, level: Int) throws(BookError) -> BookPageBytes {
        try claim(number)
        while unsafe levels.count <= level {
            unsafe levels.append(.allocate(byteCount: root.pageBytes, alignment: 8))
        }
        // Each level has a buffer of its own: the bounds of a page point into the pages above it, which must stay as they are.
        let room = unsafe levels[level]
        unsafe try pages.read(room, at: number * UInt64(root.pageBytes), page: number)
        return unsafe BookPageBytes(UnsafeRawBufferPointer(room))
    }

    /// Marks a page as used. It may be used once only.
    private func claim(_ number: UInt64) throws(BookError) {
        guard number <= root.lastPage else { throw .damaged(BookDefect("there is no such page", page: number)) }
        let bit: UInt64 = 1 << (number % 64)
        guard seen[Int(number / 64)] & bit == 0 else {
            throw .damaged(BookDefect("it belongs to two things", page: number))
        }
        seen[Int(number / 64)] |= bit
    }

    // MARK: nodes

    /// Checks that nodes lie side by side within the page, up to its end, and are of the expected kind. Returns how many there are.
    private func checkNodes(
        _ page: BookPageBytes, _ number: UInt64, isLeaf: Bool, _ content: Content
    ) throws(BookError) -> Int {
        let (lower, upper) = (page.lower, page.upper)
        let count = (lower - BookPageBytes.headerBytes) / 2
        guard lower >= BookPageBytes.headerBytes, lower % 2 == 0, lower <= upper, upper <= page.count,
            // LMDB fails on a branch with one node.
            count >= (isLeaf ? 1 : 2)
        else { throw .damaged(BookDefect("its bounds are impossible", page: number)) }
        defer {
            for index in 0..<count where page.nodeOffset(index) < page.count {
                nodeBytes[page.nodeOffset(index) / 2] = 0
            }
        }
        for index in 0..<count {
            let offset = page.nodeOffset(index)
            guard offset >= upper, offset % 2 == 0, offset <= page.count - BookNode.headerBytes else {
                throw .damaged(BookDefect("node \(index) is not within it", page: number))
            }
            let node = BookNode(page, offset, isLeaf: isLeaf)
            guard node.end <= page.count, isAllowed(node, isFirst: index == 0, isLeaf: isLeaf, content) else {
                throw .damaged(BookDefect("node \(index) is impossible", page: number))
            }
            nodeBytes[offset / 2] = UInt16(node.end - offset)
        }
        var (offset, met) = (upper, 0)
        while offset < page.count, nodeBytes[offset / 2] > 0 {
            offset += Int(nodeBytes[offset / 2])
            met += 1
        }
        // Two nodes at one place were met once. A gap ends the loop early. Either makes the counts or the ends differ.
        guard met == count, offset == page.count else {
            throw .damaged(BookDefect("its nodes do not lie side by side", page: number))
        }
        return count
    }

    private func isAllowed(_ node: BookNode, isFirst: Bool, isLeaf: Bool, _ content: Content) -> Bool {
        let keyBytes = node.key.count
        guard isLeaf else {
            if isFirst { return true }
            return content == .freePages ? keyBytes == 8 : (1...BookOrder.bookKeyBytesMax).contains(keyBytes)
        }
        switch content {
        case .entries:
            return (1...BookOrder.bookKeyBytesMax).contains(keyBytes) && (node.flags == 0 || node.isLong)
        case .databases:
            return (1...BookOrder.bookKeyBytesMax).contains(keyBytes) && node.flags == BookNode.isDatabase
                && node.valueBytes == BookTree.bytes
        case .freePages:
            return keyBytes == 8 && (node.flags == 0 || node.isLong) && node.valueBytes >= 8
        }
    }

    private func checkOrder(
        _ page: BookPageBytes, _ number: UInt64, _ count: Int, isLeaf: Bool, _ bounds: BookBounds, _ content: Content
    ) throws(BookError) {
        var previous = unsafe bounds.lower
        // The lower bound is inclusive. Keys are not repeated.
        var least = 0
        for index in (isLeaf ? 0 : 1)..<count {
            let key = unsafe page.slice(BookNode(page, page.nodeOffset(index), isLeaf: isLeaf).key)
            if let previous = unsafe previous {
                guard unsafe compare(key, previous, content) >= least else {
                    throw .damaged(BookDefect("its keys are not in order", page: number))
                }
            }
            unsafe previous = unsafe key
            least = 1
        }
        if let upper = unsafe bounds.upper, let previous = unsafe previous {
            guard unsafe compare(previous, upper, content) < 0 else {
                throw .damaged(BookDefect("its keys are not in order", page: number))
            }
        }
    }

    private func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer, _ content: Content) -> Int {
        guard content == .freePages else { return unsafe bookCompare(left, right) }
        let left = unsafe left.loadUnaligned(as: UInt64.self)
        let right = unsafe right.loadUnaligned(as: UInt64.self)
        return left < right ? -1 : left > right ? 1 : 0
    }

    // MARK: long values

    private func checkOverflow(_ node: BookNode) throws(BookError) {
        let first = node.overflowPage
        let header = UnsafeMutableRawBufferPointer.allocate(byteCount: BookPageBytes.headerBytes, alignment: 8)
        defer { unsafe header.deallocate() }
        guard first <= root.lastPage else { throw .damaged(BookDefect("there is no such page", page: first)) }
        unsafe try pages.read(header, at: first * UInt64(root.pageBytes), page: first)
        let page = unsafe BookPageBytes(UnsafeRawBufferPointer(header))
        let needed = (BookPageBytes.headerBytes - 1 + node.valueBytes) / root.pageBytes + 1
        let count = UInt64(page.overflowCount)
        guard page.number == first, page.flags == BookPageBytes.isOverflow, count >= needed,
            (first + UInt64(needed)) * UInt64(root.pageBytes) <= pages.fileBytes, count <= root.lastPage - first + 1
        else { throw .damaged(BookDefect("it is not the long value that it should be", page: first)) }
        // The guard has bounded `count` by the pages of the root, so that damaged bytes cannot make this loop long.
        for number in first..<first + count { try claim(number) }
    }

    /// A list consists of a count and that many page numbers, in descending order. The rest of its space has no meaning.
    private func freePages(_ node: BookNode, _ number: UInt64) throws(BookError) -> UInt64 {
        guard node.isLong else { return try freePages(unsafe BookPageBytes(node.page.slice(node.value)), number) }
        // `checkOverflow` has found the whole value within the file, so its length can be trusted.
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: node.valueBytes, alignment: 8)
        defer { unsafe room.deallocate() }
        let offset = node.overflowPage * UInt64(root.pageBytes) + UInt64(BookPageBytes.headerBytes)
        unsafe try pages.read(room, at: offset, page: number)
        return try freePages(unsafe BookPageBytes(UnsafeRawBufferPointer(room)), number)
    }

    private func freePages(_ list: BookPageBytes, _ number: UInt64) throws(BookError) -> UInt64 {
        let count = list.load(0, as: UInt64.self)
        guard count <= list.count / 8 - 1 else {
            throw .damaged(BookDefect("a list of free pages is longer than its space", page: number))
        }
        var previous = UInt64.max
        for index in 0..<Int(count) {
            let free = list.load(8 * (index + 1), as: UInt64.self)
            guard free < previous else {
                throw .damaged(BookDefect("a list of free pages is not in order", page: number))
            }
            try claim(free)
            previous = free
        }
        return count
    }
}

/// The keys of a page are at or above `lower` and below `upper`. Nil: no bound.
@unsafe private struct BookBounds {
    var lower, upper: UnsafeRawBufferPointer?
}

/// A key with its value or child. Before it is read, its header must lie within the page; for the rest, `end` must.
struct BookNode {
    static let headerBytes = 8
    static let isLong: UInt16 = 0x01
    static let isDatabase: UInt16 = 0x02

    let page: BookPageBytes
    private let offset: Int
    private let isLeaf: Bool
    private let word: UInt64

    init(_ page: BookPageBytes, _ offset: Int, isLeaf: Bool) {
        self.page = page
        self.offset = offset
        self.isLeaf = isLeaf
        word = page.load(offset, as: UInt64.self)
    }

    /// The flags of a leaf node.
    var flags: UInt16 { UInt16(truncatingIfNeeded: word >> 32) }
    /// The value is in pages of its own.
    var isLong: Bool { isLeaf && flags == Self.isLong }
    /// The length of the value, wherever it is.
    var valueBytes: Int { isLeaf ? Int(word & 0xFFFF_FFFF) : 0 }
    var child: UInt64 { word & 0xFFFF_FFFF_FFFF }
    var key: Range<Int> { offset + Self.headerBytes..<offset + Self.headerBytes + Int(word >> 48) }
    /// The part of the value in this page. For a long value: the number of its first page.
    var value: Range<Int> { key.upperBound..<key.upperBound + (isLong ? 8 : valueBytes) }
    var overflowPage: UInt64 { page.load(value.lowerBound, as: UInt64.self) }
    /// Nodes begin at even offsets.
    var end: Int { (value.upperBound + 1) & ~1 }
}
