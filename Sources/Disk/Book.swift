/// The durable form of the index: an LMDB environment in a directory of its own.
///
/// One thread writes (`commit`); any thread reads. At most one `Book` of a directory in a process; other processes may have it
/// open with `access: .readOnly` at the same time.
package final class Book: @unchecked Sendable {
    package enum Access: Sendable {
        case readWrite
        /// Changes nothing; sees at each call what was committed last.
        case readOnly
    }

    /// Opens the book, or makes it where the directory has none; checks its structure before LMDB gets to see it (`BookCheck`).
    ///
    /// - Parameters:
    ///   - directory: made where it is not there (its parent must be).
    ///   - storeID: what the marker of the store says; a book that says otherwise is `damaged`.
    ///   - sizeMax: bytes that the book's file may take; a little more is used for removals.
    ///   - damage: called for each entry that is skipped because its bytes are not what was written; on the thread that reads.
    package static func open(
        _ directory: String, storeID: [UInt8], access: Access = .readWrite, sizeMax: UInt64, calls: any DiskCalls,
        damage: @escaping @Sendable (BookDefect) -> Void = { _ in }
    ) throws(BookError) -> Book { fatalError() }

    /// Ends it; no call may be under way, and none may follow.
    package func close() { fatalError() }

    // MARK: writing

    /// Carries out the changes in one transaction that is on the medium when this returns. Where it throws, nothing was changed.
    /// Blocks; for one thread.
    package func commit(_ changes: [BookChange]) throws(BookError) { fatalError() }

    /// Takes effect with the next commit.
    package func setSizeMax(_ bytes: UInt64) { fatalError() }

    // MARK: reading

    /// Ids below this one may have been given out already.
    package var reservedIDs: ObjectID { fatalError() }
    /// Bytes of its files.
    package var fileBytes: UInt64 { fatalError() }
    package var objectCount: Int { fatalError() }
    /// Entries skipped since it was opened.
    package var damagedCount: Int { fatalError() }

    /// Calls for all entries, in order. The visitor returns false to end it, and must not call `commit`.
    package func load(_ visit: (BookEntry) -> Bool) throws(BookError) { fatalError() }
    package func segments() throws(BookError) -> [UInt32: BookSegment] { fatalError() }
    package func entry(_ id: ObjectID, key: [UInt8]) throws(BookError) -> BookEntry? { fatalError() }
    /// All objects under a key, oldest first.
    package func entries(under key: [UInt8]) throws(BookError) -> [BookEntry] { fatalError() }
    package func renewal(of id: ObjectID) throws(BookError) -> BookRenewal? { fatalError() }
    /// At most `limit` entries in order; `next` is nil where there are no more.
    package func page(
        after cursor: BookCursor? = nil, in range: BookRange = .all, limit: Int
    ) throws(BookError) -> (entries: [BookEntry], next: BookCursor?) { fatalError() }
    /// The same for the objects that have a tag, in the order of their ids.
    package func page(
        after cursor: BookCursor? = nil, tag: [UInt8], limit: Int
    ) throws(BookError) -> (entries: [BookEntry], next: BookCursor?) { fatalError() }
}
