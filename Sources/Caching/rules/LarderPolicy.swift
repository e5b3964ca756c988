import Message

/// `Larder-Policy`, a request field of Larder's own: how a trusted client wants the cache to handle this request.
///
/// It is a dictionary (RFC 9651 §3.2): `cache-first, stale-on-error, ttl=60, storage=session`. The names are those of the configuration,
/// with "-" instead of "_". It cannot change zone and key. It is never forwarded, even if it is not obeyed.
package enum LarderPolicy {
    package static let fieldName = "Larder-Policy"

    /// Parses the field. Unknown members and members with a value that makes no sense are ignored. Returns nil if the field is not a
    /// dictionary or its policies contradict each other; then all of it is ignored (RFC 9651 §4.2).
    ///
    /// - Parameter value: the values of all its lines, joined by commas.
    package static func parse(_ value: some Collection<UInt8>) -> HandlingChanges? {
        guard let dictionary = parseStructuredDictionary(value) else { return nil }
        var changes = HandlingChanges()
        var words: [CachePolicyWord] = []
        for entry in dictionary.entries {
            guard case .item(let item) = entry.member.value else { continue }
            let key = String(decoding: entry.key, as: UTF8.self)
            if let word = CachePolicyWord(rawValue: key) {
                if item == .boolean(true) { words.append(word) }
            } else if let member = Member(rawValue: key) {
                member.set(item, in: &changes)
            }
        }
        if words.isEmpty { return changes }
        guard let use = try? CacheUse(words) else { return nil }
        changes.use = use
        return changes
    }

    /// The members that are not policies.
    private enum Member: String {
        case storage, admission, ttl, immutable, ranges, compress
        case ttlMax = "ttl-max"
        case ttlDefault = "ttl-default"
        case respectCacheControl = "respect-cache-control"
        case negativeTTL = "negative-ttl"
        case objectSizeMax = "object-size-max"
        case storeCookies = "store-cookies"

        func set(_ item: StructuredItem, in changes: inout HandlingChanges) {
            switch self {
            case .storage: if let value: StoragePolicy = choice(item) { changes.storage = value }
            case .admission: if let value: AdmissionUse = choice(item) { changes.admission = value }
            case .ranges: if let value: RangeUse = choice(item) { changes.ranges = value }
            case .compress: if let value: CompressionUse = choice(item) { changes.compression = value }
            case .ttl: if let value = seconds(item) { changes.ttl = value }
            case .ttlMax: if let value = seconds(item) { changes.ttlMax = value }
            case .ttlDefault: if let value = seconds(item) { changes.ttlDefault = value }
            case .immutable: if case .boolean(let flag) = item { changes.isImmutable = flag }
            case .negativeTTL: if let value = seconds(item) { changes.negativeTTL = value }
            case .objectSizeMax:
                if case .integer(let bytes) = item, bytes >= 0 { changes.objectSizeMax = UInt64(bytes) }
            case .respectCacheControl: if case .boolean(let flag) = item { changes.respectsCacheControl = flag }
            case .storeCookies: if case .boolean(let flag) = item { changes.storesCookies = flag }
            }
        }
    }
}

private func choice<Choice: RawRepresentable<String>>(_ item: StructuredItem) -> Choice? {
    switch item {
    case .token(let text), .string(let text): Choice(rawValue: String(decoding: text, as: UTF8.self))
    default: nil
    }
}

/// Whole seconds. A number beyond the longest lifetime counts as that lifetime (RFC 9111 §1.2.2).
private func seconds(_ item: StructuredItem) -> Seconds? {
    guard case .integer(let count) = item, count >= 0 else { return nil }
    return min(Seconds(count), .deltaMax)
}
