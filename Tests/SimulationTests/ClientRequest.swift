import Caching
import Message

/// One request as its client means it, and as it is sent.
final class ClientRequest {
    /// A range as asked for: `first-last`, `first-`, or `-count`.
    enum Span {
        case from(Int, Int?)
        case last(Int)

        var text: String {
            switch self {
            case .from(let first, let last): "\(first)-\(last.map { "\($0)" } ?? "")"
            case .last(let count): "-\(count)"
            }
        }

        /// The bytes of `length` it means; nil: none (RFC 9110 §14.1.2).
        func resolved(_ length: Int) -> Range<Int>? {
            switch self {
            case .from(let first, let last):
                return first < length ? first..<min(length, last.map { $0 + 1 } ?? length) : nil
            case .last(let count):
                return count > 0 && length > 0 ? max(0, length - count)..<length : nil
            }
        }
    }

    let uri: Int
    let method: Method
    let wishes: Wishes
    let user: Int?
    /// Who the client is by its cookie.
    let cookie: Int?
    let encodings: Preferences?
    let languages: Preferences?
    let spans: [Span]
    /// A tag or a date, as written.
    let ifRange: String?
    let ifNoneMatch: [String]
    /// On the origin's clock.
    let ifModifiedSince: Int64?
    let ifMatch: String?
    let hasBody: Bool
    /// The field that asks the origin for another method, with that method.
    let override: (name: FieldName, method: Method)?
    /// The origin may change something when it answers.
    var isSafe: Bool { override?.method.isSafe ?? method.isSafe }

    let fields: Fields
    let cache: CacheRequest
    /// What the rules say of it, and its client.
    var handling: CacheHandling
    /// Where addresses are signed: the signature, and what the rules say without it.
    private(set) var signature: Signatures.Signature?
    let unsignedHandling: CacheHandling

    init(
        _ chance: inout Chance, uri: Int, method: Method, handling: CacheHandling, user: Int?, cookie: Int?,
        spans: [Span], ifRange: String?,
        ifNoneMatch: [String], ifModifiedSince: Int64?, ifMatch: String?
    ) {
        self.uri = uri
        self.method = method
        self.user = user
        self.cookie = cookie
        self.handling = handling
        unsignedHandling = handling
        self.spans = spans
        self.ifRange = spans.isEmpty ? nil : ifRange
        self.ifNoneMatch = ifNoneMatch
        self.ifModifiedSince = ifModifiedSince
        self.ifMatch = ifMatch
        wishes = Wishes.random(&chance)
        encodings = Preferences.randomEncodings(&chance)
        languages = Preferences.randomLanguages(&chance)
        hasBody = method == .put || method == .post || (method == .get && chance.oneIn(60))
        override =
            chance.oneIn(40)
            ? (
                chance.pick([.xHTTPMethod, .xHTTPMethodOverride, .xMethodOverride]),
                chance.pick([.get, .post, .put, .delete])
            ) : nil
        var fields = Fields()
        fields.append(.host, "origin.example")
        if let encodings { fields.append(.acceptEncoding, encodings.text(&chance, orderCounts: false)) }
        if let languages { fields.append(.acceptLanguage, languages.text(&chance, orderCounts: true)) }
        if let user { fields.append(.authorization, "Basic user\(user)") }
        if let cookie { fields.append(.cookie, "id=\(cookie)") }
        if let text = wishes.text { fields.append(.cacheControl, text) }
        if !spans.isEmpty { fields.append(.range, "bytes=" + spans.map(\.text).joined(separator: ",")) }
        if let ifRange = self.ifRange { fields.append(.ifRange, ifRange) }
        if !ifNoneMatch.isEmpty { fields.append(.ifNoneMatch, ifNoneMatch.joined(separator: ", ")) }
        if let ifModifiedSince { fields.append(.ifModifiedSince, httpDate(ifModifiedSince)) }
        if let ifMatch { fields.append(.ifMatch, ifMatch) }
        if let override { fields.append(override.name, "\(override.method.text)") }
        self.fields = fields
        var cache = CacheRequest(method: method, fields: fields)
        cache.hasBody = hasBody
        self.cache = cache
    }

    /// The request that follows a redirect of `other`, as the cache makes it.
    init(after other: ClientRequest, uri: Int, handling: CacheHandling, becomesGet: Bool) {
        self.uri = uri
        self.handling = handling
        unsignedHandling = handling
        method = becomesGet ? .get : other.method
        (user, cookie) = (other.user, other.cookie)
        (wishes, encodings, languages) = (other.wishes, other.encodings, other.languages)
        spans = becomesGet ? [] : other.spans
        ifRange = becomesGet ? nil : other.ifRange
        ifNoneMatch = becomesGet ? [] : other.ifNoneMatch
        ifMatch = becomesGet ? nil : other.ifMatch
        ifModifiedSince = nil
        hasBody = false
        override = other.override
        fields = other.fields.dropping {
            switch $0.name {
            case .ifModifiedSince: true
            case .range, .ifRange, .ifNoneMatch, .ifMatch: becomesGet
            default: false
            }
        }
        cache = CacheRequest(method: method, fields: fields)
    }

    /// What is not looked up has the key of its own address, so that nothing that others find is stored.
    func sign(_ signature: Signatures.Signature) {
        self.signature = signature
        handling.use.insert(.noWrite)
    }

    var summary: String {
        let lines = fields.lines.dropFirst().map {
            String(decoding: fields.name(of: $0), as: UTF8.self) + ": "
                + String(decoding: fields.value(of: $0), as: UTF8.self)
        }
        return "\(method.text) /\(uri)\(signature.map { " signed \($0.number)" } ?? "")\(hasBody ? " with body" : "")  "
            + lines.joined(separator: " | ")
    }
}

func httpDate(_ time: Int64) -> String {
    var bytes: [UInt8] = []
    appendHTTPDate(WallTime(secondsSinceEpoch: time), to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
}
