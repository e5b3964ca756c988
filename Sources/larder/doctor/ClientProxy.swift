import EventLoop
import Message
import Upstream

/// The proxy that a client uses: what its variables or `--proxy` say.
struct ClientProxy {
    /// `host:port`
    let place: String
    /// `user:password` of its URL.
    let credentials: String?
    /// Where it comes from, such as `https_proxy`.
    let source: String

    /// Reads `http://user:password@host:port/`, or `host:port`.
    init?(_ text: String, source: String) {
        var rest = text[...]
        if rest.lowercased().hasPrefix("http://") { rest = rest.dropFirst(7) }
        guard rest.firstRange(of: "://") == nil else { return nil }
        rest = rest.prefix { $0 != "/" }
        if let at = rest.lastIndex(of: "@") {
            credentials = ClientProxy.decode(rest[..<at])
            rest = rest[rest.index(after: at)...]
        } else {
            credentials = nil
        }
        guard !rest.isEmpty else { return nil }
        let hasPort = rest.last?.isNumber == true && rest.contains(":") && !rest.hasSuffix("]")
        place = hasPort ? String(rest) : "\(rest):80"
        self.source = source
    }

    /// The proxy of the variables. Nil if none names one.
    init?(environment: [String: String]) {
        for name in ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            guard let value = environment[name], let proxy = ClientProxy(value, source: name) else { continue }
            self = proxy
            return
        }
        return nil
    }

    var url: String { "http://\(place)" }

    /// The fields that each request to it needs.
    var fields: [(name: String, value: String)] {
        guard let credentials else { return [] }
        return [("Proxy-Authorization", "Basic " + String(decoding: encodeBase64(credentials.utf8), as: UTF8.self))]
    }

    private static func decode(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == 0x25, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
                rest.count >= 2
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Whether the proxy opens TLS connections to a host: opens a tunnel, and does a handshake in which the authority of the proxy is trusted
/// alone.
///
/// - Parameter authority: a PEM file.
func opensTLS(
    to host: String, through addresses: [SocketAddress], fields: [(name: String, value: String)], authority: String
) -> Bool {
    do throws(ClientError) {
        let client = try proxyClient(addresses, fields, https: .tunnel(authorities: authority))
        try blocking { () throws(ClientError) in try await client.connect("https://\(host)/") }
        return true
    } catch { return false }
}
