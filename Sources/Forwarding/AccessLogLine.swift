package import Message

/// Writes lines of the access log: one JSON object for each request.
///
/// Bytes that a client chose are escaped, so that no client can forge a line or a member.
package struct AccessLogLine {
    /// What the line says about one request.
    package struct Facts {
        /// Microseconds since 1970.
        package var startedAt: Int64 = 0
        package var endedAt: Int64 = 0
        /// Nil for a client of a Unix socket.
        package var client: IPAddress?
        package var user: String?
        package var status: UInt16 = 0
        package var bodyBytes = 0
        package var outcome: StaticString = "none"
        /// The name of the refusal or violation; nil if the request was answered.
        package var reason: String?
        /// Why the access rules deny the request; nil if they do not.
        package var denial: String?
        /// The number of the rule that denied it; 0 if none did.
        package var denialRule = 0
        /// The numbers of the report-only rules that matched.
        package var reported: [Int] = []
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
    private var rendered: [UInt8] = []
    private var namedClient: IPAddress?
    private var clientName: [UInt8] = []

    package init() {}

    /// Appends one line.
    ///
    /// - Parameters:
    ///   - method, target: as received. Empty if the message was not a valid request.
    package mutating func append(
        _ facts: Facts, method: borrowing Span<UInt8>, target: borrowing Span<UInt8>, to line: inout [UInt8]
    ) {
        line.append("{\"time\":\"")
        appendTime(facts.startedAt, to: &line)
        line.append("\",\"client\":\"")
        appendClient(facts.client, to: &line)
        if let user = facts.user {
            line.append("\",\"user\":\"")
            for byte in user.utf8 { AccessLogLine.escape(byte, to: &line) }
        }
        line.append("\",\"method\":\"")
        for index in method.indices { AccessLogLine.escape(method[index], to: &line) }
        line.append("\",\"uri\":\"")
        if AccessLogLine.needsNoCare(target) {
            line.append(target, target.indices)
        } else {
            LogScrubbing.append(target) { AccessLogLine.escape($0, to: &line) }
        }
        line.append("\",\"status\":")
        HeadWriter.append(decimal: Int(facts.status), to: &line)
        line.append(",\"bytes\":")
        HeadWriter.append(decimal: facts.bodyBytes, to: &line)
        line.append(",\"duration_us\":")
        // The wall clock may have been set back since the request began.
        HeadWriter.append(decimal: Int(max(0, facts.endedAt - facts.startedAt)), to: &line)
        line.append(",\"outcome\":\"")
        line.append(facts.outcome)
        line.append("\"")
        if let reason = facts.reason {
            line.append(",\"reason\":\"")
            line.append(contentsOf: reason.utf8)
            line.append("\"")
        }
        if let denial = facts.denial {
            line.append(",\"denial\":\"")
            line.append(contentsOf: denial.utf8)
            line.append("\"")
        }
        if facts.denialRule > 0 {
            line.append(",\"rule\":")
            HeadWriter.append(decimal: facts.denialRule, to: &line)
        }
        if !facts.reported.isEmpty {
            line.append(",\"reported\":[")
            for (index, rule) in facts.reported.enumerated() {
                if index > 0 { line.append(",") }
                HeadWriter.append(decimal: rule, to: &line)
            }
            line.append("]")
        }
        if let place = facts.redirectedTo {
            line.append(",\"redirected_to\":\"")
            LogScrubbing.append(place.span) { AccessLogLine.escape($0, to: &line) }
            line.append("\"")
        }
        if facts.isUnverified { line.append(",\"tls\":\"unverified\"") }
        if facts.isBroken { line.append(",\"broken\":true") }
        if let reason = facts.closeReason {
            line.append(",\"close\":\"")
            line.append(contentsOf: reason.utf8)
            line.append("\"")
        }
        line.append("}\n")
    }

    /// The text of a client that was named in the line before is there already.
    private mutating func appendClient(_ client: IPAddress?, to line: inout [UInt8]) {
        guard let client else { return line.append("unix") }
        if client != namedClient {
            namedClient = client
            clientName = Array(client.description.utf8)
        }
        line.append(contentsOf: clientName)
    }

    /// Whether the target has neither a byte to escape nor a query, in which secrets may be.
    private static func needsNoCare(_ target: borrowing Span<UInt8>) -> Bool {
        for index in target.indices {
            switch target[index] {
            case 0x22, 0x3F, 0x5C: return false
            case 0x20...0x7E: continue
            default: return false
            }
        }
        return true
    }

    private static func escape(_ byte: UInt8, to line: inout [UInt8]) {
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

    /// Appends a time as in RFC 3339, in UTC, with milliseconds. Lines of the same second share its text.
    private mutating func appendTime(_ microseconds: Int64, to line: inout [UInt8]) {
        var (second, rest) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        if rest < 0 { (second, rest) = (second - 1, rest + 1_000_000) }
        if second != renderedSecond {
            renderedSecond = second
            rendered.removeAll(keepingCapacity: true)
            appendTimestamp(WallTime(secondsSinceEpoch: second), to: &rendered)
        }
        line.append(contentsOf: rendered)
        line.append(0x2E)
        line.append(0x30 + UInt8(rest / 100_000))
        line.append(0x30 + UInt8(rest / 10_000 % 10))
        line.append(0x30 + UInt8(rest / 1_000 % 10))
        line.append(0x5A)
    }
}
