/// A stretch of the book's order to be listed.
package enum BookRange: Sendable, Hashable {
    case all
    /// Objects whose key begins so. A prefix that ends within the host is looked for among all objects.
    case keyPrefix([UInt8])
    /// Objects of one host, whatever the port and scheme: a name in lower case, or an address as it stands in URIs.
    case host([UInt8])
    /// Objects of the hosts below a name, at any depth, not of the name itself: `*.example.org` without `*.`.
    case below([UInt8])
}
