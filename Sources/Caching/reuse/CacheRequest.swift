package import Message

/// What a request asks of a cache, parsed once.
///
/// It is made for every request. If none of the fields in question is present, it costs one test of a bit mask.
package struct CacheRequest: Sendable, Equatable {
    package var method: Method
    package var directives: RequestDirectives
    /// The request is a GET with content, which has no defined meaning (RFC 9110 §9.3.1), but some origins use it. The caller sets
    /// this, because it knows the framing.
    package var hasBody = false
    /// Those of the fields in question that are present.
    private let fields: FieldNameSet

    package init(method: Method, fields: FieldSection, bytes: borrowing Span<UInt8>) {
        self.method = method
        self.fields = fields.present.intersection(.ofConcern)
        directives =
            self.fields.isDisjoint(with: .directives)
            ? RequestDirectives() : RequestDirectives(fields, bytes: bytes)
    }

    package init(method: Method, fields: Fields) {
        self.init(method: method, fields: fields.section, bytes: fields.bytes.span)
    }

    package var hasAuthorization: Bool { fields.contains(.authorization) }
    package var hasRange: Bool { fields.contains(.range) }
    /// The client already has a part, and the response may omit fields that the client knows (RFC 9110 §15.3.7).
    package var hasIfRange: Bool { fields.contains(.ifRange) }
    /// Any conditional field except `If-Range`, which belongs to `Range` (RFC 9110 §13.1).
    package var hasPreconditions: Bool { !fields.isDisjoint(with: .preconditions) }

    /// A field asks the origin to carry out another method than the one in the request line.
    ///
    /// No RFC defines these fields, but many frameworks obey them. The meaning of the response, and whether the request may be repeated,
    /// then depend on a method that is not part of the cache key. So the request neither reads nor writes the store.
    package var overridesMethod: Bool { !fields.isDisjoint(with: .methodOverrides) }
    /// The method is safe (RFC 9110 §9.2.1), and no field asks for another.
    package var isSafe: Bool { method.isSafe && !overridesMethod }

    /// The request is a GET or HEAD that accepts any fresh response.
    package var isPlain: Bool { fields.bits == 0 && !hasBody && (method == .get || method == .head) }
}

// These are computed so that the compiler folds each into one constant.
extension FieldNameSet {
    fileprivate static var directives: FieldNameSet { FieldNameSet(.cacheControl, .pragma) }
    fileprivate static var preconditions: FieldNameSet {
        FieldNameSet(.ifMatch, .ifUnmodifiedSince).union(FieldNameSet(.ifNoneMatch, .ifModifiedSince))
    }
    fileprivate static var methodOverrides: FieldNameSet {
        FieldNameSet(.xHTTPMethod, .xHTTPMethodOverride).union(FieldNameSet(.xMethodOverride, .xMethodOverride))
    }
    fileprivate static var ofConcern: FieldNameSet {
        FieldNameSet(.authorization, .range).union(FieldNameSet(bits: 1 << UInt64(FieldName.ifRange.rawValue))).union(
            directives
        ).union(preconditions).union(methodOverrides)
    }

    private init(_ a: FieldName, _ b: FieldName) {
        self.init(bits: 1 << UInt64(a.rawValue) | 1 << UInt64(b.rawValue))
    }
    fileprivate func intersection(_ other: FieldNameSet) -> FieldNameSet { .init(bits: bits & other.bits) }
}
