import Message

/// The form in which a client gets a stored response.
package enum CodingChoice: Sendable, Equatable, CaseIterable {
    case asStored
    /// Stored as gzip, and decompressed while it is sent.
    case inflated
    /// Stored without a coding, and compressed while it is sent.
    case gzipped
    /// The copy that was compressed in the background. If there is none yet, the response is sent as it is stored and the copy is made.
    case gzippedCopy

    /// The content differs from the stored one. `codedFields` makes the head.
    package var isTransformed: Bool { self != .asStored }
}

/// Content that is shorter than this is not compressed: it fits into one packet anyway.
package let compressedLengthMin: UInt64 = 1024

/// Chooses the form for a client (RFC 9110 §12.5.3): the stored one, unless the client prefers the other.
///
/// Ranges are ranges of the stored form (§14.2). A request for a range gets the stored form if it accepts that. Otherwise it gets the
/// whole in the other form, and `Range` is ignored. A HEAD is answered as the GET would be (§9.3.2).
/// - Parameters:
///   - length: the length of the stored content in bytes. Nil if it is not known yet.
///   - lengthMin: shorter content is not compressed.
package func chooseCoding(
    of stored: CodingTerms, length: UInt64?, for accepted: AcceptedCodings, _ request: CacheRequest,
    compression: CompressionUse, lengthMin: UInt64 = compressedLengthMin
) -> CodingChoice {
    guard request.method == .get || request.method == .head, !request.directives.noTransform else { return .asStored }
    let (gzip, identity) = (accepted.weight(of: .gzip), accepted.weight(of: .identity))
    if stored.isInflatable {
        // A client that names no coding takes what there is (RFC 9110 §12.5.3). Those who read texts mean that they cannot decode; of a file, the
        // digest is that of its bytes as they were sent.
        if !stored.isText, accepted.namesNone { return .asStored }
        let wantsInflated = request.hasRange ? gzip == 0 && identity > 0 : identity > gzip
        return wantsInflated ? .inflated : .asStored
    }
    guard stored.isCompressible, gzip > identity, !request.hasRange, length ?? .max >= lengthMin else {
        return .asStored
    }
    switch compression {
    case .no: return .asStored
    case .onTheFly: return .gzipped
    case .once: return .gzippedCopy
    }
}
