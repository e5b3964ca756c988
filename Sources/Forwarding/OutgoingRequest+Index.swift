import Caching
package import Message

extension OutgoingRequest {
    /// Asks for an index in a form from which releases can be removed: whole, with the times of its releases, and in a coding that Larder can
    /// decode. What the client asked for is answered from it.
    ///
    /// - Parameters:
    ///   - fields: those of the client.
    ///   - hasConditions: the request has validators of a stored response. The client's own ask whether the origin's index is the one that the
    ///     client has, which is another.
    package mutating func askForIndex(_ fields: Fields, hasConditions: Bool) {
        if !hasConditions {
            remove(.ifNoneMatch)
            remove(.ifModifiedSince)
        }
        remove(.range)
        remove(.ifRange)
        // The abbreviated document about an npm package has no times.
        if let accept = fields.joined(.accept), contains(accept, "vnd.npm.install-v1") {
            set(.accept, Array("application/json".utf8))
        }
        if AcceptedCodings(fields).accepts(.gzip), fields.contains(.acceptEncoding) {
            set(.acceptEncoding, Array("gzip".utf8))
        } else {
            remove(.acceptEncoding)
        }
    }
}

private func contains(_ bytes: [UInt8], _ text: String) -> Bool {
    let text = Array(text.utf8)
    return bytes.indices.contains { bytes[$0...].starts(with: text) }
}
