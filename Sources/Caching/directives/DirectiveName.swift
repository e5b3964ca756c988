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

    /// A spelling as its first and its last eight bytes, which overlap in the short ones.
    private struct Spelling {
        let name: DirectiveName
        let length: Int
        let head, tail: UInt64

        init(_ name: DirectiveName) {
            let bytes = Array(name.rawValue.utf8)
            self.name = name
            length = bytes.count
            (head, tail) = DirectiveName.words(bytes.span, 0..<bytes.count)
        }
    }
    private static let spellings = allCases.map(Spelling.init)

    /// The ends of a name in lower case. A name of fewer than eight bytes is filled up with zeros.
    ///
    /// The fold confuses CR with "-". No field value has a CR.
    private static func words(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> (UInt64, UInt64) {
        let raw = unsafe bytes.bytes
        let first = loadWord(raw, range.lowerBound) | fold
        guard range.count >= 8 else {
            let word = first & UInt64.max &>> UInt64(64 &- 8 &* range.count)
            return (word, word)
        }
        return (first, loadWord(raw, range.upperBound &- 8) | fold)
    }
    private static var fold: UInt64 { 0x2020_2020_2020_2020 }

    /// Finds the directive that is spelled there, in upper or lower case (RFC 9111 §5.2). Returns nil if it is unknown.
    init?(_ range: Range<Int>, of bytes: borrowing Span<UInt8>) {
        guard !range.isEmpty else { return nil }
        let (head, tail) = Self.words(bytes, range)
        for spelling in Self.spellings
        where spelling.head == head && spelling.tail == tail && spelling.length == range.count {
            // The words leave out the middle of a long name.
            guard
                range.count <= 16
                    || zip(spelling.name.rawValue.utf8, range).allSatisfy({ asciiLowercased(bytes[$1]) == $0 })
            else { return nil }
            self = spelling.name
            return
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
