import Message
import Testing

/// The short ways must lead where the long ones do.
@Suite("Fast paths accept nothing that the grammar refuses, with the same result")
struct PlainAuthorityTests {
    static let pieces =
        [
            "a", "Z", "0", "127.0.0.1", "www.example.com", ".", "..", "-", "_", "~", ":", ":0", ":80", ":65535",
            ":65536", "@", "%41",
            "[::1]", "/", "?", "a-long-name-of-more-than-sixteen-bytes", "\u{7F}", "!", "",
        ].map { Array($0.utf8) } + [[0x80], [0xC1], [0xFF]]

    @Test(arguments: 0..<64) func `a plain authority gives the result of parseAuthority`(_ seed: Int) {
        var generator = SeededNumbers(state: UInt64(seed))
        for _ in 0..<200 {
            // A byte before, as in a target or a field; and something behind that must not be looked at.
            let text = (0..<Int.random(in: 0...4, using: &generator)).flatMap { _ in
                Self.pieces.randomElement(using: &generator) ?? []
            }
            let bytes = [0x20] + text + Array(" HTTP/1.1".utf8)
            let limit = 1 + text.count
            guard let (plain, end) = parsePlainAuthority(unsafe bytes.span.bytes, from: 1, to: limit) else { continue }
            #expect(end == bytes[1..<limit].firstIndex { $0 == 0x2F || $0 == 0x3F } ?? limit)
            #expect((try? parseAuthority(bytes.span, in: 1..<end)) == plain, "\(text)")
        }
    }

    static let plain: [(String, String, UInt16?)] = [
        ("a", "a", nil), ("127.0.0.1:1234", "127.0.0.1", 1234), ("www.example.com:8080/x", "www.example.com", 8080),
        ("a.b-c.example./", "a.b-c.example", nil), ("a:65535?q", "a", 65535),
        ("a-long-name-of-more-than-sixteen-bytes.example:1", "a-long-name-of-more-than-sixteen-bytes.example", 1),
    ]
    @Test(arguments: plain) func `the fast paths accept the common forms`(
        _ text: String, _ host: String, _ port: UInt16?
    ) throws {
        let bytes = Array("/\(text)".utf8)
        let (authority, _) = try #require(parsePlainAuthority(unsafe bytes.span.bytes, from: 1, to: bytes.count))
        #expect(String(decoding: bytes[authority.host], as: UTF8.self) == host)
        #expect(authority.port == port)
    }

    @Test(arguments: 1...40) func `equal compares every byte`(_ count: Int) {
        let first = (0..<count).map { UInt8($0) }
        #expect(equal(unsafe (first + first).span.bytes, 0, count, count: count))
        for index in 0..<count {
            var second = first
            second[index] ^= 0x80
            #expect(!equal(unsafe (first + second).span.bytes, 0, count, count: count))
        }
    }

    /// Each byte at each place, before and behind the blocks of sixteen.
    @Test(arguments: 1...50) func `a scan finds the first matching byte`(_ count: Int) {
        for index in 0..<count {
            var bytes = [UInt8](repeating: 0x61, count: count + 3)
            bytes[index] = 0x40
            bytes[count] = 0x40
            let found = scan(unsafe bytes.span.bytes, from: 0, to: count) { $0 .== vector(0x40) }
            #expect(found == index)
            #expect(scan(unsafe bytes.span.bytes, from: index + 1, to: count) { $0 .== vector(0x40) } == count)
            guard index > 0 else { continue }
            let pair = scanPairs(unsafe bytes.span.bytes, from: 1, to: count) {
                ($0 .== vector(0x40)) .& ($1 .== vector(0x61))
            }
            #expect(pair == index)
        }
    }
}

/// Numbers that are the same for the same seed (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
