import Foundation

/// A client of the proxy: raw bytes in, parsed responses out.
final class ScriptedClient {
    let wire: Wire
    let reader: HTTPReader
    private let origin: ScriptedOrigin

    init(port: UInt16, origin: ScriptedOrigin, receiveBuffer: CInt? = nil, from source: UInt32? = nil) throws {
        wire = try Wire.connect(port: port, receiveBuffer: receiveBuffer, from: source)
        reader = HTTPReader(wire)
        self.origin = origin
    }

    func send(_ text: String) throws { try wire.write(Array(text.utf8)) }

    /// A request for a path of the scripted origin, or for a whole URI.
    func ask(_ method: String, _ target: String, _ fields: [String] = [], body: String? = nil, version: String = "1.1")
        throws
    {
        let isWhole = target.contains("://") || method == "CONNECT"
        var lines = fields
        if !fields.contains(where: { $0.lowercased().hasPrefix("host:") }) && version == "1.1" {
            let authority = isWhole ? ScriptedClient.authority(target) : origin.authority
            lines.insert("Host: \(authority)", at: 0)
        }
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        try send(
            "\(method) \(isWhole ? target : origin.url(target)) HTTP/\(version)\r\n"
                + lines.map { "\($0)\r\n" }.joined() + "\r\n" + (body ?? ""))
    }

    private static func authority(_ target: String) -> String {
        guard let scheme = target.range(of: "://") else { return target }
        return String(target[scheme.upperBound...].prefix { $0 != "/" })
    }

    /// The next response, interim ones too. A body that broke off is no error here: see `isWhole`.
    func response(to method: String = "GET") throws -> SeenMessage {
        var message = SeenMessage(head: try head())
        let hasBody = method != "HEAD" && message.status >= 200 && ![204, 304].contains(message.status)
        let isTunnel = method == "CONNECT" && message.status == 200
        try reader.body(of: &message, untilClose: true, hasBody: hasBody && !isTunnel)
        return message
    }

    func head() throws -> SeenHead {
        guard let head = try reader.head() else { throw WireError("client: the proxy closed without an answer") }
        return head
    }

    @discardableResult func get(_ target: String, _ fields: String...) throws -> SeenMessage {
        try ask("GET", target, fields)
        return try response()
    }

    @discardableResult
    func request(_ method: String, _ target: String, _ fields: String..., body: String? = nil) throws -> SeenMessage {
        try ask(method, target, fields, body: body)
        return try response(to: method)
    }

    /// Waits until the proxy has closed; bytes before that are an error.
    func expectClosed() throws {
        let rest: [UInt8]
        do { rest = try reader.untilEnd() } catch {
            guard "\(error)".contains("reset") else { throw error }
            return
        }
        guard rest.isEmpty else { throw WireError("client: more came: \(String(decoding: rest, as: UTF8.self))") }
    }
}
