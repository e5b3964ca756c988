import Message

/// In which form a client gets a stored response.
package enum CodingChoice: Sendable, Equatable, CaseIterable {
    case asStored
    /// Stored as gzip, inflated while it goes out.
    case inflated
    /// Stored as it is, compressed while it goes out.
    case gzipped
    /// The copy that was compressed in the background. Where there is none yet: as stored, and now is the time to make it.
    case gzippedCopy

    /// The content differs from what is stored: `codedFields` are its head.
    package var isTransformed: Bool { self != .asStored }
}

/// Shorter content is not compressed: less than fits into one packet gains nothing.
package let compressedLengthMin: UInt64 = 1024

/// Which form this client gets (RFC 9110 §12.5.3): what is stored, unless it likes the other form better.
///
/// Ranges are of the stored form (§14.2): a request for one gets that where it accepts it, and otherwise the whole in the
/// other form, for which `Range` is to be ignored. A HEAD is answered as the GET would be (§9.3.2).
/// - Parameters:
///   - length: of the stored content, in bytes; nil: not known yet.
///   - lengthMin: below that nothing is compressed.
package func chooseCoding(
    of stored: CodingTerms, length: UInt64?, for accepted: AcceptedCodings, _ request: CacheRequest,
    compression: CompressionUse, lengthMin: UInt64 = compressedLengthMin
) -> CodingChoice {
    guard request.method == .get || request.method == .head, !request.directives.noTransform else { return .asStored }
    let (gzip, identity) = (accepted.weight(of: .gzip), accepted.weight(of: .identity))
    if stored.isInflatable {
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
