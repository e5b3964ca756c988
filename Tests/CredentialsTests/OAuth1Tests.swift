import Message
import Testing

@testable import Credentials

@Suite("RFC 5849 OAuth 1.0")
struct OAuth1Tests {
    private static func parameters(_ list: KeyValuePairs<String, String>) -> [EncodedParameter] {
        list.map { EncodedParameter($0.key.utf8, $0.value.utf8) }
    }

    private static func target(_ text: String) throws -> TargetURI { try #require(TargetURI(text.utf8)) }

    /// §3.4.1.1, with the request of §3.4.1.3.1.
    static let oauth: KeyValuePairs = [
        "oauth_consumer_key": "9djdj82h48djs9d2", "oauth_token": "kkk9d7dh3k39sjv7",
        "oauth_signature_method": "HMAC-SHA1", "oauth_timestamp": "137131201", "oauth_nonce": "7d8f3e4a",
    ]
    @Test func `the base string of §3.4.1.1`() throws {
        let base = oauth1BaseString(
            Array("POST".utf8), try Self.target("http://EXAMPLE.COM:80/request?b5=%3D%253D&a3=a&c%40=&a2=r%20b"),
            Self.parameters(Self.oauth) + parseForm(Array("c2&a3=2+q".utf8)))
        #expect(
            text(base) == """
                POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b5%3D%253D%25253D%26c%2540\
                %3D%26c2%3D%26oauth_consumer_key%3D9djdj82h48djs9d2%26oauth_nonce%3D7d8f3e4a%26oauth_signature_method\
                %3DHMAC-SHA1%26oauth_timestamp%3D137131201%26oauth_token%3Dkkk9d7dh3k39sjv7
                """)
    }

    /// §3.4.1.2
    static let uris: [(String, String)] = [
        ("http://EXAMPLE.COM:80/r%20v/X?id=123", "http://example.com/r%20v/X"),
        ("https://www.example.net:8080/?q=1", "https://www.example.net:8080/"),
        ("https://example.net:443", "https://example.net/"), ("http://[::1]:81/a", "http://[::1]:81/a"),
    ]
    @Test(arguments: uris) func `the base string has the URI without its query and its default port`(
        _ row: (String, String)
    ) throws {
        let base = oauth1BaseString(Array("GET".utf8), try Self.target(row.0), [])
        #expect(text(percentDecode(base.split(separator: UInt8(ascii: "&"))[1])) == row.1)
    }

    /// The three requests of §1.2, and that of §3.4.1.1 with the secrets of §3.1 (erratum 2550).
    struct SignedExample: Sendable {
        let method: String
        let target: String
        let consumerSecret: String
        let tokenSecret: String
        let parameters: KeyValuePairs<String, String>
        let signature: String
    }
    static let signatures = [
        SignedExample(
            method: "POST", target: "https://photos.example.net/initiate", consumerSecret: "kd94hf93k423kf44",
            tokenSecret: "",
            parameters: [
                "oauth_consumer_key": "dpf43f3p2l4k3l03", "oauth_signature_method": "HMAC-SHA1",
                "oauth_timestamp": "137131200", "oauth_nonce": "wIjqoS",
                "oauth_callback": "http://printer.example.com/ready",
            ], signature: "74KNZJeDHnMBp0EMJ9ZHt/XKycU="),
        SignedExample(
            method: "POST", target: "https://photos.example.net/token", consumerSecret: "kd94hf93k423kf44",
            tokenSecret: "hdhd0244k9j7ao03",
            parameters: [
                "oauth_consumer_key": "dpf43f3p2l4k3l03", "oauth_token": "hh5s93j4hdidpola",
                "oauth_signature_method": "HMAC-SHA1", "oauth_timestamp": "137131201", "oauth_nonce": "walatlh",
                "oauth_verifier": "hfdp7dh39dks9884",
            ], signature: "gKgrFCywp7rO0OXSjdot/IHF7IU="),
        SignedExample(
            method: "POST", target: "http://example.com/request?b5=%3D%253D&a3=a&c%40=&a2=r%20b&c2&a3=2+q",
            consumerSecret: "j49sk3j29djd", tokenSecret: "dh893hdasih9", parameters: oauth,
            signature: "r6/TJjbCOr97/+UU0NsvSne7s5g="),
    ]
    @Test(arguments: signatures) func `signatures of the examples`(_ row: SignedExample) throws {
        let credential = try OAuth1(
            consumerKey: "", consumerSecret: Secret(row.consumerSecret), tokenSecret: Secret(row.tokenSecret))
        let signature = try credential.signature(
            of: Array(row.method.utf8), Self.target(row.target), Self.parameters(row.parameters),
            using: OpenSSLHashing())
        #expect(text(signature) == row.signature)
    }

