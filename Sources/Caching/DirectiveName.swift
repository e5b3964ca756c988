import Message

/// The directives of requests and responses that Larder knows.
enum DirectiveName: String, CaseIterable {
    case noCache = "no-cache"
    case noStore = "no-store"
    case noTransform = "no-transform"
    case onlyIfCached = "only-if-cached"
    case maxAge = "max-age"
    case minFresh = "min-fresh"
    case maxStale = "max-stale"
    case staleIfError = "stale-if-error"
    case isPrivate = "private"
    case isPublic = "public"
    case mustRevalidate = "must-revalidate"
    case proxyRevalidate = "proxy-revalidate"
    case mustUnderstand = "must-understand"
    case immutable = "immutable"
    case sMaxAge = "s-maxage"
    case staleWhileRevalidate = "stale-while-revalidate"

    /// The argument is a time in seconds.
    var takesSeconds: Bool {
        switch self {
        case .maxAge, .sMaxAge, .minFresh, .maxStale, .staleIfError, .staleWhileRevalidate: true
        case .noCache, .noStore, .noTransform, .onlyIfCached, .isPrivate, .isPublic, .mustRevalidate, .proxyRevalidate,
            .mustUnderstand, .immutable:
            false
        }
    }
    /// In responses, the argument is a list of field names.
    var takesNames: Bool { self == .noCache || self == .isPrivate }

    /// The spellings by length, because few directives have the same length.
    private static let spellings: [[(name: DirectiveName, bytes: [UInt8])]] = (0...lengthMax).map { length in
        allCases.map { ($0, Array($0.rawValue.utf8)) }.filter { $1.count == length }
    }
    private static let lengthMax = allCases.map(\.rawValue.utf8.count).max()!

    /// Finds the directive that is spelled there, in upper or lower case (RFC 9111 §5.2). Returns nil if it is unknown.
    init?(_ range: Range<Int>, of bytes: borrowing Span<UInt8>) {
        guard range.count < Self.spellings.count else { return nil }
        for spelling in Self.spellings[range.count] {
            var offset = 0
            while offset < range.count, asciiLowercased(bytes[range.lowerBound + offset]) == spelling.bytes[offset] {
                offset += 1
            }
            if offset == range.count {
                self = spelling.name
                return
            }
        }
        return nil
    }
}

extension Directive {
    /// The argument as delta-seconds, as a token or quoted (§5.2: recipients accept both). Returns nil if it is missing or malformed.
    func seconds(_ bytes: borrowing Span<UInt8>) -> Seconds? {
        guard isWellFormed, let argument else { return nil }
        return parseDeltaSeconds(bytes, in: argument)
    }

    /// The argument as a list of field names in lower case. Empty if there is none, or if it is not such a list.
    func fieldNames(_ bytes: borrowing Span<UInt8>) -> [[UInt8]] {
        guard isWellFormed, let argument else { return [] }
        var list: [UInt8] = []
        for index in argument { list.append(bytes[index]) }
        return fieldNameList(list)
    }
}

/// Parses a list of field names, and returns them in lower case. Returns an empty array if it is not such a list.
func fieldNameList(_ list: [UInt8]) -> [[UInt8]] {
    var names: [[UInt8]] = []
    var areNames = true
    forEachListElement(list[...]) { name in
        areNames = areNames && name.allSatisfy(isTchar)
        names.append(name.map(asciiLowercased))
    }
    return areNames ? names : []
}

/// If a directive is repeated, the strictest value counts.
func shorter(_ known: Seconds?, _ other: Seconds) -> Seconds { min(known ?? other, other) }
