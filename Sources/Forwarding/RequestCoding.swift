package import Caching
import Framing
import Message

/// Whether the content of a request may be sent with `Content-Encoding: gzip`, which its client did not choose (RFC 9110 §8.4).
///
/// Not if the client forbids it (§7.7), if the content is in a coding already or is a part (§14.5), if a field says what its bytes are, or if
/// gzip would not make it smaller.
package func mayEncodeContent(of request: ReceivedRequest, _ directives: RequestDirectives) -> Bool {
    switch request.bodyLength {
    case .chunked: break
    case .length(let count): guard count >= encodedContentBytesMin else { return false }
    case .none, .untilClose, .tunnel: return false
    }
    let fields = request.fields
    guard !directives.noTransform, !fields.contains(.contentEncoding), !fields.contains(.contentRange),
        let type = fields.first(.contentType), isCompressibleType(type)
    else { return false }
    return !fields.lines.contains { line in
        line.name == .other && coveringFields.contains { equalsIgnoringCase(fields.name(of: line), $0) }
    }
}

/// Less is not worth its coding.
private let encodedContentBytesMin: UInt64 = 512

/// Digests and signatures of the content as it is (RFC 9530, RFC 3230, RFC 1864, RFC 9421, AWS Signature Version 4).
private let coveringFields: [StaticString] = [
    "Content-Digest", "Repr-Digest", "Digest", "Content-MD5", "Signature-Input", "X-Amz-Content-Sha256",
]
