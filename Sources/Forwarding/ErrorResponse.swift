package import Access
package import Framing
package import Message
package import Transaction

/// An answer that Larder makes because something went wrong: status, `Proxy-Status` (RFC 9209), and a page in the form
/// that the client likes best: text, JSON or HTML.
package struct ErrorResponse {
    private let status: UInt16
    private let error: String
    private let name: String
    private let explanation: String
    private let detail: String?
    private let uri: String?
    private let accept: [UInt8]?
    private let challenge: [UInt8]?

    package init(_ refusal: Refusal, request: ReceivedRequest, uri: [UInt8], denial: Denial?, challenge: [UInt8]?) {
        status = refusal.status
        error = "\(refusal.proxyStatusError)"
        name = refusal.name
        explanation = "\(refusal.explanation)"
        detail = denial?.text
        self.uri = String(decoding: uri, as: UTF8.self)
        accept = request.fields.joined(.accept)
        self.challenge = refusal == .authenticationRequired ? challenge : nil
    }

    /// A request whose head could not be understood.
    package init(_ violation: FramingError) {
        status = violation.requestStatus
        error = "http_request_error"
        name = violation.reason
        explanation = "The request breaks the rules of HTTP/1.1."
        detail = nil
        uri = nil
        accept = nil
        challenge = nil
    }

    /// A request that did not come in time; nothing is known of it.
    package init(_ refusal: Refusal) {
        status = refusal.status
        error = "\(refusal.proxyStatusError)"
        name = refusal.name
        explanation = "\(refusal.explanation)"
        detail = nil
        uri = nil
        accept = nil
        challenge = nil
    }

    package func append(isHead: Bool, persists: Bool, minorVersion: UInt8 = 1, date: WallTime, to out: inout [UInt8]) {
        let form = preferredForm
        let body = page(form)
        appendStatusLine(status, reason: nil, to: &out)
        var dateText: [UInt8] = []
        appendHTTPDate(date, to: &dateText)
        appendFieldLine(.date, dateText, to: &out)
        HeadWriter.append(.contentType, form.contentType, to: &out)
        HeadWriter.append(.contentLength, body.utf8.count, to: &out)
        HeadWriter.append("Cache-Control: no-store\r\nCache-Status: larder; fwd=bypass; detail=", to: &out)
        out.append(contentsOf: name.utf8)
        HeadWriter.append("\r\nProxy-Status: larder; error=", to: &out)
        out.append(contentsOf: error.utf8)
        HeadWriter.append("; details=", to: &out)
        appendString(detail ?? name, to: &out)
        HeadWriter.append("\r\nVia: 1.1 larder\r\n", to: &out)
        if let challenge { appendFieldLine(.proxyAuthenticate, challenge, to: &out) }
        HeadWriter.appendConnection(persists: persists, minorVersion: minorVersion, to: &out)
        if !isHead { out.append(contentsOf: body.utf8) }
    }

    /// sf-string (RFC 8941 §3.3.3).
    private func appendString(_ text: String, to out: inout [UInt8]) {
        out.append(0x22)
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x5C: out.append(contentsOf: [0x5C, byte])
            case 0x20...0x7E: out.append(byte)
            default: out.append(0x3F)
            }
        }
        out.append(0x22)
    }

    // MARK: the page

    private enum Form {
        case text, json, html
        var contentType: StaticString {
            switch self {
            case .text: "text/plain; charset=utf-8"
            case .json: "application/json"
            case .html: "text/html; charset=utf-8"
            }
        }
    }

    /// Text unless the client asks for another by name: what a build prints when a download fails should be readable.
    private var preferredForm: Form {
        guard let accept else { return .text }
        var best: (form: Form, weight: Int) = (.text, 0)
        for (type, weight) in qualityValues(accept[...]) {
            let form: Form? =
                switch String(decoding: type, as: UTF8.self).lowercased() {
                case "text/html", "application/xhtml+xml": .html
                case "application/json", "application/problem+json": .json
                case "text/plain": .text
                default: nil
                }
            if let form, weight > best.weight { best = (form, weight) }
        }
        return best.form
    }

    private func page(_ form: Form) -> String {
        let title = "\(status) \(reasonPhrase(status))"
        switch form {
        case .text:
            var text = "larder: \(title): \(name)\n\(explanation)\n"
            if let detail { text += "\(detail)\n" }
            if let uri { text += "\(uri)\n" }
            return text
        case .json:
            var text = "{\"status\":\(status),\"error\":\"\(name)\",\"explanation\":\(json(explanation))"
            if let detail { text += ",\"detail\":\(json(detail))" }
            if let uri { text += ",\"uri\":\(json(uri))" }
            return text + "}\n"
        case .html:
            return html(title)
        }
    }

    private func html(_ title: String) -> String {
        var rows = "<p>\(escaped(explanation))</p>"
        if let detail { rows += "<p>\(escaped(detail))</p>" }
        if let uri { rows += "<p><code>\(escaped(uri))</code></p>" }
        return """
            <!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <title>\(title)</title><style>body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:15vh auto;\
            padding:0 1.5rem;color-scheme:light dark}h1{font-size:1.4rem}code{overflow-wrap:anywhere}\
            footer{opacity:.6;font-size:.85rem}</style>
            <h1>\(title)</h1>\(rows)<footer>larder &middot; \(name)</footer></html>

            """
    }

    private func escaped(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
    }

    private func json(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case let control where control.value < 0x20:
                result += "\\u00" + (control.value < 16 ? "0" : "") + String(control.value, radix: 16)
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
