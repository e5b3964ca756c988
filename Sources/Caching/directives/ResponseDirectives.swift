package import Message

/// The directives in a response's `Cache-Control` (RFC 9111 §5.2.2, RFC 5861, RFC 8246).
///
/// A malformed directive counts as strict: `max-age` or `s-maxage` without a valid number is 0, so that the response is stale (§4.2.1
/// encourages it). `no-cache` and `private` with an empty or malformed field list count as if they had none. A permission without a valid
/// number permits nothing. If a directive is repeated, its smallest value counts.
package struct ResponseDirectives: Sendable, Equatable {
    package var noStore = false
    /// Without a field list: the response must not be reused without validation (§5.2.2.4).
    package var noCache = false
    /// `no-cache="…"`: only these fields must not be reused without validation. In lower case.
    package var noCacheFields: [[UInt8]] {
        get { lists?.noCache ?? [] }
        set { setLists(newValue, privateFields) }
    }
    /// Without a field list: the response is not for a shared cache (§5.2.2.7).
    package var isPrivate = false
    /// `private="…"`: only these fields are not for a shared cache. In lower case.
    package var privateFields: [[UInt8]] {
        get { lists?.isPrivate ?? [] }
        set { setLists(noCacheFields, newValue) }
    }
    package var isPublic = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var mustUnderstand = false
    package var noTransform = false
    /// RFC 8246.
    package var immutable = false
    package var maxAge: Seconds?
    package var sMaxAge: Seconds?
    /// RFC 5861 §3.
    package var staleWhileRevalidate: Seconds?
    /// RFC 5861 §4.
    package var staleIfError: Seconds?

    /// Some fields are only for the first client, or must not be reused without validation.
    package var hasFieldLists: Bool { lists != nil }
    /// Nil if both are empty, as in nearly all responses: these are copied without retaining anything.
    private var lists: FieldLists?

    private final class FieldLists: Sendable, Equatable {
        let noCache: [[UInt8]]
        let isPrivate: [[UInt8]]

        init(noCache: [[UInt8]], isPrivate: [[UInt8]]) {
            self.noCache = noCache
            self.isPrivate = isPrivate
        }

        static func == (one: FieldLists, other: FieldLists) -> Bool {
            one.noCache == other.noCache && one.isPrivate == other.isPrivate
        }
    }

    private mutating func setLists(_ noCache: [[UInt8]], _ isPrivate: [[UInt8]]) {
        lists = noCache.isEmpty && isPrivate.isEmpty ? nil : FieldLists(noCache: noCache, isPrivate: isPrivate)
    }

    package init() {}

    package init(_ fields: Fields) {
        guard fields.contains(.cacheControl) else { return }
        let bytes = fields.bytes.span
        for line in fields.lines where line.name == .cacheControl {
            var scanner = DirectiveScanner(line.valueRange)
            while let directive = scanner.next(bytes) { apply(directive, bytes) }
        }
    }

    func write(to form: inout StoredFormWriter) {
        form.write(
            flags: noStore, noCache, isPrivate, isPublic, mustRevalidate, proxyRevalidate, mustUnderstand, noTransform,
            immutable)
        form.write(noCacheFields)
        form.write(privateFields)
        form.write(maxAge)
        form.write(sMaxAge)
        form.write(staleWhileRevalidate)
        form.write(staleIfError)
    }

    init(from form: inout StoredFormReader) throws(StoredFormError) {
        let flags = try form.readFlags()
        (noStore, noCache, isPrivate, isPublic) = (flags[0], flags[1], flags[2], flags[3])
        (mustRevalidate, proxyRevalidate, mustUnderstand) = (flags[4], flags[5], flags[6])
        (noTransform, immutable) = (flags[7], flags[8])
        noCacheFields = try form.readList()
        privateFields = try form.readList()
        maxAge = try form.readSecondsIfAny()
        sMaxAge = try form.readSecondsIfAny()
        staleWhileRevalidate = try form.readSecondsIfAny()
        staleIfError = try form.readSecondsIfAny()
    }

    private mutating func apply(_ directive: Directive, _ bytes: borrowing Span<UInt8>) {
        guard let name = DirectiveName(directive.name, of: bytes) else { return }  // unknown: ignored (§5.2.3)
        apply(
            name, seconds: name.takesSeconds ? directive.seconds(bytes) ?? .zero : .zero,
            names: name.takesNames ? directive.fieldNames(bytes) : [])
    }

    /// - Parameters:
    ///   - seconds: the argument of a directive that takes a time. Zero if it is malformed.
    ///   - names: the argument of a directive that takes a field list. Empty if there is none, or if it is malformed.
    mutating func apply(_ name: DirectiveName, seconds: Seconds, names: [[UInt8]]) {
        switch name {
        case .noStore: noStore = true
        case .noCache: if isLeftOut(names) { noCacheFields += names } else { noCache = true }
        case .isPrivate: if isLeftOut(names) { privateFields += names } else { isPrivate = true }
        case .isPublic: isPublic = true
        case .mustRevalidate: mustRevalidate = true
        case .proxyRevalidate: proxyRevalidate = true
        case .mustUnderstand: mustUnderstand = true
        case .noTransform: noTransform = true
        case .immutable: immutable = true
        case .maxAge: maxAge = shorter(maxAge, seconds)
        case .sMaxAge: sMaxAge = shorter(sMaxAge, seconds)
        case .staleWhileRevalidate: staleWhileRevalidate = shorter(staleWhileRevalidate, seconds)
        case .staleIfError: staleIfError = shorter(staleIfError, seconds)
        case .onlyIfCached, .minFresh, .maxStale: break  // not for responses
        }
    }

    /// Whether a response can be stored without these fields. If the cache itself needs one of them, to read the content or to decide, the
    /// directive counts as if it had no list, which is stricter and never wrong.
    private func isLeftOut(_ names: [[UInt8]]) -> Bool {
        !names.isEmpty && names.allSatisfy { !FieldNameSet.neededByCache.contains(FieldName(spelling: $0)) }
    }
}

extension FieldNameSet {
    fileprivate static let neededByCache: FieldNameSet = [
        .age, .cacheControl, .contentEncoding, .contentLength, .contentRange, .contentType, .date, .expires, .vary,
    ]
}
