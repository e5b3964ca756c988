/// A look at the whole structure of a book's file, before LMDB, which trusts it, gets to see it.
package struct BookCheck: Sendable, Equatable {
    package var pageCount: UInt64
    package var objectCount: UInt64

    /// - Parameter directory: of the book. Nil: there is no book.
    package static func run(_ directory: String) throws(BookError) -> BookCheck? { fatalError() }
}
