/// Why the book could not be opened, read or written.
package enum BookError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What stands in the file is not what was written: it is to be made anew from the segments. Nothing was changed.
    case damaged(BookDefect)
    case unknownVersion(UInt32)
    /// The file system or LMDB could not; nothing is lost, and a later attempt may succeed.
    case failed(errno: CInt)
    /// There is no room for the changes within `sizeMax`; nothing is lost. Removals still go through.
    case full

    package var description: String {
        switch self {
        case .damaged(let defect): "the book is damaged: \(defect)"
        case .unknownVersion(let version): "the book has format \(version), which this version does not know"
        case .failed(let code): "the book can not be read or written: errno \(code)"
        case .full: "the book is full"
        }
    }
}

/// What is wrong with the book, and where.
package struct BookDefect: Error, Hashable, Sendable, CustomStringConvertible {
    /// The page it was found in; nil where it is not a matter of one page.
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
