import Framing
import Message

/// One part of an answer to several ranges: the head that goes out before it, and what of the stored body it is.
package struct BodyPart {
    package let head: [UInt8]
    package let range: Range<Int>
}

/// The body of a 206 with several ranges: `multipart/byteranges` (RFC 9110 §14.6, RFC 2046 §5.1).
package struct MultipartRanges {
    package let boundary: [UInt8]
    package let parts: [BodyPart]
    package let closing: [UInt8]

    /// - Parameters:
    ///   - ranges: in the order asked for.
    ///   - length: of the whole, in bytes.
    ///   - contentType: of the whole; nil where it has none.
    package init(_ ranges: [Range<UInt64>], length: Int, contentType: ArraySlice<UInt8>?, boundary: [UInt8]) {
        self.boundary = boundary
        parts = ranges.enumerated().map { index, range in
            var head: [UInt8] = []
            HeadWriter.append(index == 0 ? "--" : "\r\n--", to: &head)
            head += boundary
            HeadWriter.append("\r\n", to: &head)
            if let contentType { appendFieldLine(.contentType, contentType, to: &head) }
            let range = Int(range.lowerBound)..<Int(range.upperBound)
            HeadWriter.appendContentRange(range, of: length, to: &head)
            HeadWriter.append("\r\n", to: &head)
            return BodyPart(head: head, range: range)
        }
        var closing: [UInt8] = []
        HeadWriter.append("\r\n--", to: &closing)
        closing += boundary
        HeadWriter.append("--\r\n", to: &closing)
        self.closing = closing
    }

    /// Of the whole body, in bytes.
    package var length: Int { parts.reduce(closing.count) { $0 + $1.head.count + $1.range.count } }
}
