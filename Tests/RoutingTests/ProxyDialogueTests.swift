import Credentials
import Framing
import Message
import Routing
import Testing

private let logIn = ProxyLogIn(user: Array("me".utf8), password: Array("secret".utf8))!
private let name = Endpoint(host: "a.example", port: 443)

struct DialogueRow: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let destination: Endpoint
    let logIn: ProxyLogIn?
    /// What the proxy says, and what must follow.
    let steps: [(bytes: [UInt8], step: DialogueStep)]

    init(
        _ name: String, to destination: Endpoint = name, logIn: ProxyLogIn? = nil,
        _ steps: [(bytes: [UInt8], step: DialogueStep)]
    ) {
        testDescription = name
        self.destination = destination
        self.logIn = logIn
        self.steps = steps
    }

    /// Runs the dialogue. The last answer comes byte by byte if `isSlow`.
    func run(_ kind: NextProxy.Kind, isSlow: Bool) {
        let proxy = NextProxy(Endpoint(host: "p", port: 1), kind, logIn: logIn)
        let proof = logIn.map { ProxyProof.logIn($0) } ?? .none
        var dialogue = ProxyDialogue(with: proxy, to: destination, proof: proof, limits: Limits())
        for (bytes, expected) in steps {
            var step = DialogueStep.wait
            var rest = bytes[...]
            while !rest.isEmpty {
                step = dialogue.on(isSlow ? [rest.removeFirst()] : Array(rest))
                if !isSlow { break }
                // What follows an answer would arrive in one read with it, or through the open tunnel.
                if step != .wait { break }
            }
            if isSlow, case .open = expected {
                #expect(step == .open(unread: []))
            } else {
                #expect(step == expected, "after \(bytes)")
            }
        }
    }
}

@Suite("RFC 1928 and RFC 1929 Asking a SOCKS proxy") struct SocksTests {
    private static let toName: [UInt8] = [5, 1, 0, 3, 9] + Array("a.example".utf8) + [1, 187]
    private static let granted: [UInt8] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]

    static let rows = [
        DialogueRow("a name is resolved by the proxy", [([5, 0], .send(toName)), (granted, .open(unread: []))]),
        DialogueRow(
            "an IPv4 address", to: Endpoint(host: "192.0.2.7", port: 80),
            [([5, 0], .send([5, 1, 0, 1, 192, 0, 2, 7, 0, 80])), (granted, .open(unread: []))]),
        DialogueRow(
            "an IPv6 address", to: Endpoint(host: "2001:db8::1", port: 80),
            [
                ([5, 0], .send([5, 1, 0, 4, 0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80])),
                ([5, 0, 0, 4] + [UInt8](repeating: 0, count: 18), .open(unread: [])),
            ]),
        DialogueRow(
            "the address of the reply may be a name",
            [([5, 0], .send(toName)), ([5, 0, 0, 3, 2, 65, 66, 0, 80], .open(unread: []))]),
        DialogueRow(
            "what the server sends behind the reply belongs to the tunnel",
            [([5, 0], .send(toName)), (granted + [83, 83, 72], .open(unread: [83, 83, 72]))]),
        DialogueRow(
            "user and password", logIn: logIn,
            [
                ([5, 2], .send([1, 2, 109, 101, 6] + Array("secret".utf8))), ([1, 0], .send(toName)),
                (granted, .open(unread: [])),
            ]),
        DialogueRow(
            "a proxy that does not want the password does not get it", logIn: logIn,
            [([5, 0], .send(toName)), (granted, .open(unread: []))]),
        DialogueRow(
            "a wrong password", logIn: logIn,
            [
                ([5, 2], .send([1, 2, 109, 101, 6] + Array("secret".utf8))), ([1, 1], .fail(.logIn)),
            ]),
        DialogueRow("a proxy that wants what Larder does not have", [([5, 0xFF], .fail(.logIn))]),
        DialogueRow("a method that was not offered", [([5, 2], .fail(.unintelligible))]),
        DialogueRow("GSSAPI was not offered either", logIn: logIn, [([5, 1], .fail(.unintelligible))]),
        DialogueRow("another version", [([4, 0], .fail(.unintelligible))]),
        DialogueRow("an HTTP server", [(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), .fail(.unintelligible))]),
        DialogueRow("a reply of another version", [([5, 0], .send(toName)), ([4, 0, 0], .fail(.unintelligible))]),
        DialogueRow(
            "an address of no known type", [([5, 0], .send(toName)), ([5, 0, 0, 9, 0], .fail(.unintelligible))]),
        DialogueRow("a reply of no known meaning", [([5, 0], .send(toName)), ([5, 99], .fail(.unintelligible))]),
    ]

    @Test(arguments: rows, [false, true]) func `each answer leads to the step that follows it`(
        _ row: DialogueRow, isSlow: Bool
    ) { row.run(.socks5, isSlow: isSlow) }

    @Test(arguments: 1...8 as ClosedRange<UInt8>)
    func `each reason has its name, and needs no address behind it`(_ code: UInt8) throws {
        let reply = try #require(SocksReply(rawValue: code))
        DialogueRow("refused", [([5, 0], .send(Self.toName)), ([5, code], .fail(.socksRefused(reply)))])
            .run(.socks5, isSlow: false)
    }

    @Test func `a password is offered only where there is one`() {
        func begin(_ logIn: ProxyLogIn?) -> [UInt8] {
            let proof = logIn.map { ProxyProof.logIn($0) } ?? .none
            return ProxyDialogue(with: NextProxy(name, .socks5), to: name, proof: proof, limits: Limits()).begin()
        }
        #expect(begin(nil) == [5, 1, 0])
        #expect(begin(logIn) == [5, 2, 0, 2])
    }
}

