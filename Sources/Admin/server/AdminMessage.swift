/// One request to the admin server as the router sees it, without socket and buffers.
package struct AdminRequest: Sendable, Equatable {
    /// How the client reached the server, which decides what it must prove.
    package enum Door: Sendable, Equatable {
        /// The Unix socket: everybody who can open the file can do everything.
        case unixSocket
        /// The TCP port: anybody, including a web page in a browser.
        case tcp
    }

    package var door: Door
    /// As the client sent it: methods are case-sensitive (RFC 9110 §9.1).
    package var method: String
    /// The path without the query.
    package var path: String
    /// The text behind the "?" as the client sent it; empty if there is none.
    package var query: String
    /// Whether the client speaks HTTP/1.1, so that a body can be sent in chunks.
    package var acceptsChunks: Bool
    /// The value of `Host` without surrounding white space; nil if the field is missing.
    package var host: String?
    package var authorization: [UInt8]?
    package var contentType: String?
    package var acceptsGzip: Bool
    package var body: [UInt8]

    package init(
        door: Door, method: String, path: String, query: String = "", acceptsChunks: Bool = true, host: String? = nil,
        authorization: [UInt8]? = nil,
        contentType: String? = nil, acceptsGzip: Bool = false, body: [UInt8] = []
    ) {
        self.door = door
        self.method = method
        self.path = path
        self.query = query
        self.acceptsChunks = acceptsChunks
        self.host = host
        self.authorization = authorization
        self.contentType = contentType
        self.acceptsGzip = acceptsGzip
        self.body = body
    }
}

/// A body that is too long to be held whole, and is made while it is sent.
package final class BodyPieces: Sendable {
    /// Returns the next piece, which can be empty, and nil at the end. Called on the control thread, once in a turn of its loop.
    package let next: @Sendable () -> [UInt8]?
    package init(_ next: @escaping @Sendable () -> [UInt8]?) { self.next = next }
}

/// The answer of the router. Length, date and connection fields are added when it is sent.
package struct AdminResponse: Sendable {
    package var status: UInt16
    package var contentType: String
    /// Further fields, in order.
    package var fields: [Field]
    package var body: [UInt8]
    /// A body in pieces, instead of `body`. Its length is not known before its end.
    package var pieces: BodyPieces?

    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package init(status: UInt16, contentType: String, fields: [Field] = [], body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.fields = fields
        self.body = body
    }

    static func json(_ body: [UInt8], status: UInt16 = 200) -> AdminResponse {
        AdminResponse(status: status, contentType: "application/json", body: body + [0x0A])
    }

    static func text(_ text: String, status: UInt16 = 200) -> AdminResponse {
        AdminResponse(status: status, contentType: "text/plain; charset=utf-8", body: Array("\(text)\n".utf8))
    }

    /// An error as `{"error": …}`: every refusal has this form.
    static func problem(_ status: UInt16, _ message: String, fields: [Field] = []) -> AdminResponse {
        var writer = JSONWriter()
        writer.object { $0.member("error", message) }
        var response = json(writer.bytes, status: status)
        response.fields = fields
        return response
    }
}