    private static func photos(_ method: OAuth1.SignatureMethod, realm: String? = nil) throws -> OAuth1 {
        try OAuth1(
            consumerKey: "dpf43f3p2l4k3l03", consumerSecret: Secret("kd94hf93k423kf44"), token: "nnch734d00sl2jdk",
            tokenSecret: Secret("pfkkdhi9sl3r4s00"), method: method, realm: realm)
    }

    private static func authorization(
        _ credential: OAuth1, _ target: String, form: String? = nil
    ) throws -> String {
        text(
            try credential.authorization(
                for: Array("GET".utf8), Self.target(target), form: form.map { Array($0.utf8) },
                nonce: Array("chapoH".utf8), at: WallTime(secondsSinceEpoch: 137_131_202), using: OpenSSLHashing()))
    }

    @Test func `the authorization of the last request of §1.2`() throws {
        let value = try Self.authorization(
            try Self.photos(.hmacSHA1, realm: "Photos"),
            "http://photos.example.net/photos?file=vacation.jpg&size=original")
        #expect(
            value == """
                OAuth realm="Photos", oauth_consumer_key="dpf43f3p2l4k3l03", oauth_token="nnch734d00sl2jdk", \
                oauth_signature_method="HMAC-SHA1", oauth_timestamp="137131202", oauth_nonce="chapoH", \
                oauth_signature="MdpQcU8iPSUjWoN%2FUDMsK2sui9I%3D"
                """)
    }

    /// Computed with Python's hmac.
    @Test func `HMAC-SHA256 signs the same base string but for its name`() throws {
        let value = try Self.authorization(
            try Self.photos(.hmacSHA256), "http://photos.example.net/photos?file=vacation.jpg&size=original")
        #expect(value.hasPrefix("OAuth oauth_consumer_key="))
        #expect(value.contains(#"oauth_signature_method="HMAC-SHA256""#))
        #expect(value.hasSuffix(#"oauth_signature="HtMwoX2zenlFjgGg%2FSNEoKEQmL7CzxYFEKzs7er044Y%3D""#))
    }

    @Test func `parameters of the query and of a form are signed alike`() throws {
        let credential = try Self.photos(.hmacSHA1)
        let inQuery = try Self.authorization(credential, "http://a.test/?a=b&c=d+e")
        #expect(try Self.authorization(credential, "http://a.test/?c=d%20e", form: "a=b") == inQuery)
        #expect(try Self.authorization(credential, "http://a.test/?c=d%20e") != inQuery)
    }

    @Test func `without a token there is no oauth_token`() throws {
        let value = try Self.authorization(
            try OAuth1(consumerKey: "a b", consumerSecret: Secret("s")), "http://a.test/")
        #expect(value.hasPrefix(#"OAuth oauth_consumer_key="a%20b", oauth_signature_method"#))
    }

    @Test func `a realm with control characters is refused`() {
        #expect(throws: CredentialFault.realmHasControlCharacter) { try Self.photos(.hmacSHA1, realm: "a\r\nX: y") }
    }
}
