package import Message

/// What a request asks of a cache, parsed once.
///
/// Made for every request, so where none of the fields concerned is there it costs one test of a mask.
package struct CacheRequest: Sendable, Equatable {
    package var method: Method
    package var directives: RequestDirectives
    /// GET with content: means nothing (RFC 9110 §9.3.1), but some origins answer to it. Set by whoever knows the framing.
    package var hasBody = false
    /// Those of the fields concerned that are there.
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
    /// The client has a part already; the answer may leave out what it knows (RFC 9110 §15.3.7).
    package var hasIfRange: Bool { fields.contains(.ifRange) }
    /// Any of the conditional fields but `If-Range`, which is part of a range (RFC 9110 §13.1).
    package var hasPreconditions: Bool { !fields.isDisjoint(with: .preconditions) }

    /// A field asks the origin to carry out another method than the one in the request line.
    ///
    /// No RFC defines these fields, but many frameworks heed them. What the response means, and whether it may be repeated, depends
    /// on a method that is not part of the cache key, so the request neither reads nor writes the store.
    package var overridesMethod: Bool { !fields.isDisjoint(with: .methodOverrides) }
    /// Safe by its method (RFC 9110 §9.2.1), and no field asks for another.
    package var isSafe: Bool { method.isSafe && !overridesMethod }

    /// Nothing but a GET or HEAD that takes whatever is fresh.
    package var isPlain: Bool { fields.bits == 0 && !hasBody && (method == .get || method == .head) }
}

// Computed, so that the compiler folds each to one constant.
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
