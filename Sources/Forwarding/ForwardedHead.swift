import Caching
package import Framing
package import Message

/// Which fields of a received message are forwarded (RFC 9110 §7.6), and the heads of responses that are passed on.
///
/// Requests to an origin are made by `OutgoingRequest`.
package enum ForwardedHead {
    /// Whether a field is forwarded. Fields of one connection, fields that `Connection` names, and fields for proxies are not
    /// (RFC 9110 §7.6.1), nor are those of Larder itself.
    package static func isEndToEnd(_ line: FieldLine, of fields: Fields, _ options: ConnectionOptions) -> Bool {
        if notForwarded.contains(line.name) { return false }
        if line.name == .other {
            let name = fields.name(of: line)
            // It tells clients what the proxies on the way support (RFC 4559 §6).
            if isForProxies(name) { return equalsIgnoringCase(name, "Proxy-Support") }
            if LarderRemarks.isOwnField(name) { return false }
        }
        return options.names.isEmpty || !options.isNamed(fields.name(of: line))
    }

    /// Fields with a `FieldName` that are never forwarded: those of one connection (RFC 9110 §7.6.1), `Content-Length`, which is written
    /// anew, and `Larder-Policy`, which is for Larder alone.
    static let notForwarded: FieldNameSet = {
        var names: FieldNameSet = [.contentLength, .larderPolicy]
        for name in FieldName.allCases where isHopByHop(name) { names.insert(name) }
        return names
    }()

    /// Whether the name of a field without `FieldName` begins with `Proxy-`. Such a field is for the proxy that receives it, and is not
    /// forwarded. `Proxy-Status` (RFC 9209) is for clients, but has a `FieldName`.
    static func isForProxies(_ name: ArraySlice<UInt8>) -> Bool {
        let start = name.startIndex
        guard name.count > 6, name[start + 5] == 0x2D, name[start] | 0x20 == 0x70 else { return false }
        return name.prefix(5).elementsEqual("proxy".utf8) { $0 | 0x20 == $1 }
    }

    /// The fields that are forwarded.
    package static func endToEnd(_ fields: Fields, _ options: ConnectionOptions) -> Fields {
        let filter = Filter(options)
        return fields.dropping { !filter.keeps($0, of: fields, options) }
    }

    /// The trailer fields that are forwarded (RFC 9110 §6.5.1): none that frames, routes or authenticates, and none that Larder itself acts
    /// on, because a recipient that merges trailers into the head would be deceived. Returns nil if no field is left.
    ///
    /// - Parameter own: names in lower case, of fields that Larder itself sets or removes in the head, or that it examines there.
    package static func trailers(_ trailers: Fields?, without own: Set<String> = []) -> Fields? {
        guard let trailers else { return nil }
        let kept = trailers.dropping { line in
            guard line.name == .other else { return true }
            let name = trailers.name(of: line)
            return isForProxies(name) || isCredential(name) || LarderRemarks.isOwnField(name)
                || (!own.isEmpty && own.contains(String(decoding: name.map(asciiLowercased), as: UTF8.self)))
                || name.starts(with: "content-".utf8, by: { $0 | 0x20 == $1 }) && !isDigest(name)
        }
        return kept.lines.isEmpty ? nil : kept
    }

    /// Whether a client proves with the field who it is. `Signature` (RFC 9421 §4.2) and `X-Body-Signature` cover the message, and may stand in
    /// trailers.
    private static func isCredential(_ name: ArraySlice<UInt8>) -> Bool {
        SecretName.kind(name) == .credential
            && !name.suffix(9).elementsEqual("signature".utf8, by: { $0 | 0x20 == $1 })
    }

    /// Whether the name is `Content-Digest` (RFC 9530), which is meant for trailers.
    private static func isDigest(_ name: ArraySlice<UInt8>) -> Bool {
        name.elementsEqual("content-digest".utf8, by: { $0 | 0x20 == $1 })
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

    /// The end-to-end fields of a response, with `Date` if the origin sent none. What goes on to a client has a `Via` behind them (`via`).
    package static func responseFields(_ fields: Fields, _ options: ConnectionOptions, now: WallTime) -> Fields {
        var result = endToEnd(fields, options)
        if !result.contains(.date) {
            var date: [UInt8] = []
            appendHTTPDate(now, to: &date)
            result.append(.date, date)
        }
        return result
    }

    /// What Larder adds to `Via` (RFC 9110 §7.6.3).
    ///
    /// - Parameter minorVersion: that of the message that was received.
    package static func via(minorVersion: UInt8) -> StaticString { minorVersion == 0 ? "1.0 larder" : "1.1 larder" }

    /// `isEndToEnd` for all lines of one head: what is the same for each of them is looked up once.
    private struct Filter {
        private let dropped = notForwarded
        private let namesNone: Bool

        init(_ options: ConnectionOptions) { namesNone = options.names.isEmpty }

        @inline(__always)
        func keeps(_ line: FieldLine, of fields: Fields, _ options: ConnectionOptions) -> Bool {
            if dropped.contains(line.name) { return false }
            // Most lines have a known name, and most messages name no field in `Connection`.
            return namesNone && line.name != .other || isEndToEnd(line, of: fields, options)
        }
    }

    /// Appends the status line and the end-to-end fields of a response, without the empty line.
    package static func appendResponse(_ response: ReceivedResponse, to out: inout [UInt8]) {
        out.append(addingCapacity: lengthMax(response)) { appendResponse(response, to: &$0) }
    }

    static func appendResponse(_ response: ReceivedResponse, to out: inout OutputSpan<UInt8>) {
        appendStatusLine(response.status, reason: response.reason, to: &out)
        let fields = response.fields
        let filter = Filter(response.options)
        fields.appendLines(to: &out) { filter.keeps($0, of: fields, response.options) }
    }

    /// The room in bytes that `appendResponse` needs at most.
    static func lengthMax(_ response: ReceivedResponse) -> Int {
        statusLineLengthMax(reasonLength: response.reasonLength) + fieldLinesLength(response.fields)
    }

    /// The lines that a proxy adds to a final response: `Via`, and `Date` if the origin sent none (RFC 9110 §6.6.1).
    package static func appendProxyFields(
        _ response: ReceivedResponse, now: WallTime, to out: inout OutputSpan<UInt8>
    ) {
        if !response.fields.contains(.date) {
            var date: [UInt8] = []
            appendHTTPDate(now, to: &date)
            out.append("Date: ")
            out.append(date)
            out.append("\r\n")
        }
        out.append(response.minorVersion == 0 ? "Via: 1.0 larder\r\n" : "Via: 1.1 larder\r\n")
    }

    /// The room in bytes that `appendProxyFields` needs at most.
    static var proxyFieldsLengthMax: Int { 64 }

    package static func appendFraming(_ framing: Framing, to out: inout [UInt8]) {
        out.append(addingCapacity: framingLengthMax) { appendFraming(framing, to: &$0) }
    }

    package static func appendFraming(_ framing: Framing, to out: inout OutputSpan<UInt8>) {
        switch framing {
        case .none, .untilClose: break
        case .length(let count):
            out.append("Content-Length: ")
            appendDecimal(count, to: &out)
            out.append("\r\n")
        case .chunked: out.append("Transfer-Encoding: chunked\r\n")
        }
    }

    /// The room in bytes that `appendFraming` needs at most.
    package static var framingLengthMax: Int { 40 }

    /// Appends an interim response (RFC 9110 §15.2), with the empty line.
    package static func appendInterim(_ response: ReceivedResponse, to out: inout [UInt8]) {
        appendResponse(response, to: &out)
        out.append("\r\n")
    }

    /// Appends a 101, with the empty line. The connection speaks another protocol behind it (RFC 9110 §7.8).
    package static func appendSwitch(_ response: ReceivedResponse, to out: inout [UInt8]) {
        appendResponse(response, to: &out)
        out.append("Connection: Upgrade\r\n")
        appendFieldLine(.upgrade, response.fields.first(.upgrade) ?? ArraySlice("websocket".utf8), to: &out)
        out.append("Via: 1.1 larder\r\n\r\n")
    }
}
