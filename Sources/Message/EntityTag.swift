/// An entity tag (RFC 9110 §8.8.3): `[ "W/" ] DQUOTE *etagc DQUOTE`.
package struct EntityTag: Sendable, Equatable {
    package var isWeak: Bool
    /// The opaque part with its quotes.
    package var opaque: [UInt8]

    package init(isWeak: Bool, opaque: [UInt8]) {
        self.isWeak = isWeak
        self.opaque = opaque
    }

    /// nil where the value is not exactly one entity tag. `W/` is case-sensitive.
    package init?(parsing value: some Collection<UInt8>) { self.init(parsing: Array(value)[...]) }

    /// The same for a part of a head.
    package init?(parsing value: ArraySlice<UInt8>) {
        var start = value.startIndex
        let end = value.endIndex
        isWeak = value.count >= 2 && value[start] == 0x57 && value[start + 1] == 0x2F
        if isWeak { start += 2 }
        guard end - start >= 2, value[start] == 0x22, value[end - 1] == 0x22 else { return nil }
        for index in start + 1..<end - 1 where !isETagC(value[index]) { return nil }
        opaque = Array(value[start..<end])
    }

    /// Equal and both strong (RFC 9110 §8.8.3.2): for If-Match, If-Range and ranges.
    package func strongMatches(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }

    /// Equal but for weakness (RFC 9110 §8.8.3.2): for If-None-Match.
    package func weakMatches(_ other: EntityTag) -> Bool { opaque == other.opaque }

    /// As sent.
    package var wire: [UInt8] { isWeak ? [0x57, 0x2F] + opaque : opaque }
}

/// What If-Match and If-None-Match hold (RFC 9110 §13.1.1, §13.1.2): `*` or a list of entity tags.
package enum EntityTagList: Sendable, Equatable {
    case any
    case tags([EntityTag])

    /// - Parameter value: all lines of the field, joined by commas.
    ///
    /// nil where nothing in it can be read. A member that is no entity tag (deployed clients send them without quotes)
    /// matches nothing and is passed over.
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
