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
        (
            "http://a/?token[]=1&token%5B0%5D=2&token%00x=3&x=4",
            "http://a/?token[]=***&token%5B0%5D=***&token%00x=***&x=4"
        ),
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

    @Test(arguments: [
        "page", "tokens", "pageToken", "keyword", "q", "", "%", "%zz", "monkey", "design", "token.type", "token_type",
        "next_token", "continuationToken", "$skiptoken", "$skip_token", "max_tokens", "project_key", "partition-key",
        "author", "oauth_version", "auth_type", "passenger", "signed", "secretary", "public_key",
    ])
    func `other names are left alone`(name: String) {
        #expect(Self.masked("http://a/?\(name)=1") == "http://a/?\(name)=1")
        #expect(SecretName.kind(Array(name.utf8)[...]) == nil)
    }

    @Test(arguments: [
        "Cookie", "X-Api-Key", "PRIVATE-TOKEN", "Authorization", "x-vault-token", "X-Authorization", "X-Api-Token",
        "X-Session-Token", "X-Access-Key", "X-Client-Secret", "X-Auth", "X-Original-Authorization",
        "X-Ops-Authorization-1", "Ocp-Apim-Subscription-Key", "DD-APPLICATION-KEY", "X-RapidAPI-Key", "xi-api-key",
        "X-Shopify-Access-Token", "Circle-Token", "x-functions-key", "X-Registry-Auth", "X-Auth-Key", "X_Api_Key",
        "X-Authentication", "X-Secret", "X-Password", "X-MyApp-JWT", "Auth", "Secret", "token%00x", "token%FF",
        "%EF%BB%BFtoken", "%20token", "token[]", "token[0]", "token%5B%5D", "user[token][]", "token[value]", "token.",
        "%u0074oken", "myApiKey", "clientSecret",
    ])
    func `a field or member with such a name carries a credential`(name: String) {
        #expect(SecretName.kind(Array(name.utf8)[...]) == .credential)
    }

    /// Those of the registry of fields that requests have, and of clients of registries, object stores, models and tracing.
    @Test(arguments: [
        "Accept", "Accept-Encoding", "Access-Control-Request-Headers", "Access-Control-Request-Method", "Cache-Control",
        "Connection", "Content-Digest", "Content-Type", "Date", "Depth", "Destination", "Expect", "Forwarded", "From",
        "Host", "If", "If-Match", "If-None-Match", "If-Schedule-Tag-Match", "Lock-Token", "Max-Forwards",
        "Content-MD5", "Origin", "Overwrite", "Prefer", "Priority", "Range", "Referer", "Sec-CH-UA", "Sec-Fetch-Site",
        "Sec-GPC", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Signature-Input", "TE", "Timeout", "Trailer",
        "Transfer-Encoding", "Upgrade", "User-Agent", "Via", "Want-Content-Digest", "X-Requested-With",
        "X-Forwarded-For", "X-Request-Id", "Traceparent", "Baggage", "Idempotency-Key", "X-CSRF-Token",
        "X-XSRF-TOKEN", "RequestVerification-Token", "npm-auth-type", "npm-command", "npm-scope", "npm-session",
        "X-Amz-Date", "X-Amz-Content-Sha256", "x-amz-acl", "x-amz-meta-author", "x-ms-version", "x-ms-date",
        "x-ms-continuation-token", "x-goog-api-client", "x-goog-user-project", "X-GitHub-Api-Version",
        "anthropic-version", "OpenAI-Organization", "X-Stainless-Lang", "X-Kubernetes-Pf-Flow", "Mcp-Session-Id",
        "Docker-Upload-UUID", "Git-Protocol", "X-NuGet-Client-Version", "X-Max-Tokens", "Surrogate-Key",
        "X-HTTP-Method-Override", "Early-Data", "Alt-Used", "DNT", "X-Datadog-Trace-Id", "X-B3-TraceId",
    ])
    func `the name of a common field carries none`(name: String) {
        #expect(SecretName.kind(Array(name.utf8)[...]) != .credential)
    }
}
