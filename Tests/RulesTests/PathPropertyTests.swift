import Testing

@testable import Rules

@Suite("Path patterns against a matcher that tries everything")
struct PathPropertyTests {
    private static let pieces = [
        "a", "b1", "/", "*", "{hex}", "{x}", "{digits:2}", "{hex:2}", "{a|b1|}", "{x:2}", "/{x}/", "{=x}",
    ]

    /// Whether the tokens match the bytes, by trying every length of each token.
    ///
    /// - Parameter taken: what the tokens before these have taken.
    private static func matches(
        _ tokens: ArraySlice<PathToken>, _ bytes: ArraySlice<UInt8>, _ taken: [ArraySlice<UInt8>] = []
    ) -> Bool {
        guard let token = tokens.first else { return bytes.isEmpty }
        return (0...bytes.count).contains { length in
            let part = bytes.prefix(length)
            let isPart =
                switch token {
                case .anything: true
                case .literal(let text): part.elementsEqual(text)
                case .oneOf(let texts): texts.contains { part.elementsEqual($0) }
                case .run(let kind, let count):
                    part.allSatisfy(kind.contains) && (count.map { length == $0 } ?? (length > 0))
                case .same(let index): part.elementsEqual(taken[index])
                }
            return isPart && matches(tokens.dropFirst(), bytes.dropFirst(length), taken + [part])
        }
    }

    @Test(arguments: 0..<400 as Range<UInt64>) func `both agree, and the parts make up the path`(_ seed: UInt64) throws
    {
        var random = Seeded(state: seed)
        let text =
            "/"
            + (0..<Int.random(in: 0...6, using: &random)).map { _ in Self.pieces.randomElement(using: &random)! }
            .joined()
        guard let tokens = pathTokens(Array(text.utf8)) else {
            #expect(text.contains("{=x}"), "what may be repeated has conditions")
            return
        }
        let repeats = text.contains("{=x}")
        for _ in 0..<50 {
            let length = Int.random(in: 0...7, using: &random)
            let path = ArraySlice([0x2F] + (0..<length).map { _ in Array("ab1/".utf8).randomElement(using: &random)! })
            let isMatch = Self.matches(tokens[...], path)
            let label = "\(text) \(String(decoding: path, as: UTF8.self))"
            #expect(pathMatches(tokens, path) == isMatch, "\(label)")
            let mayMatch = pathMayMatch(tokens, Array(path).span)
            #expect(mayMatch || !isMatch, "\(label)")
            if !tokens.contains(where: \.isPlaceholder) { #expect(mayMatch == isMatch, "\(label)") }
            let parts = tokens.indices.map { pathPart($0, of: tokens, in: path) }
            if !repeats { #expect(parts.allSatisfy { ($0 != nil) == isMatch }, "\(label)") }
            if isMatch { #expect(parts.flatMap { $0 ?? [] }.elementsEqual(path), "\(label)") }
        }
    }
}

private struct Seeded: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
