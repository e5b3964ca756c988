import Message

/// Why the answer of a PAC file cannot be used.
///
/// The texts are those of the script, shortened, with nothing but printable ASCII.
package enum PACAnswerFault: Error, Equatable, Sendable {
    /// The function ended without an answer: `undefined`.
    case nothing
    /// A way that no PAC file knows.
    case unknown(String)
    /// SOCKS version 4, which cannot carry IPv6 and has no log-in. `SOCKS` alone means version 4 in browsers, too.
    case unsupported(String)
    /// A way without a valid host and port.
    case invalidAddress(String)

    package var text: String {
        switch self {
        case .nothing: "it returned nothing"
        case .unknown(let text): "it returned \"\(text)\", which is none of DIRECT, PROXY, HTTP, HTTPS and SOCKS5"
        case .unsupported(let text): "it returned \"\(text)\", which is SOCKS version 4; SOCKS5 is supported"
        case .invalidAddress(let text): "it returned \"\(text)\", which has no valid host and port"
        }
    }
}

/// The routes that `FindProxyForURL` of a PAC file returned: `PROXY one:3128; SOCKS5 two; DIRECT`.
///
/// The format has no standard. This follows Chromium: words in any case, default ports, `null` and nothing at all for `DIRECT`.
package struct PACAnswer: Equatable, Sendable {
    /// Never empty, each once.
    package let routes: [Route]

    /// The most routes that one answer can have. Further ones are left out: nobody waits for so many failures.
    package static let routesMax = 16

    /// A way that cannot be used ends the list, because what follows is meant for its failure. If it is the first, it is a fault.
    package init(_ text: [UInt8]) throws(PACAnswerFault) {
        let text = trimmed(text[...])
        if text.elementsEqual("undefined".utf8) { throw .nothing }
        var routes: [Route] = []
        if !text.elementsEqual("null".utf8) {
            for part in text.split(separator: UInt8(ascii: ";")) {
                let way = trimmed(part)
                if way.isEmpty { continue }
                guard routes.count < PACAnswer.routesMax else { break }
                do throws(PACAnswerFault) {
                    let route = try PACAnswer.route(way)
                    if !routes.contains(route) { routes.append(route) }
                } catch {
                    if routes.isEmpty { throw error }
                    break
                }
            }
        }
        self.routes = routes.isEmpty ? [.direct] : routes
    }

    private static func route(_ way: ArraySlice<UInt8>) throws(PACAnswerFault) -> Route {
        let word = way.prefix { !isSpace($0) }
        let address = trimmed(way[word.endIndex...])
        let kind: NextProxy.Kind
        let defaultPort: UInt16
        switch String(decoding: word, as: UTF8.self).lowercased() {
        case "direct":
            guard address.isEmpty else { throw .unknown(readable(way)) }
            return .direct
        case "proxy", "http": (kind, defaultPort) = (.http, 80)
        case "https": (kind, defaultPort) = (.https, 443)
        case "socks5": (kind, defaultPort) = (.socks5, 1080)
        case "socks", "socks4": throw .unsupported(readable(way))
        default: throw .unknown(readable(way))
        }
        guard let endpoint = Endpoint(authority: address, defaultPort: defaultPort) else {
            throw .invalidAddress(readable(way))
        }
        return .proxy(NextProxy(endpoint, kind))
    }
}

private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

private func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var text = text.drop(while: isSpace)
    while let last = text.last, isSpace(last) { text.removeLast() }
    return text
}

/// What a message may show of a text that a script made.
package func readable(_ text: some Collection<UInt8>) -> String {
    let shown = text.prefix(80).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
    return String(decoding: shown, as: UTF8.self) + (text.count > 80 ? "…" : "")
}
