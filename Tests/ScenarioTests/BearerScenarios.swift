import Access
import Foundation
import Rules
import Server
import Settings
import TLS
import Testing
import Tokens

@Suite("RFC 6750: tokens for the proxy")
struct BearerScenarios {
    static let token = "larder_a-token-that-is-long-enough"

    /// What the tokens of these scenarios say.
    static var terms: TokenTerms {
        var terms = TokenTerms()
        (terms.issuer, terms.audiences, terms.algorithms) = ("https://issuer.test", ["larder"], [.hs256])
        terms.groupsClaim = "groups"
        return terms
    }
    private static let key = [UInt8](repeating: 42, count: 32)
    private static var keySet: String {
        "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"one\",\"k\":\"\(text(key))\"}]}"
    }
    private static func text(_ bytes: [UInt8]) -> String { String(decoding: encodeBase64URL(bytes), as: UTF8.self) }

    /// - Parameter lifetime: in seconds.
    static func signed(_ name: String, lifetime: Int = 600, kid: String = "one", key: [UInt8] = key) -> String {
        let now = Int(Date().timeIntervalSince1970)
        let header = "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"\(kid)\"}"
        let claims =
            "{\"iss\":\"https://issuer.test\",\"aud\":[\"larder\"],\"sub\":\"\(name)\",\"iat\":\(now),\"exp\":\(now + lifetime)}"
        let input = "\(text(Array(header.utf8))).\(text(Array(claims.utf8)))"
        return "\(input).\(text(Digest.hmacSHA256(key: key, input.utf8)))"
    }

    /// Both kinds of tokens, and rules for ann and ci.
    static func tokens(_ configuration: inout Configuration, _ files: Scenario.Files) throws {
        let line = TokenFile.line(.init(name: "ci"), digest: Digest.sha256(token.utf8))
        configuration.access.authentication.bearer.tokensFile = try files.write("tokens", line)
        configuration.access.authentication.bearer.keys = .file(try files.write("keys", keySet))
        configuration.access.authentication.bearer.terms = terms
        var rule = AccessRule(effect: .allow, number: 1)
        rule.conditions.users = ["ann", "ci"]
        configuration.access.rules = [rule]
    }

    private static func basic(_ user: String, _ password: String) -> String {
        "Proxy-Authorization: Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
    }

    static let fields = [
        "Proxy-Authorization: Bearer \(token)", basic("anybody", token), "Proxy-Authorization: Bearer \(signed("ann"))",
        basic("", signed("ann")),
    ]
    @Test(arguments: fields) func `a token opens the proxy, on GET and on CONNECT, and goes no further`(
        _ field: String
    ) throws {
        let name =
            field.contains(Self.token) || field.contains(Data("anybody:\(Self.token)".utf8).base64EncodedString())
            ? "ci" : "ann"
        try scenario(Self.tokens) { s in
            s.origin.expects("GET /a", "!Proxy-Authorization").replies(200, "Cache-Control: max-age=60", body: "stored")
            let client = try s.client()
            for _ in 0..<4 { #expect(try client.get("/a", field).text == "stored") }
            // The third and the fourth: nobody was asked again who the client is.
            try s.expect(.hitsByEarlierDecision, 2)
            let tunnel = try s.client()
            try tunnel.ask("CONNECT", s.origin.authority, [field])
            #expect(try tunnel.response(to: "CONNECT").status == 200)
            let log = try s.logLines().joined(separator: "\n")
            #expect(log.contains("\"user\":\"\(name)\""), "\(log)")
            #expect(!log.contains(Self.token) && !log.contains("eyJ"), "\(log)")
        }
    }

    static let refused: [(field: String, description: String)] = [
        ("Bearer \(token)x", "it is unknown"), ("Bearer \(signed("ann", lifetime: -61))", "it has expired"),
        ("Bearer \(signed("ann", kid: "two"))", "no key fits its kid and alg"),
        ("Bearer \(signed("ann", key: [UInt8](repeating: 41, count: 32)))", "its signature is wrong"),
        ("Bearer eyJhbGciOiJub25lIn0.e30.", "its algorithm is not accepted"),
    ]
    @Test(arguments: refused) func `a token that is not accepted gets 407, which says why and does not show it`(
        _ row: (field: String, description: String)
    ) throws {
        try scenario(Self.tokens) { s in
            let client = try s.client()
            for _ in 0..<2 {
                let answer = try client.get("/a", "Proxy-Authorization: \(row.field)")
                #expect(answer.status == 407)
                #expect(
                    "\(answer)".contains(
                        "Bearer realm=\"larder\", error=\"invalid_token\", error_description=\"the token is not accepted: \(row.description)\""
                    ), "\(answer)")
                #expect("\(answer)".contains("Basic realm"), "others are offered as before: \(answer)")
                #expect(!"\(answer)".contains(row.field.dropFirst(7)))
            }
            #expect(s.origin.connectionCount == 0)
        }
    }

    @Test func `a token that was withdrawn ends on connections that have used it`() throws {
        try scenario(Self.tokens) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "stored")
            let client = try s.client()
            let (opaque, signed) = (Self.fields[0], Self.fields[2])
            for field in [opaque, opaque, opaque, signed, signed, signed] {
                #expect(try client.get("/a", field).status == 200)
            }
            let shelf = s.proxy.snapshot.authentication
            var material = shelf.material
            material.tokens = TokenFile()
            s.proxy.adopt(material, for: shelf)
            try s.eventually("it is refused") { try client.get("/a", opaque).status == 407 }
            #expect(try client.get("/a", signed).status == 200)
            material.tokenKeys = JSONWebKeySet()
            s.proxy.adopt(material, for: shelf)
            try s.eventually("it is refused") { try client.get("/a", signed).status == 407 }
        }
    }

    @Test func `a reload forgets tokens whose key is gone`() throws {
        try scenario(Self.tokens) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "stored")
            let client = try s.client()
            let signed = Self.fields[2]
            for _ in 0..<3 { #expect(try client.get("/a", signed).status == 200) }
            // The settings stay the same: only what the file says has changed.
            let configuration = s.proxy.snapshot.configuration
            var material = s.proxy.snapshot.authentication.material
            material.tokenKeys = JSONWebKeySet()
            s.proxy.adopt(try Snapshot(configuration: configuration, authentication: material, after: s.proxy.snapshot))
            try s.eventually("it is refused") { try client.get("/a", signed).status == 407 }
        }
    }

    @Test func `a token that expires ends on connections that have used it`() throws {
        try scenario({ configuration, files in
            try Self.tokens(&configuration, files)
            configuration.access.authentication.bearer.terms.clockSkew = .zero
        }) { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "stored")
            let client = try s.client()
            let field = "Proxy-Authorization: Bearer \(Self.signed("ann", lifetime: 2))"
            #expect(try client.get("/a", field).status == 200)
            try s.eventually("it has expired") { try client.get("/a", field).status == 407 }
        }
    }
}
