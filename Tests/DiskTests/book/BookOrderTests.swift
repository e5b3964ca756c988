import Testing

@testable import Disk

@Suite("The order of the book")
struct BookOrderTests {
    static let inverted = [
        "http://www.example.org:8080/a?b", "https://example.org/", "http://localhost", "http://a-b_c.example/*",
        "http://192.0.2.1/x", "https://192.0.2.1:1/", "http://[2001:db8::1]:65535/?", "http://example.org*",
        "http://ex%41mple.org/", "https://a.b.c.d.e.f/\u{e9}", "http://1.example/",
    ]

    @Test(arguments: inverted) func `a URI's order key begins with its kind and leads back to it`(_ text: String) {
        let key = Array(text.utf8)
        let order = BookOrder.orderKey(of: key)
        #expect(order.first != BookOrder.raw)
        #expect(back(order) == key)
    }

    static let raw = [
        "", "x", "http://", "HTTP://example.org/", "http://Example.org/", "http://example.org:80/",
        "https://example.org:443/", "http://example.org:/", "http://example.org:080/", "http://example.org:65536/",
        "http://example.org./", "http://.example.org/", "http://a..b/", "http://u@example.org/", "http://[::1]x/",
        "http://[::1", "http://[]/", "http://[::G]/", "http://a!b/", "http://a b/", "ftp://example.org/", "http:///x",
        "http://example.org:8x/", "http://[::1]x80/",
    ]

    @Test(arguments: raw) func `a key that its order key could not restore is kept as it is, behind all URIs`(
        _ text: String
    ) {
        let key = Array(text.utf8)
        let order = BookOrder.orderKey(of: key)
        #expect(order == [BookOrder.raw] + key)
        #expect(back(order) == key)
    }

    @Test func `a host comes before the hosts below it, and everything below a domain is together`() {
        let keys = [
            "http://example.org/", "https://example.org/", "http://example.org:8080/", "http://a.example.org/",
            "http://a.a.example.org/", "http://b.example.org/", "http://example-x.org/", "http://example.orgx/",
            "http://zz.org/", "http://192.0.2.1/", "raw",
        ]
        let sorted = keys.shuffled().sorted {
            bookCompare(BookOrder.orderKey(of: Array($0.utf8)), BookOrder.orderKey(of: Array($1.utf8))) < 0
        }
        #expect(
            sorted == [
                "http://example-x.org/", "http://example.org/", "https://example.org/", "http://example.org:8080/",
                "http://a.example.org/", "http://a.a.example.org/", "http://b.example.org/", "http://zz.org/",
                "http://example.orgx/", "http://192.0.2.1/", "raw",
            ])
    }

    @Test func `a key is cut only if it is too long for LMDB, and cut keys stay distinct`() {
        // 4 bytes more than the path: kind, end of host, port, scheme; "http://h" becomes "h.".
        let fits = Array(("http://h/" + String(repeating: "p", count: BookOrder.orderBytesMax - 8)).utf8)
        let id = ObjectID(rawValue: 1)
        #expect(BookOrder.orderKey(of: fits).count == BookOrder.orderBytesMax)
        #expect(BookOrder.bookKey(id, fits).isCut == false)
        let (first, firstIsCut) = BookOrder.bookKey(id, fits + [0x71])
        let (second, secondIsCut) = BookOrder.bookKey(id, fits + [0x72])
        #expect(firstIsCut && secondIsCut)
        #expect(first.count == BookOrder.bookKeyBytesMax && second.count == BookOrder.bookKeyBytesMax)
        #expect(first.prefix(BookOrder.cutBytes) == second.prefix(BookOrder.cutBytes))
        #expect(first != second)
    }

    @Test(arguments: 0..<20) func `any key leads back to itself, and each prefix's bounds hold it`(_ seed: UInt64) {
        var random = BookRandom(seed)
        let pieces = [
            "http://", "https://", "a", "b.c", ".", ":", "8", "80", "/", "?", "[", "]", "::1", "A", "\0", "!", "@",
        ]
        for _ in 0..<2000 {
            let text = (0..<Int.random(in: 0...7, using: &random)).map { _ in pieces.randomElement(using: &random)! }
            let key = Array(text.joined().utf8)
            let order = BookOrder.orderKey(of: key)
            #expect(back(order) == key)
            for count in 0...key.count {
                let (lower, upper) = BookRange.keyPrefix(Array(key.prefix(count))).bounds
                let bookKey = BookOrder.bookKey(ObjectID(rawValue: 1), key).bytes
                #expect(
                    bookCompare(lower, bookKey) <= 0 && upper.map { bookCompare(bookKey, $0) < 0 } != false,
                    "\(text.joined()) by its first \(count)")
            }
        }
    }

    @Test func `bytes that are no order key lead nowhere, without a trap`() {
        var random = BookRandom(3)
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...12, using: &random)).map { _ -> UInt8 in
                [0x10, 0x20, 0x2E, 0x21, 0x61, 0x68, 0x73, 0, 0xFF].randomElement(using: &random)!
            }
            _ = back(bytes)
        }
        #expect(back([]) == nil)
        #expect(back([BookOrder.name]) == nil)
        #expect(back([BookOrder.name, BookOrder.hostEnd, 0, 80, 0x68]) == nil)
        #expect(back([0x55, 0x55]) == nil)
    }

    private func back(_ order: [UInt8]) -> [UInt8]? {
        unsafe order.withUnsafeBytes { unsafe BookOrder.key(ofOrder: $0) }
    }
}