@Suite("RFC 9110 §9.3.6 Asking an HTTP proxy for a tunnel") struct ConnectTests {
    private static func row(
        _ name: String, _ text: String, _ step: DialogueStep, logIn: ProxyLogIn? = nil
    ) -> DialogueRow { DialogueRow(name, logIn: logIn, [(Array(text.utf8), step)]) }

    static let rows = [
        row("200 opens it", "HTTP/1.1 200 Connection established\r\n\r\n", .open(unread: [])),
        row("any 2xx opens it", "HTTP/1.0 204 x\r\n\r\n", .open(unread: [])),
        row(
            "what says how long a body is has no meaning", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nSSH",
            .open(unread: Array("SSH".utf8))),
        row("interim responses are passed over", "HTTP/1.1 102 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", .open(unread: [])),
        row("407", "HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm=a\r\n\r\n", .fail(.logIn)),
        row("407 to a password", "HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n", .fail(.logIn), logIn: logIn),
        row("403", "HTTP/1.1 403 Forbidden\r\n\r\n", .fail(.refused(status: 403))),
        row("502 with a page", "HTTP/1.1 502 x\r\nContent-Length: 2\r\n\r\nno", .fail(.refused(status: 502))),
        row("a redirect is a refusal", "HTTP/1.1 302 x\r\nLocation: /\r\n\r\n", .fail(.refused(status: 302))),
        row("101 was not asked for", "HTTP/1.1 101 x\r\nUpgrade: a\r\n\r\n", .fail(.unintelligible)),
        row("no HTTP at all", "SSH-2.0-OpenSSH_9.2\r\n", .fail(.unintelligible)),
        row("a head that does not end", "HTTP/1.1 200 OK\r\nA: ", .wait),
    ]

    @Test(arguments: rows, [false, true]) func `each answer leads to its step`(_ row: DialogueRow, isSlow: Bool) {
        row.run(.http, isSlow: isSlow)
    }

    @Test func `a head has a limit, and so have interim responses`() {
        var limits = Limits()
        limits.interimResponsesMax = 2
        func step(_ text: String) -> DialogueStep {
            var dialogue = ConnectDialogue(to: name, proof: .none, limits: limits)
            return dialogue.on(Array(text.utf8))
        }
        let interim = "HTTP/1.1 103 x\r\n\r\n"
        #expect(step(interim + interim) == .wait)
        #expect(step(interim + interim + interim) == .fail(.unintelligible))
        let long = "HTTP/1.1 200 OK\r\nA: " + String(repeating: "a", count: limits.headBytesMax)
        #expect(step(long) == .fail(.unintelligible))
    }

    static let heads: [(Endpoint, ProxyProof, String)] = [
        (name, .none, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"),
        (name, .answering(nil), "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"),
        (
            name, .answering(Array("Bearer x".utf8)),
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Bearer x\r\n\r\n"
        ),
        (Endpoint(host: "::1", port: 22), .none, "CONNECT [::1]:22 HTTP/1.1\r\nHost: [::1]:22\r\n\r\n"),
        (
            name, .logIn(logIn),
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
        ),
    ]
    @Test(arguments: heads) func `the request names host and port twice, and the user if there is one`(
        destination: Endpoint, proof: ProxyProof, head: String
    ) {
        let dialogue = ProxyDialogue(with: NextProxy(name, .http), to: destination, proof: proof, limits: Limits())
        #expect(String(decoding: dialogue.begin(), as: UTF8.self) == head)
    }
}

@Suite("RFC 9110 §11.7 A challenge to CONNECT") struct ConnectChallengeTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let answer: String
        let persists: Bool

