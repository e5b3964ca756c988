import Glibc

// Reading the book: any thread, each call in a transaction of its own.
//
// A transaction sees the last commit before it began. While it is open, LMDB cannot reuse the pages that it may see, so the book grows
// if a commit comes meanwhile: visitors must be quick, and long walks are cut into pages.
extension Book {
    /// Visits all entries in order, until the visitor returns false. The visitor must not call `commit` or wait for a thread that does.
    package func load(_ visit: (BookEntry) -> Bool) throws(BookError) {
        var cursor: BookCursor?
        repeat { cursor = try load(after: cursor, limit: .max, visit) } while cursor != nil
    }

    /// The same for at most `limit` entries.
    /// - Returns: where to go on. Nil if there are no more, or if the visitor returned false.
    func load(after cursor: BookCursor?, limit: Int, _ visit: (BookEntry) -> Bool) throws(BookError) -> BookCursor? {
        precondition(limit > 0, "a page has entries")
        var shared = BookShared()
        var count = 0
        return try environment.read { transaction throws(BookError) in
            let objects = try transaction.cursor(.objects)
            var row = unsafe try objects.first(from: cursor.map { $0.key + [0] } ?? [])
            while let (key, value) = unsafe row.map({ unsafe ($0.key, $0.value) }) {
                count += 1
                if let entry = unsafe BookCodec.entry(bookKey: key, value: value, sharing: &shared) {
                    guard visit(entry) else { return nil }
                } else {
                    noteDamaged("an entry of objects")
                }
                if count >= limit { return BookCursor(key: unsafe [UInt8](key)) }
                unsafe row = try objects.next()
            }
            return nil
        }
    }

    package func segments() throws(BookError) -> [UInt32: BookSegment] {
        try environment.read { transaction throws(BookError) in
            var segments: [UInt32: BookSegment] = [:]
            let position = try transaction.cursor(.segments)
            var row = unsafe try position.first(from: [])
            while let (key, value) = unsafe row.map({ unsafe ($0.key, $0.value) }) {
                if let (number, state) = unsafe BookCodec.segment(bookKey: key, value: value) {
                    segments[number] = state
                } else {
                    // Without its entry, the segment is scanned from its beginning.
                    noteDamaged("an entry of segments")
                }
                unsafe row = try position.next()
            }
            return segments
        }
    }

    package func entry(_ id: ObjectID, key: [UInt8]) throws(BookError) -> BookEntry? {
        try environment.read { transaction throws(BookError) in
            try entry(bookKey: BookOrder.bookKey(id, key).bytes, transaction).flatMap { $0.key == key ? $0 : nil }
        }
    }

    /// All objects under a key, the oldest first.
    package func entries(under key: [UInt8]) throws(BookError) -> [BookEntry] {
        let first = BookOrder.bookKey(ObjectID(rawValue: 0), key).bytes
        let stem = Array(first.dropLast(8))
        return try environment.read { transaction throws(BookError) in
            var entries: [BookEntry] = []
            var shared = BookShared()
            let objects = try transaction.cursor(.objects)
            unsafe try rows(objects, from: first, before: BookRange.successor(of: stem)) {
                bookKey, value throws(BookError) in
                // A longer key in the book belongs to a cache key that continues with a zero.
                guard bookKey.count == first.count else { return true }
                if let entry = unsafe decode(bookKey, value, sharing: &shared), entry.key == key {
                    entries.append(entry)
                }
                return true
            }
            return entries
        }
    }

    package func renewal(of id: ObjectID) throws(BookError) -> BookRenewal? {
        let key = BookCodec.renewalKey(id)
        return try environment.read { transaction throws(BookError) in
            guard let value = unsafe try transaction.get(.renewals, key) else { return nil }
            let renewal = unsafe key.withUnsafeBytes { unsafe BookCodec.renewal(bookKey: $0, value: value) }
            if renewal == nil { noteDamaged("a renewed head") }
            return renewal
        }
    }

    /// At most `limit` entries of the range: in order those that are in it by their keys, and then those by their addresses, each once. `next`
    /// is nil if there are no more.
    package func page(
        after cursor: BookCursor? = nil, in range: BookRange = .all, limit: Int
    ) throws(BookError) -> (entries: [BookEntry], next: BookCursor?) {
        var page = BookPage(limit: limit)
        let isAmongAddresses = cursor.map { AddressTag.isCursor($0) } ?? false
        try environment.read { transaction throws(BookError) in
            if !isAmongAddresses { try appendByKeys(&page, after: cursor, range, transaction) }
            if range == .all || page.next != nil { return }
            try appendByAddresses(
                &page, after: isAmongAddresses ? cursor : nil, AddressTag.Range(range), transaction)
        }
        return (page.entries, page.next)
    }

