import Credentials
import Message
import Testing

@Suite("AWS Signature Version 4")
struct AWSSignatureTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// Method and target. GET, if it begins with "/".
        let line: String
        let fields: KeyValuePairs<String, String>
        let payload: AWSPayload
        let signature: String

        static let empty = bytes(hex: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")

        init(
            _ name: String, _ line: String, fields: KeyValuePairs<String, String> = [:],
            payload: AWSPayload = .hashed(Row.empty), _ signature: String = ""
        ) {
            testDescription = name
            self.line = line
            self.fields = fields
            self.payload = payload
            self.signature = signature
        }

        func request(to host: String) -> AWSRequest {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            let all = [("Host", host)] + fields.map { ($0.key, $0.value) }
            return AWSRequest(
                method: Array((words.count == 1 ? "GET" : words[0]).utf8), target: Array(words[words.count - 1].utf8),
                fields: all.map { (name: Array($0.0.utf8), value: Array($0.1.utf8)) }, payload: payload)
        }
    }

    private static func sign(_ row: Row, _ credential: AWSCredential, _ host: String, at time: Int64) throws -> [String]
    {
        try credential.sign(row.request(to: host), at: WallTime(secondsSinceEpoch: time), using: OpenSSLHashing())
            .map { "\($0.name): \(text($0.value.bytes))" }
    }

    private static func objectStore(token: String? = nil) throws -> AWSCredential {
        try AWSCredential(
            accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            sessionToken: token.map { Secret($0) }, region: "us-east-1", service: "s3")
    }

    /// 2013-05-24T00:00:00Z
    static let objectTime: Int64 = 1_369_353_600
    /// The examples of the S3 documentation ("Authorization Header"). The lines below them are computed with Python's hmac.
    static let objects = [
        Row(
            "GET object", "/test.txt", fields: ["Range": "bytes=0-9"],
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Row(
            "PUT object", "PUT /test$file.text",
            fields: ["Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"],
            payload: .hashed(bytes(hex: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Row("GET lifecycle", "/?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Row(
            "list objects", "/?prefix=J&max-keys=2", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        Row(
            "escapes of the path are made canonical", "PUT /test%24file%2etext",
            fields: ["Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"],
            payload: .hashed(bytes(hex: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Row(
            "body with a trailer", "PUT /a", payload: .unsignedWithTrailer,
            "cc3f029f61befccc93ad159495851ced56557006ffcc6a3d3f5e7548697fcad7"),
        Row(
            "fields of the client's own signature are replaced", "/test.txt",
            fields: [
                "Range": "bytes=0-9", "X-Amz-Date": "20000101T000000Z", "Authorization": "AWS4-HMAC-SHA256 x",
                "X-Amz-Content-SHA256": "0", "x-amz-security-token": "t",
            ], "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    ]
    @Test(arguments: objects) func `requests to object stores`(_ row: Row) throws {
        let fields = try Self.sign(row, try Self.objectStore(), "examplebucket.s3.amazonaws.com", at: Self.objectTime)
        #expect(fields.last?.hasSuffix("Signature=\(row.signature)") == true, "\(fields)")
    }

    @Test func `the fields of a signed request`() throws {
        let fields = try Self.sign(
            Self.objects[0], try Self.objectStore(), "examplebucket.s3.amazonaws.com", at: Self.objectTime)
        #expect(
            fields == [
                "x-amz-date: 20130524T000000Z",
                "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                """
                Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
                SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, \
                Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41
                """,
            ])
    }

    /// Computed with Python's hmac.
    @Test func `a session token is signed, and a body that is not`() throws {
        let row = Row("", "PUT /a%20b/%c3%bc~", payload: .unsigned, "")
        let fields = try Self.sign(
            row, try Self.objectStore(token: "TOKEN/+="), "examplebucket.s3.amazonaws.com", at: Self.objectTime)
        #expect(fields[1] == "x-amz-content-sha256: UNSIGNED-PAYLOAD")
        #expect(fields[2] == "x-amz-security-token: TOKEN/+=")
        #expect(fields[3].contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, "))
        #expect(fields[3].hasSuffix("Signature=20e6eeef5bf0a29c4c8c967f8235ef5912e4de6416d8768bf1daced401288432"))
    }

    @Test func `paths of object stores are names: nothing is removed from them`() throws {
        func signature(_ path: String) throws -> String? {
            try Self.sign(Row("", path, ""), try Self.objectStore(), "b.test", at: Self.objectTime).last
        }
        #expect(try signature("/a//b/../c") != signature("/a/c"))
        #expect(try signature("/a//b") != signature("/a/b"))
        #expect(try signature("/a%2Fb") == signature("/a/b"))
        #expect(try signature("/a+b") == signature("/a%2Bb"))
        #expect(try signature("/a+b") != signature("/a%20b"))
        #expect(try signature("/a?b=c+d") == signature("/a?b=c%20d"))
        #expect(try signature("/a?b&c=") == signature("/a?c&b"))
    }

    /// 2015-08-30T12:36:00Z
    static let suiteTime: Int64 = 1_440_938_160
    /// The requests of AWS's test suite for Signature Version 4 that can be sent, and the example of the IAM documentation.
    static let services = [
        Row("get-vanilla", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Row(
            "get-relative-relative", "/example1/example2/../..",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Row("get-slash-dot-slash", "/./", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Row("get-slash", "//", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Row("get-utf8, sent as bytes", "/ሴ", "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        Row(
            "get-unreserved", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
        Row(
            "get-vanilla-query-order-key-case", "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Row(
            "get-vanilla-query-unreserved",
            "/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
        Row("get-vanilla-utf8-query", "/?ሴ=bar", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        Row(
            "get-header-value-trim", "/", fields: ["My-Header1": " value1", "My-Header2": " \"a   b   c\""],
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Row(
            "get-header-value-order", "/",
            fields: ["My-Header1": "value4", "My-Header1": "value1", "My-Header1": "value3", "My-Header1": "value2"],
            "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"),
        Row("post-vanilla", "POST /", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Row(
            "escapes are encoded once more", "/a%20b/%24",
            "39e28aab0c7e78e91f7e0dab6909ef05fbbb8650605ee5c1567e8815b2baed08"),
    ]
    @Test(arguments: services) func `requests to other services`(_ row: Row) throws {
        let credential = try AWSCredential(
            accessKeyID: "AKIDEXAMPLE", secretAccessKey: Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            region: "us-east-1", service: "service")
        let fields = try Self.sign(row, credential, "example.amazonaws.com", at: Self.suiteTime)
        #expect(fields.last?.hasSuffix("Signature=\(row.signature)") == true, "\(fields)")
        #expect(fields.count == 2, "the hash of the body is in the signature alone")
    }

    @Test func `the ListUsers example of the IAM documentation`() throws {
        let credential = try AWSCredential(
            accessKeyID: "AKIDEXAMPLE", secretAccessKey: Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            region: "us-east-1", service: "iam")
        let row = Row(
            "", "/?Action=ListUsers&Version=2010-05-08",
            fields: ["Content-Type": "application/x-www-form-urlencoded; charset=utf-8"], "")
        #expect(
            try Self.sign(row, credential, "iam.amazonaws.com", at: Self.suiteTime).last == """
                Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
                SignedHeaders=content-type;host;x-amz-date, \
                Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7
                """)
    }

    static let names = [
        ("Host", true), ("Content-Type", true), ("content-md5", true), ("X-Amz-Meta-A", true), ("Range", false),
        ("User-Agent", false), ("X-Amzn-Trace-Id", false), ("Connection", false),
    ]
    @Test(arguments: names) func `a signature covers what no one on the way may change`(_ row: (String, Bool)) {
        #expect(AWSCredential.mustSign(Array(row.0.utf8)) == row.1)
    }

    static let malformed: [(key: String, region: String, service: String, token: String?, CredentialFault)] = [
        ("a/b", "r", "s", nil, .keyIsMalformed), ("a,b", "r", "s", nil, .keyIsMalformed),
        ("", "r", "s", nil, .keyIsMalformed), ("a", "r=", "s", nil, .keyIsMalformed),
        ("a", "r", "s\r\nX: y", nil, .keyIsMalformed), ("a", "r", "ü", nil, .keyIsMalformed),
        ("a", "r", "s", "", .sessionTokenIsMalformed), ("a", "r", "s", "a\nb", .sessionTokenIsMalformed),
    ]
    @Test(arguments: malformed) func `what would end its place in the field is refused`(
        _ row: (key: String, region: String, service: String, token: String?, CredentialFault)
    ) {
        #expect(throws: row.4) {
            try AWSCredential(
                accessKeyID: row.key, secretAccessKey: Secret("s"), sessionToken: row.token.map { Secret($0) },
                region: row.region, service: row.service)
        }
    }
}
