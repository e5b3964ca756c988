import Framing
import Message

/// One part of an answer with several ranges: its head, and its range of the stored body.
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
    ///   - ranges: the ranges in the order of the request.
    ///   - length: the length of the whole body in bytes.
    ///   - contentType: the type of the whole body; nil if it has none.
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

    /// The length of this multipart body in bytes.
    package var length: Int { parts.reduce(closing.count) { $0 + $1.head.count + $1.range.count } }
}
