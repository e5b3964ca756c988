/// A head as a peer saw it: the start line and the field lines, nothing interpreted, nothing lost.
struct SeenHead: Sendable, CustomStringConvertible {
    var startLine: String
    var lines: [String]

    /// The values of a field, in their order.
    func all(_ name: String) -> [String] {
        lines.compactMap { line in
            guard let colon = line.firstIndex(of: ":"), line[..<colon].lowercased() == name.lowercased() else {
                return nil
            }
            return String(line[line.index(after: colon)...].drop { $0 == " " })
        }
    }

    subscript(_ name: String) -> String? { all(name).isEmpty ? nil : all(name).joined(separator: ", ") }

    var names: [String] { lines.map { String($0.prefix { $0 != ":" }) } }
    var description: String { ([startLine] + lines).joined(separator: "\n") }
}

/// A response, or a request, as it arrived.
struct SeenMessage: Sendable, CustomStringConvertible {
    var head: SeenHead
    var body: [UInt8] = []
    var trailers: [String] = []
    /// The body ended where its framing said; not by a connection that broke off.
    var isWhole = true

    var status: Int { Int(head.startLine.split(separator: " ").dropFirst().first ?? "") ?? -1 }
    var text: String { String(decoding: body, as: UTF8.self) }
    subscript(_ name: String) -> String? { head[name] }
    var cacheStatus: String { head["Cache-Status"] ?? "none" }
    /// What an error page of Larder says of the request, in whichever form.
    var requestID: String? {
        for mark in ["Request ID: ", "\"request_id\":\""] {
            if let place = text.range(of: mark) { return String(text[place.upperBound...].prefix(16)) }
        }
        return nil
    }
    var description: String { "\(head)\n\n\(text.prefix(200))" }
}

/// Takes messages from a wire. A plain reader of its own, so that no mistake of Larder's parser hides itself.
final class HTTPReader {
    let wire: Wire
    private var buffer: [UInt8] = []
    private var start = 0
    private(set) var isAtEnd = false

    init(_ wire: Wire) { self.wire = wire }

    /// - Returns: false at the end of the stream.
    private func fill() throws -> Bool {
        if start > 1 << 20 || start == buffer.count {
            buffer.removeFirst(start)
            start = 0
        }
        let bytes = try wire.read()
        if bytes.isEmpty { isAtEnd = true }
        buffer += bytes
        return !bytes.isEmpty
    }

    /// A line without its CRLF; nil at the end of the stream.
    func line() throws -> String? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: 0x0A) {
                guard end > start, buffer[end - 1] == 0x0D else { throw WireError("a line ends without CR") }
                defer { start = end + 1 }
                return String(decoding: buffer[start..<end - 1], as: UTF8.self)
            }
            let pending = buffer.count - start
            guard try fill() else {
                guard buffer.count == start else {
                    throw WireError(
                        "the stream ends within a line: \(String(decoding: buffer[start...], as: UTF8.self))")
                }
                return nil
            }
            searched = start + pending
        }
    }

    func head() throws -> SeenHead? {
        guard let startLine = try line() else { return nil }
        var lines: [String] = []
        while let line = try line() {
            if line.isEmpty { return SeenHead(startLine: startLine, lines: lines) }
            lines.append(line)
        }
        throw WireError("the stream ends within a head: \(startLine) \(lines)")
    }

    /// Exactly so many bytes; fewer only where the stream ends.
    func bytes(_ count: Int) throws -> [UInt8] {
        while buffer.count - start < count, try fill() {}
        let end = min(buffer.count, start + count)
        defer { start = end }
        return Array(buffer[start..<end])
    }

    func untilEnd() throws -> [UInt8] {
        while try fill() {}
        defer { start = buffer.count }
        return Array(buffer[start...])
    }

    /// - Parameter hasBody: false for answers to HEAD, 1xx, 204, 304.
    func body(of message: inout SeenMessage, untilClose: Bool, hasBody: Bool = true) throws {
        guard hasBody else { return }
        if message["Transfer-Encoding"]?.lowercased() == "chunked" { return try chunkedBody(of: &message) }
        if let length = message["Content-Length"] {
            guard let count = Int(length) else { throw WireError("Content-Length: \(length)") }
            message.body = try bytes(count)
            message.isWhole = message.body.count == count
        } else if untilClose {
            message.body = try untilEnd()
        }
    }

    private func chunkedBody(of message: inout SeenMessage) throws {
        while true {
            guard let line = try line() else {
                message.isWhole = false
                return
            }
            guard let count = Int(line.prefix { $0 != ";" }, radix: 16) else { throw WireError("chunk size: \(line)") }
            if count == 0 { break }
            let chunk = try bytes(count)
            message.body += chunk
            guard chunk.count == count, try bytes(2) == [13, 10] else {
                message.isWhole = false
                return
            }
        }
        while let line = try line(), !line.isEmpty { message.trailers.append(line) }
    }
}

extension HTTPReader {
    /// What is there now, or the next that comes; empty at the end.
    func some() throws -> [UInt8] {
        if start == buffer.count, try !fill() { return [] }
        defer { start = buffer.count }
        return Array(buffer[start...])
    }
}
