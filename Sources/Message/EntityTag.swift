/// An entity tag (RFC 9110 §8.8.3): `[ "W/" ] DQUOTE *etagc DQUOTE`.
package struct EntityTag: Sendable, Equatable {
    package var isWeak: Bool
    /// The opaque tag, with its quotes.
    package var opaque: [UInt8]

    package init(isWeak: Bool, opaque: [UInt8]) {
        self.isWeak = isWeak
        self.opaque = opaque
    }

    /// Returns nil if the value is not exactly one entity tag. `W/` is case-sensitive.
    package init?(parsing value: some Collection<UInt8>) { self.init(parsing: Array(value)[...]) }

    /// Parses the entity tag at a range of a head.
    package init?(parsing value: ArraySlice<UInt8>) {
        let bytes = value.span
        isWeak = bytes.count >= 2 && bytes[0] == 0x57 && bytes[1] == 0x2F
        let start = isWeak ? 2 : 0
        let end = bytes.count
        guard end - start >= 2, bytes[start] == 0x22, bytes[end - 1] == 0x22 else { return nil }
        for index in start + 1..<end - 1 where !isETagC(bytes[index]) { return nil }
        opaque = unsafe bytes.withUnsafeBufferPointer { unsafe Array(UnsafeBufferPointer(rebasing: $0[start..<end])) }
    }

    /// Strong comparison (RFC 9110 §8.8.3.2): equal, and both strong. For If-Match, If-Range and ranges.
    package func strongMatches(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// Weak comparison (RFC 9110 §8.8.3.2): the opaque tags are equal. For If-None-Match.
    package func weakMatches(_ other: EntityTag) -> Bool { opaque == other.opaque }

    /// Whether the value of a field is this entity tag, as `wire` has it.
    package func isWritten(_ value: ArraySlice<UInt8>) -> Bool {
        let prefix = isWeak ? 2 : 0
        guard value.count == prefix + opaque.count else { return false }
        if isWeak, value[value.startIndex] != 0x57 || value[value.startIndex + 1] != 0x2F { return false }
        return areEqual(value.span, prefix..<value.count, opaque.span, 0..<opaque.count)
    }

    /// The entity tag as it is sent.
    package var wire: [UInt8] { isWeak ? [0x57, 0x2F] + opaque : opaque }
}

/// The value of If-Match and If-None-Match (RFC 9110 §13.1.1, §13.1.2): `*` or a list of entity tags.
package enum EntityTagList: Sendable, Equatable {
    case any
    case tags([EntityTag])

    /// - Parameter value: all lines of the field, joined by commas.
    ///
    /// Returns nil if no member is valid. A member that is not an entity tag matches nothing, and is skipped: some clients send
    /// tags without quotes.
    package init?(parsing value: some Collection<UInt8>) {
        let bytes = Array(value)
        if trimOWS(bytes[...]).elementsEqual([0x2A]) {
            self = .any
            return
        }
        var tags: [EntityTag] = []
        forEachListElement(bytes[...]) { element in
            if let tag = EntityTag(parsing: element) { tags.append(tag) }
        }
        guard !tags.isEmpty else { return nil }
        self = .tags(tags)
    }

    package func containsStrong(_ tag: EntityTag) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tags.contains { $0.strongMatches(tag) }
        }
    }

    package func containsWeak(_ tag: EntityTag) -> Bool {
        switch self {
        case .any: true
        case .tags(let tags): tags.contains { $0.weakMatches(tag) }
        }
    }
}
