import Caching
package import Framing
package import Message

/// What of a received message is forwarded (RFC 9110 §7.6), and the heads of responses that are passed on to a client.
///
/// Requests to an origin are `OutgoingRequest`.
package enum ForwardedHead {
    /// Whether a field is forwarded: not those that belong to one connection, those that `Connection` names, and those that
    /// are for proxies only (RFC 9110 §7.6.1).
    package static func isEndToEnd(_ line: FieldLine, of fields: Fields, _ options: ConnectionOptions) -> Bool {
        if notForwarded.contains(line.name) { return false }
        if line.name == .other, isForProxies(fields.name(of: line)) { return false }
        return options.names.isEmpty || !options.isNamed(fields.name(of: line))
    }

    /// Known fields that no message takes along: those of one connection (RFC 9110 §7.6.1), the length, which is written anew,
    /// and what a client tells Larder alone.
    static let notForwarded: FieldNameSet = {
        var names: FieldNameSet = [.contentLength, .larderPolicy]
        for name in FieldName.allCases where isHopByHop(name) { names.insert(name) }
        return names
    }()

    /// Whether an unknown field's name begins with `Proxy-`: such a field is for the proxy that reads it and is never forwarded.
    /// (`Proxy-Status`, which tells clients, has a `FieldName`: RFC 9209.)
    static func isForProxies(_ name: ArraySlice<UInt8>) -> Bool {
        let start = name.startIndex
        guard name.count > 6, name[start + 5] == 0x2D, name[start] | 0x20 == 0x70 else { return false }
        return name.prefix(5).elementsEqual("proxy".utf8) { $0 | 0x20 == $1 }
    }

    package static func endToEnd(_ fields: Fields, _ options: ConnectionOptions) -> Fields {
        fields.dropping { !isEndToEnd($0, of: fields, options) }
    }

    /// The trailer fields that are forwarded (RFC 9110 §6.5.1): none that frames, routes or authenticates, and none that Larder
    /// itself acts on. A recipient that merged such a field into the head would be deceived.
    /// - Returns: nil where no field is left.
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

    /// Whether a request asks to switch to WebSocket (RFC 6455), the only protocol whose upgrade is forwarded. The others
    /// (h2c, TLS) would carry requests that the access rules never see.
    package static func isUpgrade(_ options: ConnectionOptions, _ fields: Fields) -> Bool {
        guard options.upgrade, let value = fields.joined(.upgrade) else { return false }
        var found = false
        forEachListElement(value[...]) { element in
            if element.elementsEqual("websocket".utf8, by: { $0 | 0x20 == $1 }) { found = true }
        }
        return found
    }

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
            out.append("Date: ")
            appendHTTPDate(now, to: &out)
            out.append("\r\n")
        }
        out.append(response.minorVersion == 0 ? "Via: 1.0 larder\r\n" : "Via: 1.1 larder\r\n")
    }

    package static func appendFraming(_ framing: Framing, to out: inout [UInt8]) {
        switch framing {
        case .none, .untilClose: break
        case .length(let count): HeadWriter.append(.contentLength, Int(clamping: count), to: &out)
        case .chunked: out.append("Transfer-Encoding: chunked\r\n")
        }
    }

    /// An interim response (RFC 9110 §15.2), passed on as it came.
    package static func appendInterim(_ response: ReceivedResponse, to out: inout [UInt8]) {
        appendResponse(response, to: &out)
        out.append("\r\n")
    }

    /// A 101: from here on the connection speaks another protocol (RFC 9110 §7.8).
    package static func appendSwitch(_ response: ReceivedResponse, to out: inout [UInt8]) {
        appendResponse(response, to: &out)
        out.append("Connection: Upgrade\r\n")
        appendFieldLine(.upgrade, response.fields.first(.upgrade) ?? ArraySlice("websocket".utf8), to: &out)
        out.append("Via: 1.1 larder\r\n\r\n")
    }
}
