import Framing
import Message
import Testing

/// One host has one form, whichever way its text comes in.
@Suite("One form of a host") struct HostFormTests {
    /// Another spelling of a name: letters in another case, perhaps a dot at the end, perhaps the default port.
    private static func spelling(_ name: String, using random: inout SeededGenerator) -> String {
        let letters = name.map { Bool.random(using: &random) ? $0.uppercased() : String($0) }.joined()
        return letters + (Bool.random(using: &random) ? "." : "")
    }

    static let names = ["a", "example.org", "xn--mnchen-3ya.test", "_service._tcp.a-b.test", "localhost", "127.0.0.1"]

    @Test(arguments: names) func `every spelling has it in targets, Host, opened tunnels, redirects and keys`(
        _ name: String
    ) throws {
        var random = SeededGenerator(seed: name.utf8.count)
        for _ in 0..<50 {
            let host = Self.spelling(name, using: &random)
            let port = ["", ":", ":80"].randomElement(using: &random) ?? ""
            let heads = [
                "GET http://\(host)\(port)/p HTTP/1.1\r\nHost: b\r\n\r\n",
                "GET /p HTTP/1.1\r\nHost: \(host)\(port)\r\n\r\n",
                "CONNECT \(host):80 HTTP/1.1\r\nHost: b\r\n\r\n",
            ]
            for head in heads {
                let bytes = Array(head.utf8)
                let target = try #require(parseRequest(bytes)).parsed
                #expect(text(bytes[target.hostRange]).lowercased() == name, "\(head)")
                var key: [UInt8] = []
                appendNormalisedURI(target, of: bytes.span, to: &key)
                #expect(text(key) == "http://\(name)\(target.form == .authority ? "" : "/p")", "\(head)")
                guard target.form != .authority else { continue }
                let tunnel = FixedOrigin(scheme: .http, host: name, port: 80)
                if case .misdirected = tunnel.complete(target, bytes.span) { Issue.record("\(head)") }
            }
            let uri = try #require(TargetURI("HTTP://\(host)\(port)/p".utf8))
            #expect(uri.host == name && text(uri.normalised) == "http://\(name)/p")
            let base = try #require(TargetURI("http://b/".utf8))
            #expect(base.resolving("//\(host)\(port)/p".utf8) == uri)
        }
    }
}
