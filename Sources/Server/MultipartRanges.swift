import Caching
import Framing
import Message

/// One part of an answer to several ranges: the head that goes out before it, and what of the stored body it is.
struct BodyPart {
    let head: [UInt8]
    let range: Range<Int>
}

/// The body of a 206 with several ranges: `multipart/byteranges` (RFC 9110 §14.6, RFC 2046 §5.1).
struct MultipartRanges {
    let boundary: [UInt8]
    let parts: [BodyPart]
    let closing: [UInt8]

    /// - Parameters:
    ///   - ranges: in the order asked for.
    ///   - length: of the whole, in bytes.
    ///   - contentType: of the whole; nil where it has none.
    init(_ ranges: [Range<UInt64>], length: Int, contentType: ArraySlice<UInt8>?, boundary: [UInt8]) {
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
    var length: Int { parts.reduce(closing.count) { $0 + $1.head.count + $1.range.count } }
}