    private func appendByKeys(
        _ page: inout BookPage, after cursor: BookCursor?, _ range: BookRange, _ transaction: borrowing BookTransaction
    ) throws(BookError) {
        let (lower, upper) = range.bounds
        var shared = BookShared()
        let objects = try transaction.cursor(.objects)
        unsafe try rows(objects, from: lower, after: cursor, before: upper) { bookKey, value throws(BookError) in
            guard let entry = unsafe decode(bookKey, value, sharing: &shared), range.contains(entry.key),
                range == .all || !entry.attributes.tags.contains(where: { AddressTag.isOne($0) })
            else { return true }
            return unsafe page.append(entry, at: bookKey)
        }
    }

    private func appendByAddresses(
        _ page: inout BookPage, after cursor: BookCursor?, _ range: AddressTag.Range,
        _ transaction: borrowing BookTransaction
    ) throws(BookError) {
        let tags = try transaction.cursor(.tags)
        unsafe try rows(tags, from: range.lower, after: cursor, before: range.upper) {
            tagKey, value throws(BookError) in
            let tag = unsafe [UInt8](tagKey.dropLast(BookOrder.suffixBytes))
            guard range.contains(tag) else { return true }
            guard let content = unsafe BookSeal.open(value, key: tagKey), unsafe !content.isEmpty else {
                noteDamaged("an entry of tags")
                return true
            }
            // An object comes with the first of its addresses that is in the range.
            guard let entry = try entry(bookKey: unsafe [UInt8](content), transaction),
                entry.attributes.tags.first(where: range.contains) == tag
            else { return true }
            return unsafe page.append(entry, at: tagKey)
        }
    }

    /// The same for the objects with a tag, in the order of their numbers.
    package func page(
        after cursor: BookCursor? = nil, tag: [UInt8], limit: Int
    ) throws(BookError) -> (entries: [BookEntry], next: BookCursor?) {
        let lower = tag + [0]
        var page = BookPage(limit: limit)
        try environment.read { transaction throws(BookError) in
            let tags = try transaction.cursor(.tags)
            unsafe try rows(tags, from: lower, after: cursor, before: BookRange.successor(of: lower)) {
                tagKey, value throws(BookError) in
                // A longer key belongs to a tag that continues with a zero.
                guard tagKey.count == lower.count + 8 else { return true }
                guard let content = unsafe BookSeal.open(value, key: tagKey), unsafe !content.isEmpty else {
                    noteDamaged("an entry of tags")
                    return true
                }
                // A tag that a damaged entry left behind leads to nothing, or to an object that has the tag no longer.
                guard let entry = try entry(bookKey: unsafe [UInt8](content), transaction),
                    entry.attributes.tags.contains(tag)
                else { return true }
                return unsafe page.append(entry, at: tagKey)
            }
        }
        return (page.entries, page.next)
    }

    private func entry(
        bookKey: [UInt8], _ transaction: borrowing BookTransaction
    ) throws(BookError) -> BookEntry? {
        var shared = BookShared()
        guard let value = unsafe try transaction.get(.objects, bookKey) else { return nil }
        return unsafe bookKey.withUnsafeBytes { unsafe decode($0, value, sharing: &shared) }
    }

    private func decode(
        _ bookKey: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, sharing shared: inout BookShared
    ) -> BookEntry? {
        let entry = unsafe BookCodec.entry(bookKey: bookKey, value: value, sharing: &shared)
        if entry == nil { noteDamaged("an entry of objects") }
        return entry
    }

    /// Visits the rows from `lower` up to `upper` that come after the cursor, until the visitor returns false.
    private func rows(
        _ position: borrowing BookPosition, from lower: [UInt8], after cursor: BookCursor? = nil,
        before upper: [UInt8]?,
        _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws(BookError) -> Bool
    ) throws(BookError) {
        // The key with a zero appended is the next possible one.
        let start = cursor.map { $0.key + [0] }.flatMap { bookCompare($0, lower) > 0 ? $0 : nil } ?? lower
        var row = unsafe try position.first(from: start)
        while let (key, value) = unsafe row.map({ unsafe ($0.key, $0.value) }) {
            if let upper, unsafe upper.withUnsafeBytes({ unsafe bookCompare(key, $0) >= 0 }) { return }
            guard unsafe try visit(key, value) else { return }
            unsafe row = try position.next()
        }
    }
}

/// Collects entries up to a limit, and notes whether there are more.
private struct BookPage {
    let limit: Int
    private(set) var entries: [BookEntry] = []
    private(set) var next: BookCursor?
    private var last: [UInt8] = []

    init(limit: Int) {
        precondition(limit > 0, "a page has entries")
        self.limit = limit
    }

    /// Returns false if there are enough entries.
    mutating func append(_ entry: BookEntry, at key: UnsafeRawBufferPointer) -> Bool {
        guard entries.count < limit else {
            next = BookCursor(key: last)
            return false
        }
        entries.append(entry)
        precondition(entries.count <= limit, "a page has no more entries than its limit")
        unsafe last = [UInt8](key)
        return true
    }
}
