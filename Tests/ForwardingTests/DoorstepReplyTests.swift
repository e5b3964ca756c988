import Forwarding
import Framing
import Testing
import Transaction

@Suite("RFC 1928 §6: what a SOCKS client is told of a refusal")
struct DoorstepReplyTests {
    static let rows: [(refusal: Refusal, reply: SocksReply)] = [
        (.accessDenied, .notAllowed), (.destinationForbidden, .notAllowed), (.tunnelPortForbidden, .notAllowed),
        (.authenticationRequired, .notAllowed), (.destinationUnroutable, .networkUnreachable),
        (.nameNotFound, .hostUnreachable), (.nameTimeout, .hostUnreachable), (.nameServersSilent, .hostUnreachable),
        (.connectionTimeout, .hostUnreachable),
        (.hostInvalid, .hostUnreachable), (.connectionRefused, .connectionRefused),
        (.tooManyTunnels, .generalFailure), (.nextProxyRefused, .generalFailure), (.internalError, .generalFailure),
    ]

    @Test(arguments: rows) func `a refusal has its reply`(_ row: (refusal: Refusal, reply: SocksReply)) {
        #expect(SocksReply(row.refusal) == row.reply)
    }

    @Test(arguments: Refusal.allCases) func `no refusal is a success`(_ refusal: Refusal) {
        #expect(SocksReply(refusal) != .succeeded)
    }

    static let objections: [(DoorstepTerms.Objection, WireProtocol, String)] = [
        (.tlsRequired, .http1, "https://"), (.proxyHeaderMissing, .http1, "PROXY header"),
        (.protocolNotOffered, .http1, "not offered"), (.proxyHeaderUntrusted, .proxyProtocol, "PROXY header"),
    ]

    @Test(arguments: objections) func `what reads HTTP is told in HTTP`(
        _ objection: DoorstepTerms.Objection, _ found: WireProtocol, _ word: String
    ) throws {
        let text = String(decoding: DoorstepReply.bytes(objection, found), as: UTF8.self)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
        #expect(text.hasPrefix("HTTP/1.1 403 Forbidden\r\n") && parts[1].contains(word), "\(text)")
        #expect(parts[0].contains("Content-Length: \(parts[1].utf8.count)\r\n"), "\(text)")
    }
}
