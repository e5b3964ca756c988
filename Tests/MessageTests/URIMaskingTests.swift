import Message
import Testing

@Suite("Secrets in URIs are not shown")
struct URIMaskingTests {
    private static func masked(_ uri: String) -> String {
        String(decoding: URIMasking.masked(Array(uri.utf8)), as: UTF8.self)
    }

    static let rows: [(uri: String, shown: String)] = [
        ("http://a/", "http://a/"),
        ("http://a/token=1", "http://a/token=1"),
        ("http://a/?x=1&y=2", "http://a/?x=1&y=2"),
        ("http://a/?token=abc", "http://a/?token=***"),
        ("http://a/?x=1&Access_Token=abc&y=2", "http://a/?x=1&Access_Token=***&y=2"),
        ("http://a/?X-Amz-Signature=f00&X-Amz-Date=1", "http://a/?X-Amz-Signature=***&X-Amz-Date=1"),
        ("http://a/?password", "http://a/?password"),
        ("http://a/?password=", "http://a/?password=***"),
        ("http://a/?tokens=1", "http://a/?tokens=1"),
        ("http://a/?&&sig=1&", "http://a/?&&sig=***&"),
        ("http://a/?", "http://a/?"),
        ("http://a/?a=1;token=x;b=2", "http://a/?a=1;token=***;b=2"),
        ("http://a/?token=a?b/c=d&e", "http://a/?token=***&e"),
        ("http://a/b;jsessionid=1F/c;v=2?x", "http://a/b;jsessionid=***/c;v=2?x"),
        ("http://a/b;sid=1?token=2", "http://a/b;sid=***?token=***"),
        ("http://a/b&token=1", "http://a/b&token=1"),
        ("http://a/?id_token=1#credential:forge", "http://a/?id_token=***#credential:forge"),
    ]

    @Test(arguments: rows) func `the values of parameters with names of secrets are replaced`(
        _ row: (uri: String, shown: String)
    ) {
        #expect(Self.masked(row.uri) == row.shown)
    }

    static let secretNames = [
        "access_token", "refresh_token", "id_token", "client_secret", "private_token", "job_token", "api_key",
        "x-amz-credential", "x-amz-security-token", "x-goog-signature", "password", "passwd", "secret", "sig",
        "signature", "code", "key", "auth", "client_assertion", "oauth_token", "AWSAccessKeyId",
    ]

    @Test(arguments: secretNames) func `a name counts in every spelling`(name: String) {
        let encoded = name.utf8.map { "%" + String($0, radix: 16) }.joined()
        let twice = encoded.replacing("%", with: "%25")
        for spelling in [
            name, name.uppercased(), name.replacing("_", with: "-"), name.replacing("_", with: ""), encoded, twice,
            "user[\(name)]", "user%5B\(name)%5D", "auth.\(name)",
        ] {
            #expect(Self.masked("http://a/?x=1&\(spelling)=s3cret&y") == "http://a/?x=1&\(spelling)=***&y")
            #expect(SecretName.kind(Array(spelling.utf8)[...]) != nil)
        }
    }

    @Test(arguments: ["page", "tokens", "pageToken", "keyword", "q", "", "%", "%zz", "monkey", "design"])
    func `other names are left alone`(name: String) {
        #expect(Self.masked("http://a/?\(name)=1") == "http://a/?\(name)=1")
        #expect(SecretName.kind(Array(name.utf8)[...]) == nil)
    }

    @Test(arguments: ["Cookie", "X-Api-Key", "PRIVATE-TOKEN", "Authorization", "x-vault-token"])
    func `a field with such a name carries a credential`(name: String) {
        #expect(SecretName.kind(Array(name.utf8)[...]) == .credential)
    }
}
