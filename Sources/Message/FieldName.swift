/// The field names on which Larder acts. Every other name is `other`, and only its bytes tell it.
///
/// Names are compared without regard to case (RFC 9110 §5.1). A message keeps its own spelling.
@usableFromInline
package enum FieldName: UInt8, CaseIterable, Sendable {
    case other = 0
    case accept, acceptEncoding, acceptLanguage, acceptRanges, age, allow, altSvc, authorization
    case cacheControl, cacheStatus, cdnCacheControl, connection, contentEncoding, contentLanguage
    case contentLength, contentLocation, contentRange, contentType, cookie, date, eTag, expect, expires, forwarded
    case host, http2Settings, ifMatch, ifModifiedSince, ifNoneMatch, ifRange, ifUnmodifiedSince, keepAlive
    case larderPolicy, lastModified, location, maxForwards, origin, pragma, proxyAuthenticate
    case proxyAuthenticationInfo, proxyAuthorization, proxyConnection, proxyStatus, range, referer, retryAfter
    case server, setCookie, surrogateControl, surrogateKey, te, trailer, transferEncoding, upgrade, userAgent
    case vary, via, warning, wwwAuthenticate, xForwardedFor, xHTTPMethod, xHTTPMethodOverride, xMethodOverride

    /// Written out, because the synthesised comparison is not inlined in other modules, and hits use it often.
    @inlinable @inline(__always)
    package static func == (a: FieldName, b: FieldName) -> Bool { a.rawValue == b.rawValue }

    /// The registered spelling. Empty for `other`.
    package var text: StaticString {
        switch self {
        case .other: ""
        case .accept: "Accept"
        case .acceptEncoding: "Accept-Encoding"
        case .acceptLanguage: "Accept-Language"
        case .acceptRanges: "Accept-Ranges"
        case .age: "Age"
        case .allow: "Allow"
        case .altSvc: "Alt-Svc"
        case .authorization: "Authorization"
        case .cacheControl: "Cache-Control"
        case .cacheStatus: "Cache-Status"
        case .cdnCacheControl: "CDN-Cache-Control"
        case .connection: "Connection"
        case .contentEncoding: "Content-Encoding"
        case .contentLanguage: "Content-Language"
        case .contentLength: "Content-Length"
        case .contentLocation: "Content-Location"
        case .contentRange: "Content-Range"
        case .contentType: "Content-Type"
        case .cookie: "Cookie"
        case .date: "Date"
        case .eTag: "ETag"
        case .expect: "Expect"
        case .expires: "Expires"
        case .forwarded: "Forwarded"
        case .host: "Host"
        case .http2Settings: "HTTP2-Settings"
        case .ifMatch: "If-Match"
        case .ifModifiedSince: "If-Modified-Since"
        case .ifNoneMatch: "If-None-Match"
        case .ifRange: "If-Range"
        case .ifUnmodifiedSince: "If-Unmodified-Since"
        case .keepAlive: "Keep-Alive"
        case .larderPolicy: "Larder-Policy"
        case .lastModified: "Last-Modified"
        case .location: "Location"
        case .maxForwards: "Max-Forwards"
        case .origin: "Origin"
        case .pragma: "Pragma"
        case .proxyAuthenticate: "Proxy-Authenticate"
        case .proxyAuthenticationInfo: "Proxy-Authentication-Info"
        case .proxyAuthorization: "Proxy-Authorization"
        case .proxyConnection: "Proxy-Connection"
        case .proxyStatus: "Proxy-Status"
        case .range: "Range"
        case .referer: "Referer"
        case .retryAfter: "Retry-After"
        case .server: "Server"
        case .setCookie: "Set-Cookie"
        case .surrogateControl: "Surrogate-Control"
        case .surrogateKey: "Surrogate-Key"
        case .te: "TE"
        case .trailer: "Trailer"
        case .transferEncoding: "Transfer-Encoding"
        case .upgrade: "Upgrade"
        case .userAgent: "User-Agent"
        case .vary: "Vary"
        case .via: "Via"
        case .warning: "Warning"
        case .wwwAuthenticate: "WWW-Authenticate"
        case .xForwardedFor: "X-Forwarded-For"
        case .xHTTPMethod: "X-HTTP-Method"
        case .xHTTPMethodOverride: "X-HTTP-Method-Override"
        case .xMethodOverride: "X-Method-Override"
        }
    }
}

/// A set of field names in one word. Tells which known fields a head has without a search.
@usableFromInline
package struct FieldNameSet: Sendable, Equatable, ExpressibleByArrayLiteral {
    @usableFromInline package var bits: UInt64
    @inlinable
    package init(bits: UInt64) { self.bits = bits }
    @inlinable
    package init(arrayLiteral names: FieldName...) {
        bits = 0
        for name in names { insert(name) }
    }
    @inlinable @inline(__always)
    package mutating func insert(_ name: FieldName) { bits |= 1 << UInt64(name.rawValue) }
    @inlinable @inline(__always)
    package func contains(_ name: FieldName) -> Bool { bits & (1 << UInt64(name.rawValue)) != 0 }
    @inlinable @inline(__always)
    package func isDisjoint(with other: FieldNameSet) -> Bool { bits & other.bits == 0 }
    @inlinable
    package func union(_ other: FieldNameSet) -> FieldNameSet { .init(bits: bits | other.bits) }
}
