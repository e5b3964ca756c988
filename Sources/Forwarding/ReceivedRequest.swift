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

    /// Whether the request asks to switch to WebSocket (RFC 6455), the only protocol that is passed on. Others (h2c, TLS) would carry requests that the
    /// access rules never see.
    ///
    /// Such a request is a GET of HTTP/1.1 (RFC 6455 §4.1); `Upgrade` in HTTP/1.0 is ignored (RFC 9110 §7.8). In all others the field says nothing: it is not
    /// sent on, and a 101 is no answer to them.
    package final var isUpgrade: Bool {
        guard options.upgrade, method == .get, head.minorVersion >= 1, let value = fields.joined(.upgrade) else {
            return false
        }
        var found = false
        forEachListElement(value[...]) { element in
            if element.elementsEqual("websocket".utf8, by: { $0 | 0x20 == $1 }) { found = true }
        }
        return found
    }

    package final var fields: Fields { Fields(bytes: bytes, section: head.fields) }
    package final var method: Method { head.method }
    package final var methodText: ArraySlice<UInt8> { bytes[head.methodRange] }
}
