import Caching
import Message
import Testing

@Suite("Key rules")
struct KeyRulesTests {
    static func rules(
        drop: [String]? = nil, keep: [String]? = nil, sort: Bool = false, host: String? = nil
    ) -> KeyRules {
        let dropped = drop.map { QuerySelection.dropping($0.compactMap { ParameterPattern($0) }) }
        let kept = keep.map { QuerySelection.keeping($0.compactMap { ParameterPattern($0) }) }
        return KeyRules(query: dropped ?? kept ?? .all, sortsQuery: sort, host: host)
    }
    static let tracking = rules(drop: ["utm_*", "fbclid"])
    static let mirror = rules(host: "mirror.example")

    static func applied(_ rules: KeyRules, _ uri: String) -> String {
        var bytes = Array(uri.utf8)
        rules.apply(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    static let rows: [(rules: KeyRules, uri: String, expected: String)] = [
        (rules(), "http://a/p?b&a", "http://a/p?b&a"),
        (tracking, "http://a/p", "http://a/p"), (tracking, "http://a/p?", "http://a/p?"),
        (tracking, "http://a/p?x=1", "http://a/p?x=1"), (tracking, "http://a/p?fbclid=1", "http://a/p"),
        (tracking, "http://a/p?fbclid", "http://a/p"), (tracking, "http://a/p?fbclid2=1", "http://a/p?fbclid2=1"),
        (tracking, "http://a/p?FBCLID=1", "http://a/p?FBCLID=1"),
        (tracking, "http://a/p?fb%63lid=1", "http://a/p?fb%63lid=1"),
        (tracking, "http://a/p?utm_a=1&x=2&utm_b=3&y&fbclid=4", "http://a/p?x=2&y"),
        (tracking, "http://a/p?x=utm_a&utm_=1", "http://a/p?x=utm_a"),
        (tracking, "http://a/p?x=1;utm_a=2", "http://a/p?x=1;utm_a=2"),
        (tracking, "http://a/utm_a=1&fbclid=2", "http://a/utm_a=1&fbclid=2"),
        (tracking, "http://a/p?x=1?&utm_a=2", "http://a/p?x=1?"), (tracking, "http://a/p?utm_a&&x&", "http://a/p?&x&"),
        (rules(drop: ["*"]), "http://a/p?x=1&y", "http://a/p"),
        (rules(keep: ["id"]), "http://a/p?x&id=1&id=2&&idx", "http://a/p?id=1&id=2"),
        (rules(keep: ["id"]), "http://a/p?x", "http://a/p"),
        (rules(keep: ["v*"]), "http://a/p?v=1&va&w", "http://a/p?v=1&va"),
        (rules(sort: true), "http://a/p?b=2&a=1&b=1&a", "http://a/p?a=1&a&b=2&b=1"),
        (rules(sort: true), "http://a/p?b=1&&a", "http://a/p?&a&b=1"),
        (rules(sort: true), "http://a/b&a", "http://a/b&a"),
        (rules(sort: true), "http://a/p?ab=1&a=2", "http://a/p?a=2&ab=1"),
        (rules(drop: ["utm_*"], sort: true), "http://a/p?b&utm_x&a", "http://a/p?a&b"),
        (mirror, "http://m1.example/p?q", "http://mirror.example/p?q"),
        (mirror, "http://m1.example:8080/p", "http://mirror.example/p"),
        (mirror, "http://[::1]:8080/p", "http://mirror.example/p"),
        (mirror, "https://m1.example/p", "https://mirror.example/p"),
        (mirror, "http://m1.example*", "http://mirror.example*"),
        (mirror, "http://m1/p?u=http://m2/", "http://mirror.example/p?u=http://m2/"),
        (rules(drop: ["x"], host: "m"), "http://long.host.example/p?x=1&y=2", "http://m/p?y=2"),
    ]
    @Test(arguments: rows.indices) func `drop, keep, sort, fold`(_ index: Int) {
        let row = Self.rows[index]
        #expect(Self.applied(row.rules, row.uri) == row.expected, "row \(index)")
    }

    @Test func `bytes before the URI are not touched`() {
        var bytes = Array("x?utm_a=1http://a/p?utm_a=1".utf8)
        KeyRules(query: .dropping([ParameterPattern("utm_*")].compactMap { $0 }), host: "m").apply(to: &bytes, from: 9)
        #expect(String(decoding: bytes, as: UTF8.self) == "x?utm_a=1http://m/p")
    }

    @Test(arguments: ["", "a=b", "a&b", "a b", "*a", "a*b", "**", "ä", "a#"])
    func `a text that cannot be a parameter is refused`(_ text: String) {
        #expect(ParameterPattern(text) == nil)
    }

    @Test(arguments: 0..<200 as Range<UInt64>) func `applying key rules twice equals once, and never leaves the host`(
        _ seed: UInt64
    ) {
        var random = Seeded(seed)
        let all = [
            Self.tracking, Self.mirror, Self.rules(keep: ["a*", ""]), Self.rules(drop: ["*"]), Self.rules(sort: true),
            Self.rules(drop: ["a", "b*"], sort: true), Self.rules(keep: ["utm_*"], sort: true, host: "m.example"),
        ]
        let alphabet = Array("ab=&?;/%*:.#utm_".utf8)
        for _ in 0..<40 {
            let scheme = Bool.random(using: &random) ? "http://" : "https://"
            let host = ["a.example", "b.example:81", "[::1]"].randomElement(using: &random) ?? ""
            let rest = (0..<Int.random(in: 0...24, using: &random)).compactMap { _ in
                alphabet.randomElement(using: &random)
            }
            let uri = scheme + host + "/" + String(decoding: rest, as: UTF8.self)
            for rules in all {
                let once = Self.applied(rules, uri)
                #expect(Self.applied(rules, once) == once, "\(uri)")
                #expect(once.hasPrefix(scheme + (rules.host ?? host) + "/"), "\(uri) became \(once)")
                let path = uri.prefix { $0 != "?" }.dropFirst(scheme.count + host.count)
                #expect(once.prefix { $0 != "?" }.hasSuffix(path), "\(uri) became \(once)")
                #expect(parameters(once).isSubset(of: parameters(uri)), "\(uri) became \(once)")
            }
        }
    }

    private func parameters(_ uri: String) -> Set<Substring> {
        guard let mark = uri.firstIndex(of: "?") else { return [] }
        return Set(uri[uri.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false))
    }
}
