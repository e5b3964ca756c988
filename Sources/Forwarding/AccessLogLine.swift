import JSON
package import Message

/// Writes lines of the access log: one JSON object for each request.
///
/// Bytes that a client chose are escaped, so that no client can forge a line or a member.
package struct AccessLogLine: ~Copyable {
    /// What the line says about one request.
    package struct Facts: ~Copyable {
        /// Microseconds since 1970.
        package var startedAt: Int64 = 0
        /// How long the request took, by the clock that never goes back.
        package var microseconds: UInt64 = 0
        package var id = RequestID(number: 0)
        /// That of the CONNECT in whose tunnel the request came. Nil outside of opened tunnels.
        package var tunnel: RequestID?
        /// Nil for a client of a Unix socket.
        package var client: IPAddress?
        package var user: String?
        /// The name of the listener, where one is written in the configuration: it has nothing to escape.
        package var listener: String?
        /// Whether the client asked with SOCKS5. Nothing is said of HTTP/1.
        package var isSocks = false
        package var status: UInt16 = 0
        package var bodyBytes = 0
        package var outcome: StaticString = "none"
        /// Nil for most requests.
        package var particulars: Particulars?

        package init() {}
    }

    /// What most lines do not say.
    package struct Particulars {
        /// The name of the refusal or violation; nil if the request was answered.
        package var reason: String?
        /// Why the access rules deny the request; nil if they do not.
        package var denial: String?
        /// The number of the rule that denied it; 0 if none did.
        package var denialRule = 0
        /// The numbers of the report-only rules that matched.
        package var reported: [Int] = []
        /// The target as the client sent it. Nil if it is the one in `uri`.
        package var received: [UInt8]?
        /// Where redirects that Larder followed led. Nil if it followed none.
        package var redirectedTo: [UInt8]?
        /// Whether an origin was asked that did not prove who it is.
        package var isUnverified = false
        /// Whether the answer broke off.
        package var isBroken = false
        /// Why the connection was closed before the answer was complete; nil if it was not.
        package var closeReason: String?

        package init() {}
    }

    private var renderedSecond = Int64.min
    /// The beginning of a line up to the second. Lines of the same second share it.
    private var beginning: [UInt8] = []
    private var namedClient: IPAddress?
    /// The member `client` without the last quote. Lines of the same client share it.
    private var clientMember = AccessLogLine.member(client: nil)

    private let ids: RequestIDText

    package init(_ ids: RequestIDText) { self.ids = ids }

    /// Appends one line.
    ///
    /// - Parameters:
    ///   - method, target: as they were parsed. Empty if the message was not a valid request.
    ///   - origin: scheme and authority, where the target begins with its path: `https://example.org`. Empty otherwise.
    package mutating func append(
        _ facts: borrowing Facts, method: borrowing Span<UInt8>, origin: borrowing Span<UInt8>,
        target: borrowing Span<UInt8>,
        to line: inout [UInt8]
    ) {
        renderSecond(of: facts.startedAt)
        name(facts.client)
        let room = lengthMax(facts, method: method.count, target: origin.count + target.count)
        // The text of a line is made in one piece: room is looked for once.
        line.append(addingCapacity: room) { write(facts, method, origin, target, to: &$0) }
    }

    private func write(
        _ facts: borrowing Facts, _ method: borrowing Span<UInt8>, _ origin: borrowing Span<UInt8>,
        _ target: borrowing Span<UInt8>, to line: inout OutputSpan<UInt8>
    ) {
        line.append(beginning.span)
        appendMilliseconds(facts.startedAt, to: &line)
        line.append("Z\",\"id\":\"")
        ids.append(facts.id, to: &line)
        if let tunnel = facts.tunnel {
            line.append("\",\"tunnel\":\"")
            ids.append(tunnel, to: &line)
        }
        line.append(clientMember.span)
        if let user = facts.user {
            line.append("\",\"user\":\"")
            AccessLogLine.append(user: user, to: &line)
        }
        if let listener = facts.listener {
            line.append("\",\"listener\":\"")
            for byte in listener.utf8 { line.append(byte) }
        }
        if facts.isSocks { line.append("\",\"protocol\":\"socks5") }
        line.append("\",\"method\":\"")
        for index in method.indices { AccessLogLine.escape(method[index], to: &line) }
        line.append("\",\"uri\":\"")
        for index in origin.indices { AccessLogLine.escape(origin[index], to: &line) }
        if AccessLogLine.needsNoCare(target) {
            line.append(target)
        } else {
            AccessLogLine.appendMasked(target, to: &line)
        }
        line.append("\",\"status\":")
        appendDecimal(UInt64(facts.status), to: &line)
        line.append(",\"bytes\":")
        appendDecimal(UInt64(max(0, facts.bodyBytes)), to: &line)
        line.append(",\"duration_us\":")
        appendDecimal(facts.microseconds, to: &line)
        line.append(",\"outcome\":\"")
        line.append(facts.outcome)
        line.append("\"")
        if let particulars = facts.particulars { append(particulars, to: &line) }
        line.append("}\n")
    }

    private func append(_ facts: Particulars, to line: inout OutputSpan<UInt8>) {
        append(",\"reason\":\"", facts.reason, to: &line)
        append(",\"denial\":\"", facts.denial, to: &line)
        if facts.denialRule > 0 {
            line.append(",\"rule\":")
            appendDecimal(UInt64(facts.denialRule), to: &line)
        }
        if !facts.reported.isEmpty {
            line.append(",\"reported\":[")
            for (index, rule) in facts.reported.enumerated() {
                if index > 0 { line.append(",") }
                appendDecimal(UInt64(max(0, rule)), to: &line)
            }
            line.append("]")
        }
        if let received = facts.received {
            line.append(",\"received\":\"")
            AccessLogLine.appendMasked(received.span, to: &line)
            line.append("\"")
        }
        if let place = facts.redirectedTo {
            line.append(",\"redirected_to\":\"")
            AccessLogLine.appendMasked(place.span, to: &line)
            line.append("\"")
        }
        if facts.isUnverified { line.append(",\"tls\":\"unverified\"") }
        if facts.isBroken { line.append(",\"broken\":true") }
        append(",\"close\":\"", facts.closeReason, to: &line)
    }

    /// Appends a member whose value is a name of Larder's own.
    private func append(_ beginning: StaticString, _ value: String?, to line: inout OutputSpan<UInt8>) {
        guard let value else { return }
        line.append(beginning)
        for byte in value.utf8 { line.append(byte) }
        line.append("\"")
    }

    /// The most bytes that a line can have.
    private func lengthMax(_ facts: borrowing Facts, method: Int, target: Int) -> Int {
        var escaped = method + target
        if let user = facts.user { escaped += user.utf8.count }
        var names = facts.outcome.utf8CodeUnitCount + clientMember.count + beginning.count
        if let listener = facts.listener { names += listener.utf8.count }
        if let particulars = facts.particulars {
            escaped += (particulars.redirectedTo?.count ?? 0) + (particulars.received?.count ?? 0)
            for name in [particulars.reason, particulars.denial, particulars.closeReason] {
                names += name?.utf8.count ?? 0
            }
        }
        // Where `***` replaces a shorter value, the name of the parameter takes less room than it has here.
        return AccessLogLine.membersLengthMax + names + escaped * AccessLogLine.escapeLengthMax
    }

    /// A byte becomes `\u00` and two digits at most.
    private static let escapeLengthMax = 6
    /// The members without their values, and the numbers.
    private static let membersLengthMax = 512

    /// The text of a client that was named in the line before is there already.
    private mutating func name(_ client: IPAddress?) {
        guard client != namedClient else { return }
        namedClient = client
        clientMember = AccessLogLine.member(client: client)
    }

    private static func member(client: IPAddress?) -> [UInt8] {
        Array("\",\"client\":\"\(client?.description ?? "unix")".utf8)
    }

    /// Whether the target has neither a byte to escape nor a parameter, which may be a secret.
    private static func needsNoCare(_ target: borrowing Span<UInt8>) -> Bool {
        for index in target.indices {
            switch target[index] {
            case 0x22, 0x3B, 0x3F, 0x5C: return false
            case 0x20...0x7E: continue
            default: return false
            }
        }
        return true
    }

    private static func appendMasked(_ target: borrowing Span<UInt8>, to line: inout OutputSpan<UInt8>) {
        URIMasking.append(target) { escape($0, to: &line) }
    }

    /// A name is text, other than the bytes of a request.
    private static func append(user: String, to line: inout OutputSpan<UInt8>) {
        if user.utf8.allSatisfy({ $0 < 0x80 }) {
            for byte in user.utf8 { escape(byte, to: &line) }
        } else {
            for byte in jsonString(user).utf8.dropFirst().dropLast() { line.append(byte) }
        }
    }

    private static func escape(_ byte: UInt8, to line: inout OutputSpan<UInt8>) {
        switch byte {
        case 0x22: line.append("\\\"")
        case 0x5C: line.append("\\\\")
        case 0x20...0x7E: line.append(byte)
        default:
            line.append("\\u00")
            line.append(HeadWriter.hexDigit(byte >> 4))
            line.append(HeadWriter.hexDigit(byte & 15))
        }
    }

    /// The time is written as in RFC 3339, in UTC, with milliseconds.
    private mutating func renderSecond(of microseconds: Int64) {
        let second = AccessLogLine.split(microseconds).second
        guard second != renderedSecond else { return }
        renderedSecond = second
        beginning.removeAll(keepingCapacity: true)
        beginning.append("{\"time\":\"")
        appendTimestamp(WallTime(secondsSinceEpoch: second), to: &beginning)
    }

    private func appendMilliseconds(_ microseconds: Int64, to line: inout OutputSpan<UInt8>) {
        let rest = AccessLogLine.split(microseconds).rest
        line.append(0x2E)
        line.append(0x30 + UInt8(rest / 100_000))
        line.append(0x30 + UInt8(rest / 10_000 % 10))
        line.append(0x30 + UInt8(rest / 1_000 % 10))
    }

    /// Seconds since 1970, and the microseconds behind them.
    private static func split(_ microseconds: Int64) -> (second: Int64, rest: Int64) {
        let (second, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        return rest < 0 ? (second - 1, rest + 1_000_000) : (second, rest)
    }
}
