package import Caching
import Message

/// Bytes that the origin is asked for in place of what the client asked for: a hole in a stored response, or the rest of
/// a body that broke off.
package struct PartAsked: Sendable, Equatable {
    /// The response the part belongs to. Its strong validator goes along in `If-Range` (RFC 9110 §13.1.5).
    package let stored: CachedResponse
    /// Offset of the first byte.
    package let start: Int
    /// One past the last byte; nil: everything that follows.
    package let end: Int?
    /// Bytes of the whole; nil: not known.
    package let wholeLength: Int?

    package init(stored: CachedResponse, start: Int, end: Int?, wholeLength: Int?) {
        precondition(start >= 0 && end.map { $0 > start } ?? true, "a part has at least one byte")
        precondition(wholeLength.map { (end ?? start) <= $0 } ?? true, "a part lies within the whole")
        self.stored = stored
        self.start = start
        self.end = end
        self.wholeLength = wholeLength
    }

    /// The fields that ask for it.
    ///
    /// - Parameter asStored: the bytes belong to a stored response, whose variant they must be of, whatever this client accepts.
    func conditions(asStored: Bool) -> [(FieldName, [UInt8])] {
        var fields = partConditions(for: stored, from: start, to: end) ?? []
        if asStored, let coding = codingOfParts(of: stored) { fields.append(coding) }
        return fields
    }

    /// False where the origin cannot be asked for it: the response has no strong validator, or takes no ranges.
    package var canBeAsked: Bool { partConditions(for: stored, from: start, to: end) != nil }
}
