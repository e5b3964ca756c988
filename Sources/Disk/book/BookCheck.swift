/// Checks the whole structure of a book's file before LMDB sees it.
///
/// LMDB trusts its file: a flipped bit in a page can end the process, or overwrite pages that are in use. So this check looks at
/// everything that LMDB follows: both meta pages, and from the newer root all pages of all databases. It does not look into values,
/// which have checksums of their own. Arbitrary bytes give a result or an error.
package struct BookCheck: Sendable, Equatable {
    /// All pages of the file, in use or free.
    package var pageCount: UInt64
    package var freePageCount: UInt64
    package var objectCount: UInt64
    /// The length of these pages.
    package var bytes: UInt64

    /// - Parameter directory: the directory of the book, which this or another process may be using.
    /// - Returns: nil if there is no book.
    package static func run(_ directory: String) throws(BookError) -> BookCheck? {
        var attemptsLeft = 100
        while true {
            guard let pages = try BookPages(directory) else { return nil }
            let beginning = try pages.beginning()
            do throws(BookError) {
                return try check(BookRoots(pages), pages)
            } catch {
                // A concurrent writer may reuse the pages of a root once that root is three transactions old.
                attemptsLeft -= 1
                guard attemptsLeft > 0, case .damaged = error, try pages.beginning() != beginning else { throw error }
            }
        }
    }

    private static func check(_ roots: BookRoots, _ pages: BookPages) throws(BookError) -> BookCheck {
        let walk = try BookWalk(pages, roots.newer)
        let trees = try walk.databases()
        try checkMeta(walk, trees, roots.newer)
        try checkOlder(roots.older, pages)
        var check = BookCheck(pageCount: roots.newer.lastPage + 1, freePageCount: 0, objectCount: 0, bytes: 0)
        check.bytes = check.pageCount * UInt64(roots.newer.pageBytes)
        for database in BookDatabase.allCases where database != .meta {
            guard let tree = trees[database] else { continue }
            try walk.walk(tree)
            if database == .objects { check.objectCount = tree.entryCount }
        }
        check.freePageCount = try walk.freePages()
        return check
    }

    /// Checks the version first: of an unknown version nothing else is known.
    private static func checkMeta(
        _ walk: BookWalk, _ trees: [BookDatabase: BookTree], _ root: BookRoot
    ) throws(BookError) {
        guard !trees.isEmpty || walk.hasUnknownDatabase else { return }
        let records = try trees[.meta].map { tree throws(BookError) in try walk.records(tree) } ?? [:]
        func number<Number: FixedWidthInteger>(_ key: [UInt8], _ type: Number.Type) throws(BookError) -> Number {
            guard let value = records[key], let number = BookMeta.number(type, key: key, value: value) else {
                throw .damaged(BookDefect("meta lacks \(String(decoding: key, as: UTF8.self))"))
            }
            return number
        }
        let version = try number(BookMeta.formatKey, UInt32.self)
        guard version == BookMeta.version else { throw .unknownVersion(version) }
        guard !walk.hasUnknownDatabase, trees.count == BookDatabase.allCases.count else {
            throw .damaged(BookDefect("its databases are not ours"))
        }
        guard try number(BookMeta.commitKey, UInt64.self) == root.transaction else {
            throw .damaged(BookDefect("it is not the root that it says it is", page: root.page))
        }
    }

    /// Checks that the older root is not in truth the newer one, with a damaged number. If its pages cannot be read, that says
    /// nothing: they are not needed any more.
    private static func checkOlder(_ root: BookRoot, _ pages: BookPages) throws(BookError) {
        let commit: UInt64?
        do throws(BookError) {
            let walk = try BookWalk(pages, root)
            guard let meta = try walk.databases()[.meta] else { return }
            let value = try walk.records(meta)[BookMeta.commitKey]
            commit = value.flatMap { BookMeta.number(UInt64.self, key: BookMeta.commitKey, value: $0) }
        } catch {
            return
        }
        guard let commit, commit != root.transaction else { return }
        throw .damaged(BookDefect("it is not the root that it says it is", page: root.page))
    }
}

/// Both meta pages, in the order of their age.
struct BookRoots: Equatable {
    let newer, older: BookRoot

    init(_ pages: BookPages) throws(BookError) {
        let first = try Self.read(pages, 0, at: 0)
        let second = try Self.read(pages, 1, at: UInt64(first.pageBytes))
        guard first.pageBytes == second.pageBytes else {
            throw .damaged(BookDefect("the meta pages differ in the page size"))
        }
        // LMDB chooses in the same way. A new file has two roots with number zero.
        (newer, older) = first.transaction >= second.transaction ? (first, second) : (second, first)
        guard newer.transaction - older.transaction <= 1, newer.transaction & 1 == newer.page else {
            throw .damaged(BookDefect("the meta pages do not follow one another", page: newer.page))
        }
    }

    private static func read(_ pages: BookPages, _ page: UInt64, at offset: UInt64) throws(BookError) -> BookRoot {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: BookRoot.metaBytes, alignment: 8)
        defer { unsafe room.deallocate() }
        unsafe try pages.read(room, at: offset, page: page)
        return try BookRoot(unsafe BookPageBytes(UnsafeRawBufferPointer(room)), page: page)
    }
}
