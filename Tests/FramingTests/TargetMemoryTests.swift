import Framing
import Message
import Testing

@Suite("TargetMemory: requests for the origin of the one before") struct TargetMemoryTests {
    private static func get(_ target: String, method: String = "GET", version: String = "HTTP/1.1") -> String {
        "\(method) \(target) \(version)\r\nHost: h.example:8080\r\n\r\n"
    }

    /// Targets that differ little from each other.
    private static let targets = [
        "http://h.example:8080/a", "http://h.example:8080/", "http://h.example:8080/%7ea/../b?c=/d",
        "http://h.example:8081/a", "http://h.example:808/a", "http://h.example:80800/a", "http://h.example:8080a/",
        "http://h.example:0808/a", "http://h.example:80/a", "http://h.example:/a", "http://h.example/a",
        "http://h.example./a", "http://h.exampl:8080/a", "http://h.example2:8080/a", "http://i.example:8080/a",
        "http://h..example:8080/a", "HTTP://h.example:8080/a", "http://H.example:8080/a", "http://h.examplE:8080/a",
        "https://h.example:8080/a", "https://h.example:443/a", "https://h.example/a", "ftp://h.example:8080/a",
        "http:/h.example:8080/a", "http://u@h.example:8080/a", "http://h.example:8080@i.example/a",
        "http://h.example%2e:8080/a", "http://h.example:8080", "http://h.example:8080?a", "http://h.example:8080?/a",
        "http://h.example:8080#/a", "http://h.example:8080/a#b", "http://h.example:8080/a b",
        "http://h.example:8080/\u{7}",
        "http://h.example:8080/é", "http://[::1]:8080/a", "http://[::2]:8080/a", "http://[::1]/a", "http://127.0.0.1/a",
        "http://h.example:8080//", "/a", "/h.example:8080/a", "*", "h.example:8080", "", "http://", "http:///a",
        "http://h.example:8080/\(String(repeating: "x", count: 90))",
    ]

    @Test(arguments: targets) func `a target is what it is without the one before it`(_ one: String) {
        for other in Self.targets {
            expectSameWithMemory([one, one, other, one, other, other].map { (7, Self.get($0)) })
        }
    }

    @Test(arguments: targets) func `so is a request line of another form`(_ target: String) {
        let lines = [
            Self.get(target, method: "HEAD"), Self.get(target, method: "POST"), Self.get(target, method: "CONNECT"),
            Self.get(target, method: "OPTIONS"), Self.get(target, method: "get"), Self.get(target, method: "GETS"),
            Self.get(target, version: "HTTP/1.0"), Self.get(target, version: "HTTP/1.2"),
            Self.get(target, version: "HTTP/2.0"), Self.get(target, version: "http/1.1"),
            Self.get(target, version: "HTTP/1.1 "), Self.get(" \(target)"), Self.get("\(target) "),
            Self.get(target).replacing("\r\n", with: "\n"), Self.get(target).replacing("\r\n", with: "\r"),
            "GET \(target)\r\n\r\n", "\r\n" + Self.get(target), "\n" + Self.get(target),
        ]
        for line in lines {
            expectSameWithMemory([(7, Self.get(target)), (7, Self.get(target)), (7, line), (7, line)])
        }
    }

    @Test func `any part of a head is incomplete`() {
        let head = Self.get("http://h.example:8080/a")
        for count in 0...head.utf8.count {
            expectSameWithMemory([(7, head), (7, head), (7, String(head.prefix(count))), (7, head)])
        }
    }

    @Test func `one byte that differs is seen, wherever it is`() {
        let head = Self.get("http://h.example:8080/a")
        let bytes = Array(head.utf8)
        for at in bytes.indices {
            for byte: UInt8 in [0x00, 0x20, 0x23, 0x2F, 0x3A, 0x3F, 0x40, 0x41, 0x0A, 0x0D, 0x7F]
            where byte != bytes[at] {
                var changed = bytes
                changed[at] = byte
                expectSameWithMemory([(7, head), (7, head), (7, String(decoding: changed, as: UTF8.self)), (7, head)])
            }
        }
    }

