import Caching
package import Framing
package import Message

/// The heads that leave the house: end-to-end fields as they came, hop-by-hop fields replaced by ours
/// (RFC 9110 §7.6, RFC 9112 §9.6).
package enum ForwardedHead {
    /// Fields that belong to one connection, those that `Connection` names, and those that are for proxies only.
    package static func isEndToEnd(_ line: FieldLine, of fields: Fields, _ options: ConnectionOptions) -> Bool {
        switch line.name {
        case .contentLength, .larderPolicy: return false
        case .other: if isForProxies(fields.name(of: line)) { return false }
        default: if isHopByHop(line.name) { return false }
        }
        return options.names.isEmpty || !options.isNamed(fields.name(of: line))
    }

    /// `Proxy-…` of any kind is for the proxy that reads it and never leaves; `Proxy-Status` tells clients (RFC 9209).
    private static func isForProxies(_ name: ArraySlice<UInt8>) -> Bool {
        let start = name.startIndex
        guard name.count > 6, name[start + 5] == 0x2D, name[start] | 0x20 == 0x70 else { return false }
        return name.prefix(5).elementsEqual("proxy".utf8) { $0 | 0x20 == $1 }
    }

    package static func endToEnd(_ fields: Fields, _ options: ConnectionOptions) -> Fields {
        fields.dropping { !isEndToEnd($0, of: fields, options) }
    }

    /// What of a trailer section goes on (RFC 9110 §6.5.1): no field that frames, routes, authenticates, or that we act on
    /// ourselves; whoever merged it into the head would be deceived.
    package static func trailers(_ trailers: Fields?) -> Fields? {
        guard let trailers else { return nil }
        let kept = trailers.dropping { line in
            guard line.name == .other else { return true }
            let name = trailers.name(of: line)
            return isForProxies(name) || name.starts(with: "content-".utf8, by: { $0 | 0x20 == $1 }) && !isDigest(name)
        }
        return kept.lines.isEmpty ? nil : kept
    }

    /// `Content-Digest` (RFC 9530) is meant for trailers.
    private static func isDigest(_ name: ArraySlice<UInt8>) -> Bool {
        name.elementsEqual("content-digest".utf8, by: { $0 | 0x20 == $1 })
    }

    // MARK: to the origin

    /// - Parameters:
    ///   - conditions: validators of a stored response; they take the place of the client's own conditions.
    ///   - instance: what tells this Larder from others in `Via`, to see a loop (RFC 9110 §7.6.3).
    package static func appendRequest(
        _ request: ReceivedRequest, conditions: [(FieldName, [UInt8])], instance: [UInt8], to out: inout [UInt8]
    ) {
        let head = request.head
        out.append(contentsOf: request.methodText)
        out.append(0x20)
        appendOriginForm(request, to: &out)
        HeadWriter.append(" HTTP/1.1\r\nHost: ", to: &out)
        out.append(contentsOf: request.bytes[head.target.hostRange])
        if head.target.port != head.target.scheme.defaultPort {
            out.append(0x3A)
            HeadWriter.append(decimal: Int(head.target.port), to: &out)
        }
        HeadWriter.append("\r\n", to: &out)
        let fields = request.fields
        appendFieldLines(fields, to: &out) { line in
            switch line.name {
            case .host, .via, .maxForwards: false
            case .expect where head.minorVersion == 0: false
            case let name where !conditions.isEmpty && replacedByConditionalFields.contains(name): false
            default: isEndToEnd(line, of: fields, request.options)
            }
        }
        for (name, value) in conditions { appendFieldLine(name, value, to: &out) }
        appendMaxForwards(fields, request.method, to: &out)
        appendVia(fields, minorVersion: head.minorVersion, instance: instance, to: &out)
        appendUpgrade(request, fields, to: &out)
        switch request.bodyLength {
        case .length(let count): HeadWriter.append(.contentLength, Int(clamping: count), to: &out)
        case .chunked: HeadWriter.append(.transferEncoding, "chunked", to: &out)
        case .none, .untilClose, .tunnel: break
        }
        HeadWriter.append("\r\n", to: &out)
    }

    private static func appendOriginForm(_ request: ReceivedRequest, to out: inout [UInt8]) {
        let path = request.bytes[request.head.target.pathRange]
        if path.isEmpty {
            // An absolute-form target without a path means "*" for OPTIONS (RFC 9112 §3.2.4).
            out.append(request.method == .options ? 0x2A : 0x2F)
        } else {
            if path.first == 0x3F { out.append(0x2F) }
            out.append(contentsOf: path)
        }
    }

    /// `Max-Forwards` counts down for TRACE and OPTIONS (RFC 9110 §7.6.2); elsewhere it passes unchanged.
    private static func appendMaxForwards(_ fields: Fields, _ method: Method, to out: inout [UInt8]) {
        guard let value = fields.first(.maxForwards) else { return }
        guard method == .trace || method == .options, let count = parseDecimal(value), count > 0 else {
            return appendFieldLine(.maxForwards, value, to: &out)
        }
        HeadWriter.append(.maxForwards, Int(clamping: count - 1), to: &out)
    }

    private static func appendVia(_ fields: Fields, minorVersion: UInt8, instance: [UInt8], to out: inout [UInt8]) {
        for line in fields.lines where line.name == .via {
            appendFieldLine(fields.name(of: line), fields.value(of: line), to: &out)
        }
        HeadWriter.append(minorVersion == 0 ? "Via: 1.0 larder (" : "Via: 1.1 larder (", to: &out)
        out.append(contentsOf: instance)
        HeadWriter.append(")\r\n", to: &out)
    }

    private static func appendUpgrade(_ request: ReceivedRequest, _ fields: Fields, to out: inout [UInt8]) {
        guard isUpgrade(request.options, fields) else { return }
        HeadWriter.append("Connection: Upgrade\r\nUpgrade: websocket\r\n", to: &out)
    }

    /// Of the protocols that a connection can switch to, only WebSocket is passed on (RFC 6455): the others (h2c, TLS)
    /// would take the connection out of the sight of the rules.
    package static func isUpgrade(_ options: ConnectionOptions, _ fields: Fields) -> Bool {
        guard options.upgrade, let value = fields.joined(.upgrade) else { return false }
        var found = false
        forEachListElement(value[...]) { element in
            if element.elementsEqual("websocket".utf8, by: { $0 | 0x20 == $1 }) { found = true }
        }
        return found
    }

    // MARK: to the client

    /// How the body is framed towards the client.
    package enum Framing: Equatable { case none, length(UInt64), chunked, untilClose }

    package static func framing(of length: BodyLength, minorVersion: UInt8) -> Framing {
        switch length {
        case .none, .tunnel: .none
        case .length(let count): .length(count)
        case .chunked, .untilClose: minorVersion == 0 ? .untilClose : .chunked
        }
    }

    /// The end-to-end fields of a response, with what a proxy adds: `Via`, and `Date` where the origin sent none.
    package static func responseFields(
        _ fields: Fields, _ options: ConnectionOptions, minorVersion: UInt8, now: WallTime
    )
        -> Fields
    {
        var result = endToEnd(fields, options)
        if !result.contains(.date) {
            var date: [UInt8] = []
            appendHTTPDate(now, to: &date)
            result.append(.date, date)
        }
        result.append(.via, literal: minorVersion == 0 ? "1.0 larder" : "1.1 larder")
        return result
    }

    /// Start line and end-to-end fields of a response that is passed on, without the final empty line.
    package static func appendResponse(_ response: ReceivedResponse, to out: inout [UInt8]) {
        appendStatusLine(response.status, reason: response.reason, to: &out)
        let fields = response.fields
        appendFieldLines(fields, to: &out) { isEndToEnd($0, of: fields, response.options) }
    }

    /// What a proxy adds to a final response: `Via`, and `Date` where the origin sent none (RFC 9110 §6.6.1).
    package static func appendProxyFields(_ response: ReceivedResponse, now: WallTime, to out: inout [UInt8]) {
        if !response.fields.contains(.date) {
            var date: [UInt8] = []
            appendHTTPDate(now, to: &date)
            appendFieldLine(.date, date, to: &out)
        }
        HeadWriter.append(response.minorVersion == 0 ? "Via: 1.0 larder\r\n" : "Via: 1.1 larder\r\n", to: &out)
    }

    package static func appendFraming(_ framing: Framing, to out: inout [UInt8]) {
        switch framing {
        case .none, .untilClose: break
        case .length(let count): HeadWriter.append(.contentLength, Int(clamping: count), to: &out)
        case .chunked: HeadWriter.append(.transferEncoding, "chunked", to: &out)
        }
    }
}
