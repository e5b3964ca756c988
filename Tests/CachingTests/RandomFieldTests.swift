import Message
import Testing

@testable import Caching

/// A fixed sequence, so that a failure comes again.
private struct Noise {
    var state: UInt64
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 33
    }
    /// Mostly what the parser knows, sometimes any byte.
    mutating func bytes(_ count: Int, of alphabet: [UInt8]) -> [UInt8] {
        (0..<count).map { _ in
            next() % 20 == 0 ? UInt8(truncatingIfNeeded: next()) : alphabet[Int(next() % UInt64(alphabet.count))]
        }
    }
}

@Suite("Parsers of hostile fields neither trap nor lie")
struct RandomFieldTests {
    @Test func `Larder-Policy`() {
        var noise = Noise(state: 1)
        let words = [
            "cache-first", "ttl", "=", ", ", ";", "?1", "?0", "99999999999999", "999999999999999", "-1", "1.5", "\"",
            "(", ")",
            "storage", "pinned", "object-size-max", ":", "*", "no-read", "cache-only", "@1", "%\"",
        ]
        for _ in 0..<5_000 {
            var text = ""
            for _ in 0..<(noise.next() % 12) { text += words[Int(noise.next() % UInt64(words.count))] }
            guard let changes = LarderPolicy.parse(Array(text.utf8)) else { continue }
            if let ttl = changes.ttl { #expect(ttl >= .zero && ttl <= .deltaMax) }
        }
        for _ in 0..<5_000 {
            _ = LarderPolicy.parse(noise.bytes(Int(noise.next() % 40), of: Array("abc=;,?01-.\"() *:".utf8)))
        }
    }

    @Test func `applying key rules twice equals once, and scheme and path stay`() {
        var noise = Noise(state: 2)
        let pattern = ParameterPattern("a*")!
        let rules = [QuerySelection.all, .dropping([pattern]), .keeping([pattern])].flatMap { query in
            [false, true].flatMap { sorts in
                [nil, "m.example"].map { KeyRules(query: query, sortsQuery: sorts, host: $0) }
            }
        }
        for _ in 0..<1_000 {
            let uri = Array("http://h:8/p".utf8) + noise.bytes(Int(noise.next() % 16), of: Array("?&&=aab/*:".utf8))
            for rule in rules {
                var once = uri
                rule.apply(to: &once)
                var twice = once
                rule.apply(to: &twice)
                #expect(once == twice, "\(String(decoding: uri, as: UTF8.self))")
                #expect(once.starts(with: "http://".utf8))
                let path = { (uri: [UInt8]) in uri.dropFirst(7).drop { $0 != 0x2F }.prefix { $0 != 0x3F } }
                #expect(path(uri).elementsEqual(path(once)))
            }
        }
    }

    @Test func `ranges`() {
        var noise = Noise(state: 3)
        let numbers = [
            "0", "1", "9", "10", "18446744073709551615", "18446744073709551614", "18446744073709551616",
            "9223372036854775807",
            "9223372036854775808", "", "-", ",", " ", "/", "*", "bytes ", "bytes=",
        ]
        for _ in 0..<10_000 {
            var text = noise.next() % 2 == 0 ? "bytes=" : "bytes "
            for _ in 0..<(1 + noise.next() % 8) { text += numbers[Int(noise.next() % UInt64(numbers.count))] }
            for spec in parseByteRanges(text.utf8) ?? [] {
                for length in [0, 1, 10, UInt64(Int.max), .max] {
                    if let range = spec.resolve(against: length) {
                        // Of empty content a suffix is nothing, which is all of it.
                        #expect(range.isEmpty == (length == 0) && range.upperBound <= length)
                    }
                }
            }
            if let range = ContentRange(parsing: text.utf8), let bytes = range.range {
                #expect(!bytes.isEmpty && bytes.upperBound <= octetCountMax)
                if let length = range.completeLength { #expect(bytes.upperBound <= length) }
                #expect(ContentRange(parsing: range.wire) == range)
            }
        }
    }

    @Test func `Accept-Encoding`() {
        var noise = Noise(state: 4)
        let words = [
            "gzip", "x-gzip", "br", "*", "identity", ";q=", "0", "1", "0.5", "1.001", "0.0001", ",", " ", ";", "=", "q",
            "\"",
        ]
        for _ in 0..<5_000 {
            var value = ""
            for _ in 0..<(noise.next() % 10) { value += words[Int(noise.next() % UInt64(words.count))] }
            var fields = Fields()
            fields.append(.acceptEncoding, Array(value.utf8))
            let accepted = AcceptedCodings(fields)
            for coding in ContentCoding.allCases { #expect((0...1000).contains(accepted.weight(of: coding))) }
        }
    }
}
