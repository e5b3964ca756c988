package import Framing
package import Message

/// The head of a request as received from a client, with the framing of its body.
///
/// A class: what waits for something, and what goes out, share one. The server adds to it, in a subclass, what it finds out about the
/// request.
open class ReceivedRequest {
    /// The bytes that the offsets of `head` refer to.
    package final let bytes: [UInt8]
    package final let head: RequestHead
    package final let options: ConnectionOptions
    package final let bodyLength: BodyLength
    /// Whether content may follow the head.
    package final let hasBody: Bool

    package init(bytes: [UInt8], head: RequestHead, options: ConnectionOptions, bodyLength: BodyLength) {
        self.bytes = bytes
        self.head = head
        self.options = options
        self.bodyLength = bodyLength
        hasBody =
            switch bodyLength {
            case .none, .length(0), .tunnel: false
            case .length, .chunked, .untilClose: true
            }
    }

    package final var fields: Fields { Fields(bytes: bytes, section: head.fields) }
    package final var method: Method { head.method }
    package final var methodText: ArraySlice<UInt8> { bytes[head.methodRange] }
}
