import Forwarding
import Framing
import Message
import Testing

func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

/// A request as the server hands it to Forwarding.
func request(_ line: String, _ fields: String...) throws -> ReceivedRequest {
    try request(line, fields)
}

func request(_ line: String, _ fields: [String]) throws -> ReceivedRequest {
    let bytes = Array(([line] + fields + ["", ""]).joined(separator: "\r\n").utf8)
    var head = RequestHead()
    var progress = HeadProgress()
    guard try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: Limits()) else {
        throw IncompleteHead()
    }
    return ReceivedRequest(
        bytes: bytes, head: head, options: ConnectionOptions(head.fields, bytes: bytes.span),
        bodyLength: try requestBodyLength(head, bytes: bytes.span))
}

func response(_ line: String, _ fields: String...) throws -> ReceivedResponse {
    let bytes = Array(([line] + fields + ["", ""]).joined(separator: "\r\n").utf8)
    var head = ResponseHead()
    var progress = HeadProgress()
    guard try parseResponseHead(bytes.span, into: &head, progress: &progress, limits: Limits()) else {
        throw IncompleteHead()
    }
    return ReceivedResponse(
        status: head.status, minorVersion: head.minorVersion, reasonRange: head.reasonRange, head.fields, bytes: bytes,
        scheme: .http)
}

struct IncompleteHead: Error {}

extension OutgoingRequest {
    init(_ received: ReceivedRequest) { self.init(received, conditions: nil, instance: Instance(Array("id".utf8))) }

    /// The lines of the head, without the empty one.
    var lines: [String] {
        var bytes: [UInt8] = []
        serialize(into: &bytes)
        #expect(text(bytes).hasSuffix("\r\n\r\n"))
        return text(bytes.dropLast(4)).split(separator: "\r\n").map(String.init)
    }
}

/// What of a request's fields goes out, without `Host` and our `Via`.
func forwarded(_ request: ReceivedRequest) -> [String] {
    OutgoingRequest(request).lines.dropFirst(2).filter { $0 != "Via: 1.1 larder (id)" }
}
