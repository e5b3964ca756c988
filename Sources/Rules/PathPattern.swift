/// A value of a `path` condition: `/pool/*`, `*.deb`, `/`, `/v2/*/blobs/sha256:{hex:64}`.
///
/// The pattern is compared byte by byte with the whole path as sent, without the query: case matters, and `%7E` is not `~`. `*` matches any
/// number of any bytes, "/" included. Braces stay within a segment:
///
/// | | matches |
/// |---|---|
/// | `{hex}`, `{hex:64}` | one or more hexadecimal digits; exactly 64 of them |
/// | `{digits}`, `{digits:8}` | one or more decimal digits; exactly 8 of them |
/// | `{jar\|pom}` | one of these texts; one of them may be empty |
/// | `{=version}` | what `{version}` matches earlier in the pattern, where that is a whole segment with no `*` behind it |
/// | `{version}`, `{letters:2}` | one or more bytes other than "/"; exactly 2 of them. The names `{package}`, `{project}` and `{scope}` tell what a release is of; others are for readers |
package struct PathPattern: Sendable, Hashable, CustomStringConvertible {
    package let description: String
    let tokens: [PathToken]
    /// The tokens as an origin might read them (`plainPath`).
    private let plainTokens: [PathToken]
    /// The indices of placeholders among the tokens, by their names.
    private let names: [String: Int]

    /// Returns nil if the text does not begin with "/" or "*", if it contains bytes that no path can have (`?`, `#`, spaces, bytes beyond
    /// ASCII), if it has segments "." or "..", which clients remove before they send a path, or if its braces are wrong.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        var names: [String: Int] = [:]
        guard let first = bytes.first, first == UInt8(ascii: "/") || first == UInt8(ascii: "*"),
            bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }),
            !hasDotSegment(percentDecoded(bytes)), let tokens = pathTokens(bytes, names: &names)
        else { return nil }
        description = text
        self.tokens = tokens
        plainTokens = tokens.map(\.plain)
        self.names = names
    }

    /// How special the pattern is: the bytes of a path that it settles at least.
    package var settledBytes: Int { tokens.reduce(0) { $0 + $1.settledBytes } }

    /// A path that matches the pattern, as an example.
    package var example: [UInt8] {
        var parts: [[UInt8]] = []
        for token in tokens {
            switch token {
            case .literal(let text): parts.append(text)
            case .anything: parts.append(parts.isEmpty ? Array("/repository".utf8) : Array("example".utf8))
            case .run(.segment, let count):
                parts.append(count.map { Array(repeating: 0x61, count: $0) } ?? Array("name".utf8))
            case .run(_, let count): parts.append(Array(repeating: UInt8(ascii: "1"), count: count ?? 1))
            case .oneOf(let texts): parts.append(texts.first { !$0.isEmpty } ?? [])
            case .same(let index): parts.append(parts[index])
            }
        }
        return Array(parts.joined())
    }

    /// Whether the pattern has a placeholder with this name.
    package func names(_ placeholder: String) -> Bool { names[placeholder] != nil }

    /// What the placeholders of a path that matches stand for, by their names.
    func placeholders(in path: ArraySlice<UInt8>) -> [String: ArraySlice<UInt8>] {
        names.compactMapValues { pathPart($0, of: tokens, in: path) }
    }

    /// - Parameter plain: the result of `plainPath`.
    func placeholders(inPlain plain: ArraySlice<UInt8>) -> [String: ArraySlice<UInt8>] {
        names.compactMapValues { pathPart($0, of: plainTokens, in: plain) }
    }

    package func matches(_ path: ArraySlice<UInt8>) -> Bool { pathMatches(tokens, path) }

    /// Whether the pattern may match. False only if it does not: a placeholder counts as if anything could stand there. Allocates nothing.
    ///
    /// - Parameter path: the path as sent, without the query.
    package func mayMatch(_ path: borrowing Span<UInt8>) -> Bool { pathMayMatch(tokens, path) }

    /// - Parameter plain: the result of `plainPath`.
    func matches(plain: ArraySlice<UInt8>) -> Bool { pathMatches(plainTokens, plain) }

    /// So many hexadecimal digits as they stand in the path: those of the last `{hex:count}`, or of several `{hex:n}` that have as many
    /// together, because some addresses divide a digest into directories. Returns nil if the path does not match, or if the pattern has
    /// neither.
    package func hexDigits(_ count: Int, in path: ArraySlice<UInt8>) -> [UInt8]? {
        let indices = indicesOfHexDigits(count)
        let parts = indices.compactMap { pathPart($0, of: tokens, in: path) }
        return parts.isEmpty || parts.count < indices.count ? nil : Array(parts.joined())
    }

    /// Whether `hexDigits` can find so many.
    package func hasHexDigits(_ count: Int) -> Bool { !indicesOfHexDigits(count).isEmpty }

    private func indicesOfHexDigits(_ count: Int) -> [Int] {
        if let index = tokens.lastIndex(of: .run(.hex, count: count)) { return [index] }
        let all = tokens.indices.filter { tokens[$0].hexCount != nil }
        return all.reduce(0) { $0 + (tokens[$1].hexCount ?? 0) } == count ? all : []
    }
}
