/// Whether a stored body is the one that an index promises.
package enum PromiseVerdict: Equatable, Sendable {
    /// It is, or no index that has been read says anything of it.
    case kept
    /// The digest of the body has not been computed yet.
    case unknown
    /// The index promises another body, so clients that heed it would refuse this one.
    case broken

    /// - Parameters:
    ///   - found: the digest of the body. Nil if it is not known.
    ///   - promised: what indexes say. Several if the path of the file can be read in several ways: one of them is meant.
    package init(found: ExpectedDigest?, promised: Set<ExpectedDigest>) {
        guard let any = promised.first else {
            self = .kept
            return
        }
        // A rule has one algorithm.
        guard let found, found.algorithm == any.algorithm else {
            self = .unknown
            return
        }
        self = promised.contains(found) ? .kept : .broken
    }
}
