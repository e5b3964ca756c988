/// One request to the admin server, as its router sees it: no socket, no buffer.
package struct AdminRequest: Sendable, Equatable {
    /// Where the connection came in; decides what is asked of a caller.
    package enum Door: Sendable, Equatable {
        /// Whoever may open the socket file may do everything.
        case unixSocket
        /// Anybody who reaches the port, a web page in a browser among them.
        case tcp
    }

    package var door: Door
    /// The token as sent; methods are case-sensitive (RFC 9110 §9.1).
    package var method: String
    /// Path without query.
    package var path: String
    /// What stands behind the "?", as it came; empty where nothing does.
    package var query: String
    /// HTTP/1.1: a body may be sent in chunks.
    package var acceptsChunks: Bool
    /// The value of `Host`, without white space around; nil where there is none.
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

/// A body too long to be held whole: made while it is sent.
package final class BodyPieces: Sendable {
    /// The next piece, which may be empty; nil at the end. Called on the control thread, one piece per turn of its loop.
    package let next: @Sendable () -> [UInt8]?
    package init(_ next: @escaping @Sendable () -> [UInt8]?) { self.next = next }
}

/// What the router answers. Length, date and connection fields are added where it is sent.
package struct AdminResponse: Sendable {
    package var status: UInt16
    package var contentType: String
    /// Further fields, in order.
    package var fields: [Field]
    package var body: [UInt8]
    /// A body that comes piece by piece, in place of `body`; its length is not known before its end.
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

    /// `{"error": …}`: every refusal says why in the same shape.
    static func problem(_ status: UInt16, _ message: String, fields: [Field] = []) -> AdminResponse {
        var writer = JSONWriter()
        writer.object { $0.member("error", message) }
        var response = json(writer.bytes, status: status)
        response.fields = fields
        return response
    }
}
