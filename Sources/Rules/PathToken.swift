/// One part of a path pattern.
enum PathToken: Sendable, Hashable {
    case literal([UInt8])
    /// `*`: any number of any bytes.
    case anything
    /// Bytes of a class, within a segment: so many, or at least one.
    case run(PathByteClass, count: Int?)
    case oneOf([[UInt8]])
    /// What the token with this index takes. Where only the shape of a path is compared, it is at least one byte within a segment.
    case same(Int)

    var isPlaceholder: Bool {
        switch self {
        case .literal, .anything: false
        case .run, .oneOf, .same: true
        }
    }

    /// How many bytes it settles at least: those of its texts, and those of which it says how many there are.
    var settledBytes: Int {
        switch self {
        case .literal(let text): text.count
        case .anything: 0
        case .run(_, let count): count ?? 0
        case .oneOf(let texts): texts.map(\.count).min() ?? 0
        case .same: 4
        }
    }

    /// How many hexadecimal digits it takes. Nil if it takes others, or any number.
    var hexCount: Int? {
        if case .run(.hex, let count) = self { count } else { nil }
    }

    /// The token as an origin might read it.
    var plain: PathToken {
        switch self {
        case .literal(let bytes): .literal(withSingleSlashes(percentDecoded(bytes)))
        case .oneOf(let texts): .oneOf(texts.map { percentDecoded($0) })
        case .anything, .run, .same: self
        }
    }
}

/// Which bytes a placeholder takes.
enum PathByteClass: Sendable, Hashable {
    case hex, digits, segment

    func contains(_ byte: UInt8) -> Bool {
        switch (self, byte) {
        case (.segment, _): byte != UInt8(ascii: "/")
        case (.hex, 0x30...0x39), (.hex, 0x41...0x46), (.hex, 0x61...0x66), (.digits, 0x30...0x39): true
        case (.hex, _), (.digits, _): false
        }
    }
}

/// A pattern with placeholders has at most so many parts: each costs a walk over the path.
let pathTokensMax = 64

/// Divides a pattern into its parts. Returns nil if a brace is open, empty or nested, if a class or a count is wrong, or if there are too
/// many parts.
///
/// - Parameter names: gets the index of each placeholder that is a run, by its name. Of several with one name the last counts.
func pathTokens(_ bytes: [UInt8], names: inout [String: Int]) -> [PathToken]? {
    var tokens: [PathToken] = []
    var literal: [UInt8] = []
    func endLiteral() {
        if !literal.isEmpty { tokens.append(.literal(literal)) }
        literal = []
    }
    var index = 0
    while index < bytes.count {
        switch bytes[index] {
        case UInt8(ascii: "*"):
            endLiteral()
            if tokens.last != .anything { tokens.append(.anything) }
        case UInt8(ascii: "{"):
            endLiteral()
            guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "}")) else { return nil }
            let inside = bytes[(index + 1)..<end]
            let token: PathToken
            if inside.first == UInt8(ascii: "=") {
                guard let earlier = names[placeholderName(inside.dropFirst())] else { return nil }
                token = .same(earlier)
            } else {
                guard let other = placeholder(inside) else { return nil }
                token = other
                if case .run = token { names[placeholderName(inside)] = tokens.count }
            }
            tokens.append(token)
            index = end
        case UInt8(ascii: "}"): return nil
        default: literal.append(bytes[index])
        }
        index += 1
    }
    endLiteral()
    guard tokens.allSatisfy({ isUnambiguous($0, tokens) }) else { return nil }
    return tokens.count <= pathTokensMax || !tokens.contains(where: \.isPlaceholder) ? tokens : nil
}

/// Whether there is one answer to what a token repeats: it repeats a whole segment, and so many segments follow, whatever the path.
private func isUnambiguous(_ token: PathToken, _ tokens: [PathToken]) -> Bool {
    guard case .same(let index) = token else { return true }
    guard index > 0, index + 1 < tokens.count, case .literal(let before) = tokens[index - 1],
        case .literal(let behind) = tokens[index + 1]
    else { return false }
    return before.last == UInt8(ascii: "/") && behind.first == UInt8(ascii: "/")
        && !tokens[index...].contains(.anything)
}

func pathTokens(_ bytes: [UInt8]) -> [PathToken]? {
    var names: [String: Int] = [:]
    return pathTokens(bytes, names: &names)
}

private func placeholderName(_ inside: ArraySlice<UInt8>) -> String {
    String(decoding: inside.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
}

/// What stands between braces.
private func placeholder(_ inside: ArraySlice<UInt8>) -> PathToken? {
    guard !inside.isEmpty, !inside.contains(where: { "{*/".utf8.contains($0) }) else { return nil }
    if inside.contains(UInt8(ascii: "|")) {
        return .oneOf(inside.split(separator: UInt8(ascii: "|"), omittingEmptySubsequences: false).map { Array($0) })
    }
    let parts = inside.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    let kind = PathByteClass(parts[0])
    guard isName(parts[0]) else { return nil }
    if parts.count == 1 { return .run(kind, count: nil) }
    guard parts[1].allSatisfy(PathByteClass.digits.contains), parts[1].first != UInt8(ascii: "0"),
        let count = Int(String(decoding: parts[1], as: UTF8.self)), (1...512).contains(count)
    else { return nil }
    return .run(kind, count: count)
}

private func isName(_ bytes: ArraySlice<UInt8>) -> Bool {
    !bytes.isEmpty
        && bytes.allSatisfy { (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
}

extension PathByteClass {
    fileprivate init(_ name: ArraySlice<UInt8>) {
        self = name.elementsEqual("hex".utf8) ? .hex : name.elementsEqual("digits".utf8) ? .digits : .segment
    }
}
