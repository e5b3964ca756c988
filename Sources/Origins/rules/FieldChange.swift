package import Message

/// A change that a rule of `origins` makes to the fields of requests.
package struct FieldChange: Equatable, Sendable {
    package enum Operation: String, CaseIterable, Sendable {
        /// Replaces all lines with the name by one.
        case set
        /// Adds a line behind those of the client.
        case add
        /// Removes all lines with the name.
        case remove
    }
    package let operation: Operation
    /// The name as it is sent.
    package let spelling: [UInt8]
    /// Empty for `remove`.
    package let value: [UInt8]
    package let name: FieldName

    package init(_ operation: Operation, _ spelling: [UInt8], _ value: [UInt8] = []) {
        self.operation = operation
        self.spelling = spelling
        self.value = value
        name = FieldName(spelling: spelling)
    }

    /// Why no rule may change a field.
    package enum Objection: Equatable, Sendable {
        /// Larder writes it: it follows from the connection, the framing, the target, the method or what is stored.
        case ownField
        /// Secrets have a place of their own.
        case credentials
        /// The origin would answer with a coding that a client does not understand.
        case codings
    }

    /// Nil if a rule may make this change.
    package var objection: Objection? {
        switch name {
        case .authorization: .credentials
        case .acceptEncoding: operation == .remove ? nil : .codings
        case .host, .via, .maxForwards, .contentLength, .contentEncoding, .contentRange, .transferEncoding, .connection,
            .upgrade, .keepAlive, .te, .trailer, .http2Settings, .expect, .range, .ifRange, .ifMatch, .ifNoneMatch,
            .ifModifiedSince, .ifUnmodifiedSince, .proxyAuthorization, .proxyAuthenticate, .proxyAuthenticationInfo,
            .proxyConnection, .proxyStatus, .larderPolicy, .xHTTPMethod, .xHTTPMethodOverride, .xMethodOverride:
            .ownField
        case .other: isForProxies ? .ownField : nil
        case .accept, .acceptLanguage, .acceptRanges, .age, .allow, .altSvc, .cacheControl, .cacheStatus,
            .cdnCacheControl, .contentLanguage, .contentLocation, .contentType, .cookie, .date, .eTag, .expires,
            .forwarded, .lastModified, .location, .origin, .pragma, .referer, .retryAfter, .server, .setCookie,
            .surrogateControl, .surrogateKey, .userAgent, .vary, .warning, .wwwAuthenticate, .xForwardedFor:
            nil
        }
    }

    /// Such fields are for the proxy that receives them.
    private var isForProxies: Bool { spelling.prefix(6).elementsEqual("proxy-".utf8) { $0 | 0x20 == $1 } }
}

extension FieldChange: CustomStringConvertible {
    /// `set User-Agent`. Without the value, which may be a secret.
    package var description: String { "\(operation.rawValue) \(String(decoding: spelling, as: UTF8.self))" }
}
