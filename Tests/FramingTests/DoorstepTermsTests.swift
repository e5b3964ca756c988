import Framing
import Testing

@Suite("What a listener offers is told apart by the first bytes")
struct DoorstepTermsTests {
    private static let get = Array("GET http://a/ HTTP/1.1\r\n".utf8)
    private static let header = Array("PROXY UNKNOWN\r\n".utf8)
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\n".utf8)
    private static let hello: [UInt8] = [0x16, 3, 1]
    private static let socks: [UInt8] = [5, 1, 0]

    struct Row: Sendable, CustomTestStringConvertible {
        let terms: DoorstepTerms
        let bytes: [UInt8]
        let stage: DoorstepTerms.Stage
        let step: DoorstepTerms.Step
        var testDescription: String { "\(bytes.prefix(6)) at \(stage) of \(terms)" }

        init(_ terms: DoorstepTerms, _ bytes: [UInt8], _ stage: DoorstepTerms.Stage, _ step: DoorstepTerms.Step) {
            (self.terms, self.bytes, self.stage, self.step) = (terms, bytes, stage, step)
        }
    }

    private static let plain = DoorstepTerms()
    private static let both = DoorstepTerms(tls: .offered)
    private static let secured = DoorstepTerms(tls: .required)

    static let rows: [Row] = [
        Row(plain, get, .beginning(isTrusted: false), .http1),
        Row(plain, socks, .beginning(isTrusted: false), .socks5),
        Row(plain, hello, .beginning(isTrusted: false), .refuse(.tlsNotOffered, .tls)),
        Row(plain, preface, .beginning(isTrusted: false), .refuse(.protocolNotOffered, .http2)),
        Row(plain, header, .beginning(isTrusted: false), .refuse(.proxyHeaderUntrusted, .proxyProtocol)),
        Row(DoorstepTerms(http1: false), get, .beginning(isTrusted: false), .refuse(.protocolNotOffered, .http1)),
        Row(DoorstepTerms(socks5: false), socks, .beginning(isTrusted: false), .refuse(.protocolNotOffered, .socks5)),
        Row(both, get, .beginning(isTrusted: false), .http1),
        Row(both, hello, .beginning(isTrusted: false), .handshake),
        Row(secured, hello, .beginning(isTrusted: false), .handshake),
        Row(secured, get, .beginning(isTrusted: false), .refuse(.tlsRequired, .http1)),
        Row(secured, socks, .beginning(isTrusted: false), .refuse(.tlsRequired, .socks5)),
        Row(secured, get, .insideTLS, .http1),
        Row(secured, socks, .insideTLS, .socks5),
        Row(secured, hello, .insideTLS, .refuse(.protocolNotOffered, .tls)),
        Row(secured, header, .insideTLS, .refuse(.protocolNotOffered, .proxyProtocol)),
        Row(plain, header, .beginning(isTrusted: true), .proxyHeader),
        Row(both, hello, .beginning(isTrusted: true), .refuse(.proxyHeaderMissing, .tls)),
        Row(plain, get, .beginning(isTrusted: true), .refuse(.proxyHeaderMissing, .http1)),
        Row(plain, socks, .beginning(isTrusted: true), .refuse(.proxyHeaderMissing, .socks5)),
        Row(plain, get, .behindProxyHeader, .http1),
        Row(both, hello, .behindProxyHeader, .handshake),
        Row(secured, get, .behindProxyHeader, .refuse(.tlsRequired, .http1)),
        Row(plain, header, .behindProxyHeader, .refuse(.protocolNotOffered, .proxyProtocol)),
    ]

    @Test(arguments: rows) func `protocol, place and terms decide`(_ row: Row) {
        #expect(row.terms.step(after: row.bytes.span, at: row.stage) == row.step)
    }

    @Test(arguments: rows) func `as long as more bytes are needed, nothing is decided`(_ row: Row) {
        var decided = false
        for length in 0..<row.bytes.count {
            let step = row.terms.step(after: Array(row.bytes[..<length]).span, at: row.stage)
            #expect(decided ? step == row.step : step == .wait || step == row.step)
            decided = decided || step != .wait
        }
    }
}