    @Test(arguments: 1...80) func `origins of any length`(_ count: Int) {
        let host = String(repeating: "h", count: count)
        for origin in ["http://\(host)/", "https://\(host)/", "http://\(host):1/"] {
            expectSameWithMemory(
                [origin + "a", origin + "a", "http://\(host)h/a", origin + "b", origin].map { (7, Self.get($0)) })
        }
    }

    @Test func `connections that share an entry do not get each other's origins`() {
        let (one, two) = (Self.get("http://h.example/"), Self.get("http://i.example/"))
        expectSameWithMemory([(1, one), (257, two), (1, one), (257, two), (1, two), (257, one), (1, one), (1, one)])
    }

    @Test func `a connection that asks another origin each time`() {
        expectSameWithMemory((0..<20).map { (7, Self.get("http://h\($0 % 7).example/\($0)")) })
    }

    @Test func `limits hold behind an origin that is remembered`() {
        for bound in 30...90 {
            var limits = Limits()
            limits.targetBytesMax = bound
            let long = "http://h.example:8080/" + String(repeating: "x", count: 30)
            expectSameWithMemory([(7, Self.get("http://h.example:8080/")), (7, Self.get(long))], limits: limits)
            limits = Limits()
            limits.headBytesMax = bound
            expectSameWithMemory([(7, Self.get("http://h.example:8080/")), (7, Self.get(long))], limits: limits)
        }
    }

    @Test func `Host is checked where the lines differ, or the form`() {
        let lines = ["Host: h.example", "Host: i.example", "Host: h..example", "Host:", "Host: a\r\nHost: b", "X: 1"]
        for version in ["HTTP/1.0", "HTTP/1.1"] {
            let heads = ["http://h.example/a", "http://i.example/a", "/a"].flatMap { target in
                lines.map { "GET \(target) \(version)\r\n\($0)\r\n\r\n" }
            }
            for one in heads {
                for other in heads { expectSameWithMemory([(7, one), (7, one), (7, other), (7, one), (7, other)]) }
            }
        }
        let without = ["HTTP/1.0", "HTTP/1.1"].map { "GET http://h.example/a \($0)\r\nX: 1\r\n\r\n" }
        expectSameWithMemory([0, 0, 1, 0, 0, 1].map { (7, without[$0]) })
    }
}

@Suite("RFC 9110 §4.2.3: targets that are normalised as they stand") struct NormalisedTargetTests {
    static let rows: [(target: String, isNormalised: Bool)] = [
        ("http://h.example/a", true), ("http://h.example/", true), ("http://h.example:8080/A%7e/..", true),
        ("https://h.example/?q", true), ("https://h.example:80/", true), ("http://[::1]:8080/", true),
        ("http://127.0.0.1/", true), ("http://h.example", false), ("http://h.example?q", false),
        ("http://h.example:80/", false), ("https://h.example:443/", false), ("http://h.example:/", false),
        ("http://h.example:08080/", false), ("http://h.example./", false), ("http://H.example/", false),
        ("http://h.examplE/", false), ("HTTP://h.example/", false), ("httpS://h.example/", false),
        ("http://[::A]/", false), ("/a", false),
    ]

    @Test(arguments: rows) func `such a target is copied as a whole`(_ row: (target: String, isNormalised: Bool)) throws
    {
        let bytes = Array("GET \(row.target) HTTP/1.1\r\nHost: h.example\r\n\r\n".utf8)
        let parsed = try #require(parseRequest(bytes))
        #expect(parsed.error == nil)
        #expect(parsed.parsed.isNormalised == row.isNormalised)
        var composed = parsed.parsed
        composed.isNormalised = false
        var (copy, uri): ([UInt8], [UInt8]) = ([], [])
        appendNormalisedURI(parsed.parsed, of: bytes.span, to: &copy)
        appendNormalisedURI(composed, of: bytes.span, to: &uri)
        #expect(text(copy) == text(uri))
        #expect((text(uri) == row.target) == row.isNormalised)
    }
}
