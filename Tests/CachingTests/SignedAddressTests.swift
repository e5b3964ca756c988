import Caching
import Message
import Testing

@Suite("Signed addresses: what is their signature, and when it expires")
struct SignedAddressTests {
    struct Row: Sendable {
        let rule: String
        let query: String
        /// What is left of the query, or nil if there is no signature.
        let key: String?
        let expiry: Int64?

        init(_ rule: String, _ query: String, leaves key: String?, until expiry: Int64? = nil) {
            (self.rule, self.query, self.key, self.expiry) = (rule, query, key, expiry)
        }
    }

    static let rows = [
        Row(
            "Amazon's Signature Version 4",
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=k%2Fs3&X-Amz-Date=20261123T024500Z&X-Amz-Expires=60"
                + "&X-Amz-SignedHeaders=host&X-Amz-Signature=abc", leaves: "", until: 1_795_401_960),
        Row(
            "what names a version or a part stays", "versionId=3&X-Amz-Signature=a&partNumber=1&X-Amz-Credential=k",
            leaves: "?versionId=3&partNumber=1"),
        Row(
            "what changes the response stays",
            "response-content-type=text%2Fplain&X-Amz-Signature=a&X-Amz-Credential=k",
            leaves: "?response-content-type=text%2Fplain"),
        Row("a date alone signs nothing", "X-Amz-Date=20261123T024500Z&a=b", leaves: nil),
        Row("nor does an empty signature", "X-Amz-Signature=&X-Amz-Credential=k", leaves: nil),
        Row("nor two of them", "X-Amz-Signature=a&X-Amz-Signature=b&X-Amz-Credential=k", leaves: nil),
        Row(
            "Amazon's Signature Version 2", "AWSAccessKeyId=k&Expires=1795401960&Signature=s%3D", leaves: "",
            until: 1_795_401_960),
        Row(
            "CloudFront with a canned policy", "a=1&Expires=1795401960&Signature=s&Key-Pair-Id=K", leaves: "?a=1",
            until: 1_795_401_960),
        Row("CloudFront with a custom policy", "Policy=p&Signature=s&Key-Pair-Id=K", leaves: ""),
        Row(
            "Google's V4", "X-Goog-Date=20261123T024500Z&X-Goog-Expires=60&X-Goog-Signature=s&generation=7",
            leaves: "?generation=7", until: 1_795_401_960),
        Row(
            "Google's V2", "GoogleAccessId=g&Expires=1795401960&Signature=s", leaves: "", until: 1_795_401_960),
        Row(
            "Azure's", "sv=2024-01-01&sr=b&se=2026-11-23T02%3A46%3A00Z&sp=r&sig=s%3D&rscd=attachment",
            leaves: "?rscd=attachment", until: 1_795_401_960),
        Row("names that others use for something else", "se=1&sp=2&sr=3&Expires=4&Policy=5", leaves: nil),
        Row("the rule's own", "verify=1-2&a=b", leaves: "?a=b"),
        Row("both", "verify=1&sig=s&sv=1&a=b", leaves: "?a=b"),
        Row("an expiry that cannot be read", "sv=1&sig=s&se=tomorrow", leaves: ""),
        Row("none at all", "a=b&c", leaves: nil), Row("nothing", "", leaves: nil),
    ]

    @Test(arguments: rows) func `the key leaves the signature out`(_ row: Row) throws {
        let uri = "https://store.example/o?" + row.query
        let names = ["verify"].compactMap { ParameterPattern($0) }
        let signed = SignedAddress(Array(uri.utf8), key: Array(uri.utf8), others: names)
        #expect(
            signed.map { String(decoding: $0.key, as: UTF8.self) }
                == row.key.map { "https://store.example/o\($0)#signed" })
        #expect(signed?.expiry?.secondsSinceEpoch == row.expiry)
    }

    @Test func `what the key rules replaced stays replaced`() {
        let uri = Array("https://a.example/o?sv=1&sig=s".utf8)
        let key = Array("https://store.example/o?sv=1&sig=s".utf8)
        #expect(SignedAddress(uri, key: key)?.key == Array("https://store.example/o#signed".utf8))
    }
}
