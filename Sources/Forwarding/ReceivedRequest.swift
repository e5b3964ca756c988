package import Framing
package import Message

/// The head of a request as received from a client, with the framing of its body.
///
/// A class: what waits for something, and what goes out, share one.
package final class ReceivedRequest: Sendable {
    /// The bytes that the offsets of `head` refer to.
    package let bytes: [UInt8]
    package let head: RequestHead
    package let options: ConnectionOptions
    package let bodyLength: BodyLength
    /// Whether content may follow the head.
    package let hasBody: Bool

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

    package var fields: Fields { Fields(bytes: bytes, section: head.fields) }
    package var method: Method { head.method }
    package var methodText: ArraySlice<UInt8> { bytes[head.methodRange] }
}
