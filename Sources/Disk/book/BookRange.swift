/// A stretch of the book's order to be listed.
package enum BookRange: Sendable, Hashable {
    case all
    /// Objects whose key begins so. A prefix that ends within the host is looked for among all objects.
    case keyPrefix([UInt8])
    /// Objects of one host, whatever the port and scheme: a name in lower case, or an address as it stands in URIs.
    case host([UInt8])
    /// Objects of the hosts below a name, at any depth, not of the name itself: `*.example.org` without `*.`.
    case below([UInt8])

    /// The keys of the book from `lower` on and before `upper` (nil: to the end) have all that belongs to it.
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

    /// What of the keys within the bounds belongs to it.
    func contains(_ key: [UInt8]) -> Bool {
        switch self {
        case .all, .host, .below: true
        case .keyPrefix(let prefix): key.starts(with: prefix)
        }
    }

    private static func bounds(keyPrefix prefix: [UInt8]) -> (lower: [UInt8], upper: [UInt8]?) {
        let isBegun = BookURI.http.starts(with: prefix) || BookURI.https.starts(with: prefix)
        let uri = BookURI(prefix)
        // More bytes could make it another host, or a spelling that stands elsewhere.
        if isBegun || uri.map({ !$0.hasRest }) == true { return ([], nil) }
        let lower = Array(BookOrder.orderKey(of: prefix).prefix(BookOrder.cutBytes))
        return (lower, successor(of: lower))
    }

    /// The lowest bytes above all that begin with `prefix`; nil where there are none.
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

/// A place in the book's order.
package struct BookCursor: Hashable, Sendable {
    package let key: [UInt8]
    package init(key: [UInt8]) { self.key = key }
}
