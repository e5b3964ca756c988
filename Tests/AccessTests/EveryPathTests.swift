import Access
import Message
import Rules
import Testing

@Suite("Verdicts that hold for every path of a host")
struct EveryPathTests {
    static let rows: [(rules: [AccessRule], request: AccessRequest, holds: Bool)] = [
        ([], request("a.example"), true),
        ([rule(.allow)], request("a.example"), true),
        ([rule(.allow, host: ["a.example"])], request("a.example"), true),
        ([rule(.allow, host: ["a.example"])], request("b.example"), false),
        ([rule(.deny(reason: nil), host: ["a.example"]), rule(.allow)], request("a.example"), false),
        // A path anywhere among the rules that concern the host, allowed or denied, before or behind the one that decides.
        ([rule(.allow, path: ["/a/*"]), rule(.allow)], request("a.example", path: "/a/b"), false),
        ([rule(.allow, path: ["/a/*"]), rule(.allow)], request("a.example", path: "/b"), false),
        ([rule(.deny(reason: nil), path: ["/a/*"]), rule(.allow)], request("a.example", path: "/b"), false),
        ([rule(.allow), rule(.allow, path: ["/a/*"])], request("a.example"), false),
        ([rule(.allow, host: ["a.example"], path: ["/a"]), rule(.allow)], request("a.example"), false),
        // Not one that concerns others.
        ([rule(.allow, host: ["b.example"], path: ["/a"]), rule(.allow)], request("a.example"), true),
        ([rule(.deny(reason: nil), port: [81], path: ["/a"]), rule(.allow)], request("a.example"), true),
        ([rule(.deny(reason: nil), method: ["PUT"], path: ["/a"]), rule(.allow)], request("a.example"), true),
        (
            [rule(.deny(reason: nil), user: ["bob"], path: ["/a"]), rule(.allow)], request("a.example", user: "ann"),
            true
        ),
        (
            [rule(.deny(reason: nil), user: ["ann"], path: ["/a"]), rule(.allow)], request("a.example", user: "ann"),
            false
        ),
        ([rule(.deny(reason: nil), client: ["10.0.0.0/8"], path: ["/a"]), rule(.allow)], request("a.example"), true),
        // What the host resolves to decides.
        ([rule(.deny(reason: nil), address: ["192.0.2.0/24"]), rule(.allow)], request("a.example"), false),
        ([rule(.allow, address: ["127.0.0.1"])], request("127.0.0.1"), true),
        ([rule(.allow, address: ["127.0.0.1"], path: ["/a"]), rule(.allow)], request("127.0.0.1", path: "/a"), false),
        ([rule(.allow)], request("127.0.0.1"), false),
    ]
    @Test(arguments: rows.indices) func `what the rules depend on`(_ index: Int) {
        let row = Self.rows[index]
        #expect(policy(row.rules).allowsEveryPath(row.request) == row.holds)
    }

    /// Where it holds, no path changes the verdict.
    @Test(arguments: rows.indices, ["/", "/a", "/a/b", "/%61", "//a", "/x?y"])
    func `no path has another verdict`(_ index: Int, _ path: String) {
        let row = Self.rows[index]
        guard row.holds else { return }
        let other = row.request.with(pathAndQuery: ArraySlice(path.utf8))
        #expect(policy(row.rules).decide(other, address: nil) == policy(row.rules).decide(row.request, address: nil))
    }
}
