/// An address by which listings find an object, in place of its key, kept as one of the tags of the object: a zero, and the order key of
/// the address (`BookOrder`). A tag of a response never has a zero.
///
/// So the addresses go where the tags go, through records, renewed heads and archives, in the same format; and the addresses of all objects are
/// together in the book, in its order of hosts and paths.
package enum AddressTag {
    private static let mark: UInt8 = 0
    private static let tagBytesMax = 255
    /// Where the addresses are in the database `tags`.
    private static let first: [UInt8] = [mark]
    private static let end: [UInt8] = [mark + 1]

    /// - Parameter address: a normalised URI of at most 249 bytes. A longer one is cut.
    package static func tag(of address: [UInt8]) -> [UInt8] {
        Array(([mark] + BookOrder.orderKey(of: address)).prefix(tagBytesMax))
    }

    package static func isOne(_ tag: [UInt8]) -> Bool { tag.first == mark }

    /// Returns nil for the other tags.
    package static func address(of tag: [UInt8]) -> [UInt8]? {
        guard isOne(tag) else { return nil }
        return unsafe tag.withUnsafeBytes { unsafe BookOrder.key(ofOrder: UnsafeRawBufferPointer(rebasing: $0[1...])) }
    }

    /// Whether a position in a listing is among the addresses, which come behind the objects. No key of an object begins with a zero.
    static func isCursor(_ cursor: BookCursor) -> Bool { cursor.key.first == mark }

    /// The addresses in a range, as they stand in the book.
    struct Range {
        /// Their tags are from `lower` on and before `upper`.
        let lower, upper: [UInt8]
        /// Nil: all within the bounds are in the range.
        private let prefix: [UInt8]?

        /// Long addresses are cut, so a long prefix selects all addresses that have its beginning.
        init(_ range: BookRange) {
            var range = range
            prefix =
                if case .keyPrefix(let bytes) = range { Array(bytes.prefix(AddressTag.comparedBytesMax)) } else { nil }
            if let prefix { range = .keyPrefix(prefix) }
            let (lower, upper) = range.bounds
            self.lower = first + lower
            self.upper = upper.map { first + $0 } ?? end
        }

        func contains(_ tag: [UInt8]) -> Bool {
            guard isOne(tag), bookCompare(tag, lower) >= 0, bookCompare(tag, upper) < 0 else { return false }
            return prefix.map { address(of: tag)?.starts(with: $0) ?? false } ?? true
        }
    }

    /// Every cut address has more bytes, and so has its order key.
    private static let comparedBytesMax = 200
}
