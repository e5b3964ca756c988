/// A range of the book to be listed. Objects with addresses (`AddressTag`) are in it by these, and not by their keys.
package enum BookRange: Sendable, Hashable {
    case all
    /// Objects whose key begins like this. If the prefix ends within the host, all objects are searched.
    case keyPrefix([UInt8])
    /// Objects of one host, with any port and scheme: a name in lower case, or an address as it is written in URIs.
    case host([UInt8])
    /// Objects of the hosts below a name, at any depth, without the name itself: `*.example.org` without `*.`.
    case below([UInt8])

    /// Everything in the range has a key from `lower` on and before `upper`. Nil: up to the end.
    var bounds: (lower: [UInt8], upper: [UInt8]?) {
        switch self {
        case .all: return ([], nil)
        case .keyPrefix(let prefix): return Self.bounds(keyPrefix: prefix)
        case .host(let host):
            var lower: [UInt8] = []
            let isAddress = host.first == 0x5B || BookURI.isAddress(host[...]) == true
            BookOrder.appendHost(host[...], isAddress: isAddress, to: &lower)
            return (lower, Self.successor(of: lower))
        case .below(let domain):
            var prefix = [BookOrder.name]
            BookOrder.appendReversed(domain[...], to: &prefix)
            return (prefix + [BookOrder.hostEnd + 1], Self.successor(of: prefix))
        }
    }

    /// Whether a key within the bounds belongs to the range.
    func contains(_ key: [UInt8]) -> Bool {
        switch self {
        case .all, .host, .below: true
        case .keyPrefix(let prefix): key.starts(with: prefix)
        }
    }

    private static func bounds(keyPrefix prefix: [UInt8]) -> (lower: [UInt8], upper: [UInt8]?) {
        let isBegun = BookURI.http.starts(with: prefix) || BookURI.https.starts(with: prefix)
        let uri = BookURI(prefix)
        // More bytes could make it another host, or a spelling with another place in the order.
        if isBegun || uri.map({ !$0.hasRest }) == true { return ([], nil) }
        let lower = Array(BookOrder.orderKey(of: prefix).prefix(BookOrder.cutBytes))
        return (lower, successor(of: lower))
    }

    /// The lowest key above all keys that begin with `prefix`. Returns nil if there is none.
    static func successor(of prefix: [UInt8]) -> [UInt8]? {
        var bytes = prefix
        while let last = bytes.last {
            guard last == 0xFF else {
                bytes[bytes.count - 1] = last + 1
                return bytes
            }
            bytes.removeLast()
        }
        return nil
    }
}

/// A position in the order of the book.
package struct BookCursor: Hashable, Sendable {
    package let key: [UInt8]
    package init(key: [UInt8]) { self.key = key }
}
