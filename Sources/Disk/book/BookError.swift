import EventLoop

/// Why the book cannot be opened, read or written.
package enum BookError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The file is not what was written. The book has to be rebuilt from the segments. Nothing was changed.
    case damaged(BookDefect)
    case unknownVersion(UInt32)
    /// The file system or LMDB failed. Nothing is lost, and a later attempt may succeed.
    case failed(errno: CInt)
    /// The changes do not fit into `sizeMax`. Nothing is lost, and removals still succeed.
    case full

    package var description: String {
        switch self {
        case .damaged(let defect): "the book is damaged: \(defect)"
        case .unknownVersion(let version): "the book has format \(version), which this version does not know"
        case .failed(let code): "the book cannot be read or written: \(systemErrorText(code))"
        case .full: "the book is full"
        }
    }
}

/// What is wrong with the book, and where.
package struct BookDefect: Error, Hashable, Sendable, CustomStringConvertible {
    /// The page in question. Nil if the defect is not in one page.
    package var page: UInt64?
    package var what: String

    package init(_ what: String, page: UInt64? = nil) {
        self.what = what
        self.page = page
    }

    package var description: String {
        guard let page else { return what }
        return "page \(page): \(what)"
    }
}