        init(_ name: String, _ fields: String, _ body: String, persists: Bool, version: String = "1.1") {
            testDescription = name
            answer = "HTTP/\(version) 407 x\r\nProxy-Authenticate: Digest realm=a, nonce=b\r\n\(fields)\r\n\(body)"
            self.persists = persists
        }
    }
    static let rows = [
        Row("a length", "Content-Length: 4\r\n", "body", persists: true),
        Row("no body", "Content-Length: 0\r\n", "", persists: true),
        Row("chunks", "Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n0\r\n\r\n", persists: true),
        Row("a body that ends with the connection", "", "", persists: false),
        Row("a proxy that closes", "Content-Length: 4\r\nConnection: close\r\n", "", persists: false),
        Row(
            "a proxy that closes, in its own words", "Content-Length: 4\r\nProxy-Connection: close\r\n", "",
            persists: false),
        Row("HTTP/1.0", "Content-Length: 4\r\n", "", persists: false, version: "1.0"),
        Row(
            "HTTP/1.0 that keeps the connection", "Content-Length: 4\r\nConnection: keep-alive\r\n", "body",
            persists: true, version: "1.0"),
        Row("a body that is too long", "Content-Length: 65537\r\n", "", persists: false),
        Row("chunks that are none", "Transfer-Encoding: chunked\r\n", "x", persists: false),
    ]

    @Test(arguments: rows, [false, true]) func `its body is read so that the connection can carry the answer`(
        _ row: Row, isSlow: Bool
    ) {
        var dialogue = ConnectDialogue(to: name, proof: .answering(nil), limits: Limits())
        var step = DialogueStep.wait
        let bytes = Array(row.answer.utf8)
        for part in isSlow ? bytes.map({ [$0] }) : [bytes] {
            #expect(step == .wait, "the dialogue ended early")
            step = dialogue.on(part)
        }
        guard case .challenged(let challenges, row.persists) = step else {
            Issue.record("\(step)")
            return
        }
        #expect(challenges.first?.value("nonce") == Array("b".utf8))
    }

    @Test func `a body without an end is not read for ever`() {
        var limits = Limits()
        limits.challengeBodyBytesMax = 1000
        var dialogue = ConnectDialogue(to: name, proof: .answering(nil), limits: limits)
        var step = dialogue.on(Array("HTTP/1.1 407 x\r\nTransfer-Encoding: chunked\r\n\r\n".utf8))
        var count = 0
        while step == .wait, count < 10_000 {
            step = dialogue.on(Array("1\r\nx\r\n".utf8))
            count += 6
        }
        #expect(step == .challenged([], persists: false) && count <= 1006)
    }

    @Test func `a connection that ends within the body is replaced by another one`() {
        var dialogue = ConnectDialogue(to: name, proof: .answering(nil), limits: Limits())
        #expect(dialogue.onClose() == .closed)
        #expect(dialogue.on(Array("HTTP/1.1 407 x\r\nContent-Length: 9\r\n\r\nbody".utf8)) == .wait)
        #expect(dialogue.onClose() == .challenged([], persists: false))
    }

    @Test func `bytes behind the message spoil the connection`() {
        var dialogue = ConnectDialogue(to: name, proof: .answering(nil), limits: Limits())
        let answer = "HTTP/1.1 407 x\r\nContent-Length: 4\r\n\r\nbodyHTTP/1.1 200 OK\r\n\r\n"
        #expect(dialogue.on(Array(answer.utf8)) == .challenged([], persists: false))
    }

    @Test func `the last token of the proxy is kept`() {
        var dialogue = ConnectDialogue(to: name, proof: .answering(Array("Negotiate YQ==".utf8)), limits: Limits())
        let answer = "HTTP/1.1 200 x\r\nProxy-Authenticate: Negotiate YmI=\r\n\r\n"
        #expect(dialogue.on(Array(answer.utf8)) == .open(unread: []))
        #expect(strongestChallenge(dialogue.proof, among: [.negotiate]) == .negotiate(Array("bb".utf8)))
    }

    @Test func `what the proxy says about the credentials is kept`() {
        var dialogue = ConnectDialogue(to: name, proof: .answering(nil), limits: Limits())
        let answer = "HTTP/1.1 200 OK\r\nProxy-Authentication-Info: nextnonce=\"n\"\r\n\r\n"
        #expect(dialogue.on(Array(answer.utf8)) == .open(unread: []))
        #expect(dialogue.information?.nextNonce == Array("n".utf8))
    }
}

@Suite("Users and passwords for next proxies") struct ProxyLogInTests {
    static let refused: [(String, String)] = [
        ("", "a"), ("a:b", "c"), ("a\r\nX: y", "c"), ("a", "b\nc"), ("a", "b\0"),
        (String(repeating: "a", count: 256), "b"),
        ("a", String(repeating: "b", count: 256)),
    ]
    @Test(arguments: refused) func `what cannot be sent is refused`(user: String, password: String) {
        #expect(ProxyLogIn(user: Array(user.utf8), password: Array(password.utf8)) == nil)
    }

    @Test func `a description shows no password`() {
        let proxy = NextProxy(Endpoint(host: "p", port: 3128), .https, logIn: logIn)
        #expect("\(proxy)" == "https://p:3128")
        #expect("\(Route.proxy(proxy))" == "https://p:3128")
        #expect(!"\(logIn)".contains("secret"))
    }
}
