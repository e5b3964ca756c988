package import Access
package import Caching
package import Framing
import JSON
package import Limiting
package import Message
package import Releases
import Texts
package import Transaction

/// An error that Larder itself answers: status, `Proxy-Status` (RFC 9209), `Cache-Status` (RFC 9211), and a page in the form that the
/// client prefers: text, JSON or HTML.
package struct ErrorResponse {
    package private(set) var status: UInt16
    private var error: StaticString
    private let requestID: String
    private let name: String
    private let explanation: StaticString
    private var denial: Denial?
    private var withheld: Withheld?
    private var violation: FramingError?
    private var outage: Outage?
    private var excess: LimitExcess?
    private var retryAfter: Int?
    private var uri: String?
    private var redirectedTo: String?
    private var accept: [UInt8]?
    private var challenges: [[UInt8]] = []
    /// Where the client is sent. Nil: nowhere.
    private var page: String?
    private var isConnect = false
    private var forwardReason: CacheStatus.ForwardReason?

    /// - Parameters:
    ///   - requestID: what the line of the request in the access log has as `id`, for the page.
    ///   - uri: the URI of the request, for the page.
    ///   - redirectedTo: the origin where redirects led that Larder followed. Nil if it followed none.
    ///   - denial: why the rules deny the request, if that is why it is refused.
    ///   - withheld: the release that is too young, if the refusal is about one.
    ///   - violation: the rule of HTTP/1.1 that the response of the origin broke, if it broke one.
    ///   - outage: since when the origin or the name servers have failed, if the refusal is about that.
    ///   - excess: the limit that the request has met, if that is why it is refused.
    ///   - challenges: the values of `Proxy-Authenticate`, each for a line of its own. Sent only if the refusal asks for credentials.
    ///   - forwardReason: why the request was forwarded. Nil if it was not.
    package init(
        _ refusal: Refusal, to request: ReceivedRequest, requestID: String, uri: [UInt8], redirectedTo: String? = nil,
        denial: Denial?, withheld: Withheld? = nil, violation: FramingError? = nil, outage: Outage? = nil,
        excess: LimitExcess? = nil,
        challenges: [[UInt8]] = [],
        forwardReason: CacheStatus.ForwardReason?
    ) {
        self.init(refusal, requestID: requestID)
        self.denial = denial
        self.withheld = withheld
        if let outage, outage.refusal == refusal { self.outage = outage }
        if let excess, Refusal(excess) == refusal { self.excess = excess }
        if refusal == .responseInvalid, let violation {
            error = violation.proxyStatusError
            self.violation = violation
        }
        self.redirectedTo = redirectedTo
        self.uri = String(decoding: uri, as: UTF8.self)
        accept = request.fields.joined(.accept)
        isConnect = request.method == .connect
        // Others would repeat the request there (RFC 9110 §15.4), or take the answer for the tunnel's.
        if request.method == .get || request.method == .head, let page = denial?.page {
            self.page = page
            status = 302
        }
        if refusal == .authenticationRequired { self.challenges = challenges }
        self.forwardReason = forwardReason
    }

    /// The answer to a request whose head is not known, because it did not arrive in time.
    package init(_ refusal: Refusal, requestID: String) {
        status = refusal.status
        error = refusal.proxyStatusError
        name = refusal.name
        explanation = refusal.explanation
        self.requestID = requestID
        retryAfter = refusal.retryAfter
    }

    /// The answer to a request whose head violates HTTP/1.1.
    package init(_ violation: FramingError, requestID: String) {
        self.requestID = requestID
        status = violation.requestStatus
        error = "http_request_error"
        name = violation.reason
        explanation = "The request breaks the rules of HTTP/1.1. The client that sent it has a fault."
    }

    /// Appends the head and the page.
    ///
    /// - Parameter isHead: the request is a HEAD, so the page is left out.
    package func append(isHead: Bool, persists: Bool, minorVersion: UInt8 = 1, date: WallTime, to out: inout [UInt8]) {
        let form = preferredForm
        let body = page(form)
        appendStatusLine(status, reason: phrase.map { $0[...] }, to: &out)
        out.append("Date: ")
        appendHTTPDate(date, to: &out)
        out.append("\r\n")
        HeadWriter.append(.contentType, form.contentType, to: &out)
        HeadWriter.append(.contentLength, body.utf8.count, to: &out)
        if let page { appendFieldLine(.location, page.utf8, to: &out) }
        out.append("Cache-Control: no-store\r\nCache-Status: ")
        cacheStatus.append(to: &out)
        out.append("\r\nProxy-Status: larder; error=")
        out.append(error)
        out.append("; details=")
        appendStructuredString(details.utf8, to: &out)
        if let denyField {
            out.append("\r\nLarder-Deny: ")
            denyField.append(to: &out)
        }
        out.append("\r\nVia: 1.1 larder\r\n")
        // The field has no meaning with 504 (RFC 9110 §10.2.3).
        if let seconds = (status == 503 ? outage?.retryAfter : nil) ?? excess?.retryAfter ?? retryAfter {
            HeadWriter.append(.retryAfter, seconds, to: &out)
        }
        for challenge in challenges { appendFieldLine(.proxyAuthenticate, challenge, to: &out) }
        HeadWriter.appendConnection(persists: persists, minorVersion: minorVersion, to: &out)
        if !isHead { out.append(contentsOf: body.utf8) }
    }

    /// The parameter `details` of `Proxy-Status`: as exactly as is known why there is no other answer.
    package var details: String {
        denial?.text ?? withheld?.text ?? violation?.reason ?? outage?.text ?? excess?.text ?? name
    }

    /// The length of a reason phrase that says why, in bytes.
    static let phraseLengthMax = 256

    /// A reason phrase that says why, where clients show little else: package managers print that of a download that failed, and many
    /// clients that of a CONNECT, because nothing shows them the content (RFC 9110 §9.3.6). Nil: the one that the status has.
    private var phrase: [UInt8]? {
        let text: String
        if let withheld {
            text = withheld.text
        } else if isConnect, let denial {
            text = denial.text + (denial.shortfall?.text.map { "; \($0)" } ?? "")
        } else {
            return nil
        }
        // What administrators write may have several lines, and letters beyond ASCII, for which RFC 9112 §4 has no charset.
        let bytes = "\(reasonPhrase(status)): \(text)".utf8.prefix(Self.phraseLengthMax)
        return bytes.map { $0 < 0x20 ? 0x20 : $0 < 0x7F ? $0 : UInt8(ascii: "?") }
    }

    /// Nil unless the policy of this proxy denies the request for good: 407 and 429 say by themselves what to do.
    private var denyField: DenyField? {
        guard status == 403 || page != nil else { return nil }
        return DenyField(
            reason: denial?.exactReason.rawValue ?? name, rule: denial?.rule,
            nearestRule: denial?.shortfall?.nearestRule, hint: hint)
    }

    private var hint: String { denial?.hint ?? "\(explanation)" }

    /// `fwd` is sent only for a request that was forwarded (RFC 9211 §2.2).
    private var cacheStatus: CacheStatus {
        var result = CacheStatus(forwardReason.map { .forwarded($0) } ?? .local)
        result.detail = name
        return result
    }

    // MARK: the page

    private enum Form {
        /// `problem` has the same members as `json`: those of RFC 9457 are among them.
        case text, json, problem, html
        var contentType: StaticString {
            switch self {
            case .text: "text/plain; charset=utf-8"
            case .json: "application/json"
            case .problem: "application/problem+json"
            case .html: "text/html; charset=utf-8"
            }
        }
    }

    /// The form of the page: text, unless the client prefers another one. Build tools print the page when a download fails, so it should be
    /// readable there.
    private var preferredForm: Form {
        guard let accept else { return .text }
        var best: (form: Form, weight: Int) = (.text, 0)
        for (type, weight) in qualityValues(accept[...]) {
            let form: Form? =
                switch String(decoding: type, as: UTF8.self).lowercased() {
                case "text/html", "application/xhtml+xml": .html
                case "application/json": .json
                case "application/problem+json": .problem
                case "text/plain": .text
                default: nil
                }
            if let form, weight > best.weight { best = (form, weight) }
        }
        return best.form
    }

    /// The text of the rule, or of the default, that denied the request.
    private var detail: String? {
        guard let denial else { return withheld?.text ?? outage?.text ?? excess?.text }
        guard let rule = denial.rule else { return denial.text }
        return denial.text.hasPrefix("rule \(rule) ") ? denial.text : "rule \(rule): \(denial.text)"
    }

    /// What the nearest rule would allow.
    private var nearest: String? { denial?.shortfall?.text }

    private func page(_ form: Form) -> String {
        let title = "\(status) \(reasonPhrase(status))"
        switch form {
        case .text:
            var text = "larder: \(title): \(name)\n\(explanation)\n"
            if let detail { text += "\(detail)\n" }
            if let nearest { text += "\(nearest)\n" }
            if let uri { text += "\(uri)\n" }
            if let redirectedTo { text += "redirected to \(redirectedTo)\n" }
            return text + "Request ID: \(requestID)\n"
        case .json, .problem:
            var text = "{\"status\":\(status),\"title\":\(jsonString("\(reasonPhrase(status))"))"
            text += ",\"error\":\"\(name)\",\"explanation\":\(jsonString("\(explanation)"))"
            if let detail { text += ",\"detail\":\(jsonString(detail))" }
            if let denyField {
                text += ",\"reason\":\(jsonString(denyField.reason))"
                if let rule = denyField.rule { text += ",\"rule\":\(rule)" }
                if let rule = denyField.nearestRule { text += ",\"nearest_rule\":\(rule)" }
                text += ",\"hint\":\(jsonString(denyField.hint))"
            }
            if let uri { text += ",\"uri\":\(jsonString(uri))" }
            if let redirectedTo { text += ",\"redirected_to\":\(jsonString(redirectedTo))" }
            return text + ",\"request_id\":\"\(requestID)\"}\n"
        case .html:
            return html(title)
        }
    }

    private func html(_ title: String) -> String {
        var rows = "<p>\(htmlText("\(explanation)"))</p>"
        if let detail { rows += "<p>\(htmlText(detail))</p>" }
        if let nearest { rows += "<p>\(htmlText(nearest))</p>" }
        if let uri { rows += "<p><code>\(htmlText(uri))</code></p>" }
        if let redirectedTo { rows += "<p>Redirected to <code>\(htmlText(redirectedTo))</code></p>" }
        return """
            <!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <title>\(title)</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:15vh auto;\
            padding:0 1.5rem;color-scheme:light dark}h1{font-size:1.4rem}code{overflow-wrap:anywhere}\
            footer{opacity:.6;font-size:.85rem}</style>
            <h1>\(title)</h1>\(rows)<footer>larder &middot; \(denial?.exactReason.rawValue ?? name)<br>\
            Request ID: \(requestID)</footer></html>

            """
    }
}
