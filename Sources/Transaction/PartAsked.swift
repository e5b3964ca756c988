package import Caching
import Message

/// A range that Larder itself requests from the origin: a hole in a stored response, or the rest of a body that broke off.
package struct PartAsked: Sendable, Equatable {
    /// The response that the part belongs to. Its strong validator is sent in `If-Range` (RFC 9110 §13.1.5).
    package let stored: CachedResponse
    /// The offset of the first byte.
    package let start: Int
    /// One past the last byte. Nil: up to the end.
    package let end: Int?
    /// The length of the whole body in bytes. Nil if unknown.
    package let wholeLength: Int?

    package init(stored: CachedResponse, start: Int, end: Int?, wholeLength: Int?) {
        precondition(start >= 0 && end.map { $0 > start } ?? true, "a part has at least one byte")
        precondition(wholeLength.map { (end ?? start) <= $0 } ?? true, "a part lies within the whole")
        self.stored = stored
        self.start = start
        self.end = end
        self.wholeLength = wholeLength
    }

    /// The fields of the range request.
    ///
    /// - Parameter asStored: the bytes belong to a stored response. They must be of its variant, whatever this client accepts.
    func conditions(asStored: Bool) -> [(FieldName, [UInt8])] {
        var fields = partConditions(for: stored, from: start, to: end) ?? []
        if asStored, let coding = codingOfParts(of: stored) { fields.append(coding) }
        return fields
    }

    /// Whether the origin can be asked for the part: the response has a strong validator, and its origin accepts ranges.
    package var canBeAsked: Bool { partConditions(for: stored, from: start, to: end) != nil }
}
