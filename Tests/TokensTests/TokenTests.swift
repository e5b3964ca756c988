import Message
import Testing
import Tokens

@Suite("RFC 7515 §2: base64url")
struct Base64URLTests {
    static let refused = ["A", "AA==", "AA=", "A A", "A+A=", "AB", "AAB", "AA\n", "A/AA", "é"]
    @Test(arguments: refused) func `has one encoding for each value, without padding`(_ text: String) {
        #expect(decodeBase64URL(text.utf8) == nil)
    }

    static let seeds = 0..<40
    @Test(arguments: seeds) func `what is encoded can be decoded`(_ count: Int) {
        let value = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 97 &+ count) }
        #expect(decodeBase64URL(encodeBase64URL(value)) == value)
    }
}

@Suite("RFC 7519 §7.2: reading a token")
struct TokenReadingTests {
    static let claims = #"{"iss":"i","aud":"a","exp":2000,"sub":"ann"}"#

    static let rows: [(name: String, text: [UInt8], fault: TokenFault)] = [
        ("two parts", Array("eyJ9.eyJ9".utf8), .malformed),
        ("four parts", unsigned(claims: claims) + Array(".x".utf8), .malformed),
        ("five parts, which are encrypted", Array("eyJ9....".utf8), .malformed),
        ("nothing", [], .malformed),
        ("alg none", unsigned(header: #"{"alg":"none"}"#, claims: claims, signature: ""), .algorithm),
        ("alg NONE", unsigned(header: #"{"alg":"NONE"}"#, claims: claims, signature: ""), .algorithm),
        ("alg in another case", unsigned(header: #"{"alg":"hs256"}"#, claims: claims), .algorithm),
        ("alg that is unknown", unsigned(header: #"{"alg":"HS1"}"#, claims: claims), .algorithm),
        ("no alg", unsigned(header: #"{"typ":"JWT"}"#, claims: claims), .malformed),
        ("alg that is no string", unsigned(header: #"{"alg":256}"#, claims: claims), .malformed),
        ("two alg", unsigned(header: #"{"alg":"HS256","alg":"none"}"#, claims: claims), .malformed),
        ("two alg, one escaped", unsigned(header: #"{"alg":"HS256","\u0061lg":"none"}"#, claims: claims), .malformed),
        ("kid that is no string", unsigned(header: #"{"alg":"HS256","kid":7}"#, claims: claims), .malformed),
        ("crit", unsigned(header: #"{"alg":"HS256","crit":["exp"],"exp":1}"#, claims: claims), .criticalExtension),
        ("crit that is empty", unsigned(header: #"{"alg":"HS256","crit":[]}"#, claims: claims), .criticalExtension),
        ("b64", unsigned(header: #"{"alg":"HS256","crit":["b64"],"b64":false}"#, claims: claims), .criticalExtension),
        ("an ID token of logout", unsigned(header: #"{"alg":"HS256","typ":"logout+jwt"}"#, claims: claims), .type),
        ("typ that is no string", unsigned(header: #"{"alg":"HS256","typ":1}"#, claims: claims), .type),
        ("header that is a list", unsigned(header: "[]", claims: claims), .malformed),
        ("claims that are a list", unsigned(claims: "[]"), .malformed),
        ("claims twice", unsigned(claims: #"{"sub":"ann","sub":"bob"}"#), .malformed),
        ("claims that are no JSON", unsigned(claims: "{"), .malformed),
        ("claims and more", unsigned(claims: "{} {}"), .malformed),
        ("padding", unsigned(claims: claims, signature: "c2k="), .malformed),
        ("a space", unsigned(claims: claims) + Array(" ".utf8), .malformed),
        ("8 KiB and more", unsigned(claims: claims, signature: String(repeating: "A", count: 8192)), .tooLong),
    ]
    @Test(arguments: rows) func `is refused`(_ row: (name: String, text: [UInt8], fault: TokenFault)) {
        #expect(throws: row.fault, "\(row.name)") { try JSONWebToken(row.text) }
    }

    static let types = ["", #","typ":"JWT""#, #","typ":"jwt""#, #","typ":"at+jwt""#, #","typ":"application/at+JWT""#]
    @Test(arguments: types) func `is an access token`(_ type: String) throws {
        let token = try JSONWebToken(unsigned(header: "{\"alg\":\"ES256\",\"kid\":\"k\"\(type)}", claims: Self.claims))
        #expect(token.algorithm == .es256 && token.keyIdentifier == "k")
    }

    @Test func `is told from other text by its form`() {
        #expect(JSONWebToken.isLike(unsigned(claims: Self.claims)))
        for text in ["", "secret", "eyJ", "eyJ.eyJ", "a.b.c", "eyJ.b.c.d"] {
            #expect(!JSONWebToken.isLike(text.utf8), "\(text)")
        }
    }
}

@Suite("RFC 7519 §4.1: claims")
struct TokenClaimTests {
    static var terms: TokenTerms {
        var terms = TokenTerms()
        (terms.issuer, terms.audiences, terms.algorithms) = ("https://i", ["proxy", "larder"], [.hs256])
        terms.groupsClaim = "groups"
        return terms
    }
    static func claims(_ more: String = "", exp: String = "2000", aud: String = #""larder""#, name: String = "ann")
        -> String
    {
        #"{"iss":"https://i","aud":\#(aud),"exp":\#(exp),"sub":"\#(name)"\#(more)}"#
    }

    static let refused: [(name: String, claims: String, fault: TokenFault)] = [
        ("no exp", #"{"iss":"https://i","aud":"larder","sub":"ann"}"#, .noExpiry),
        ("exp, and the skew is over", claims(exp: "940"), .expired),
        ("exp that is a string", claims(exp: #""2000""#), .malformed),
        ("exp that is huge", claims(exp: "1e300"), .malformed),
        ("exp before 1970", claims(exp: "-9223372036854775808"), .expired),
        ("nbf in the future", claims(#","nbf":1061"#), .notYetValid),
        ("nbf that is no number", claims(#","nbf":true"#), .malformed),
        ("iat in the future", claims(#","iat":1061"#), .issuedInFuture),
        ("no iss", #"{"aud":"larder","exp":2000,"sub":"ann"}"#, .issuer),
        ("iss with a slash more", #"{"iss":"https://i/","aud":"larder","exp":2000,"sub":"ann"}"#, .issuer),
        ("iss in a list", #"{"iss":["https://i"],"aud":"larder","exp":2000,"sub":"ann"}"#, .issuer),
        ("no aud", #"{"iss":"https://i","exp":2000,"sub":"ann"}"#, .audience),
        ("another aud", claims(aud: #""mail""#), .audience),
        ("other auds", claims(aud: #"["mail","larde"]"#), .audience),
        ("an empty list of auds", claims(aud: "[]"), .audience),
        ("no sub", #"{"iss":"https://i","aud":"larder","exp":2000}"#, .name),
        ("sub that is empty", claims(name: ""), .name),
        ("sub with a line end", claims(name: #"ann\n"#), .name),
        ("sub that is long", claims(name: String(repeating: "a", count: 257)), .name),
        ("groups that are a number", claims(#","groups":1"#), .groups),
        ("a group that is a number", claims(#","groups":["a",1]"#), .groups),
        ("a group without a name", claims(#","groups":["a",""]"#), .groups),
        ("too many groups", claims(",\"groups\":\"\((0..<257).map { "g\($0)" }.joined(separator: " "))\""), .groups),
    ]
    @Test(arguments: refused) func `is refused`(_ row: (name: String, claims: String, fault: TokenFault)) throws {
        let token = try JSONWebToken(unsigned(claims: row.claims))
        #expect(throws: row.fault, "\(row.name)") {
            try Self.terms.judge(token, now: WallTime(secondsSinceEpoch: 1000))
        }
    }

    @Test func `an algorithm that the configuration does not name is refused`() throws {
        let token = try JSONWebToken(unsigned(header: #"{"alg":"RS256"}"#, claims: Self.claims()))
        #expect(throws: TokenFault.algorithm) {
            try Self.terms.judge(token, now: WallTime(secondsSinceEpoch: 1000))
        }
        #expect(!SignatureAlgorithm.usual.contains(.hs256), "who verifies could sign as well")
    }

    static let accepted: [(claims: String, groups: [String], expiry: Int64)] = [
        (claims(), [], 2060),
        (claims(exp: "941"), [], 1001),
        (claims(exp: "2000.9"), [], 2060),
        (claims(#","nbf":1060,"iat":1060"#), [], 2060),
        (claims(aud: #"["mail","proxy"]"#), [], 2060),
        (claims(#","groups":["ci","night shift"]"#), ["ci", "night shift"], 2060),
        (claims(#","groups":"ci  night""#), ["ci", "night"], 2060),
        (claims(#","groups":[]"#), [], 2060),
    ]
    @Test(arguments: accepted) func `is accepted until it expires`(
        _ row: (claims: String, groups: [String], expiry: Int64)
    ) throws {
        let token = try JSONWebToken(unsigned(claims: row.claims))
        let subject = try Self.terms.judge(token, now: WallTime(secondsSinceEpoch: 1000))
        #expect(subject.name == "ann" && subject.groups == row.groups)
        #expect(subject.expiry == WallTime(secondsSinceEpoch: row.expiry))
    }

    @Test func `name and groups come from the claims that the configuration names`() throws {
        var terms = Self.terms
        (terms.nameClaim, terms.groupsClaim) = ("preferred_username", nil)
        let token = try JSONWebToken(
            unsigned(claims: Self.claims(#","preferred_username":"bob","groups":["ci"]"#)))
        let subject = try terms.judge(token, now: WallTime(secondsSinceEpoch: 1000))
        #expect(subject.name == "bob" && subject.groups.isEmpty)
    }
}
