import Caching
import Glibc
import Message
import Server
import Storage

/// Whether a stored response is among those that a selection means: the conditions, made ready to be asked often.
struct SelectionMatcher: Sendable {
    private enum URIRule: Sendable {
        /// The URI, and the key that the rules of the cache make of it.
        case exactly([UInt8], key: [UInt8])
        case prefix([UInt8])
        /// The selection is no URI: nothing is stored under it.
        case nothing
    }
    private let selection: Selection
    private var uris: [URIRule] = []
    private let now: WallTime

    /// - Parameter key: under what the proxy stores a GET of the URI.
    init(_ selection: Selection, now: WallTime, key: (TargetURI) -> [UInt8] = \.normalised) {
        self.selection = selection
        self.now = now
        if let url = selection.url {
            uris.append(TargetURI(url.utf8).map { .exactly($0.normalised, key: key($0)) } ?? .nothing)
        }
        if let prefix = selection.prefix { uris.append(.prefix(normalisedPrefix(prefix))) }
    }

    /// The zone can hold something that is meant.
    func mayBe(inZone zone: String) -> Bool { selection.zone.map { $0 == zone } ?? true }

    /// The conditions that the key alone decides.
    func matches(uri: [UInt8]) -> Bool {
        uris.allSatisfy { rule in
            switch rule {
            case .nothing: false
            case .exactly(let wanted, let key): uri == wanted || uri == key
            case .prefix(let prefix): uri.starts(with: prefix)
            }
        } && (selection.host.map { matchesHost($0, uri) } ?? true)
    }

    /// What of a back store can be meant.
    var listingRange: ListingRange {
        for case .prefix(let prefix) in uris { return .keyPrefix(prefix) }
        guard let host = selection.host else { return .all }
        return host.hasPrefix("*.") ? .below(Array(host.utf8.dropFirst(2))) : .host(Array(host.utf8))
    }

    var tag: [UInt8]? { selection.tag.map { Array($0.utf8) } }

    /// All but the zone and the tag, by which it was found.
    func matches(_ entry: ListedResponse) -> Bool {
        guard matches(uri: entry.keyBytes) else { return false }
        let attributes = entry.attributes
        switch selection.storage {
        case nil: break
        case .session: return false
        case .permanent: if attributes.retention != .permanent { return false }
        case .pinned: if attributes.retention != .pinned { return false }
        }
        if let olderThan = selection.olderThan, now.secondsSinceEpoch - attributes.storedAt < olderThan.count {
            return false
        }
        let mediaType = attributes.mediaType.isEmpty ? nil : String(decoding: attributes.mediaType, as: UTF8.self)
        if let type = selection.type, !matchesType(type, mediaType) { return false }
        return true
    }

    /// All but the zone.
    func matches(_ record: StoredResponse) -> Bool {
        guard matches(uri: record.keyBytes) else { return false }
        if let storage = selection.storage, record.storage != storage { return false }
        if let olderThan = selection.olderThan, now - record.cached.responseTime < olderThan { return false }
        if let type = selection.type, !matchesType(type, mediaType(record.fields)) { return false }
        if let tag, !tags(of: record.fields).contains(tag) { return false }
        return true
    }
}

/// A prefix that is a URI itself is normalised as URIs are, so that `HTTP://Example.org` finds what it means.
private func normalisedPrefix(_ text: String) -> [UInt8] {
    guard let uri = TargetURI(text.utf8) else { return Array(text.utf8) }
    let normalised = uri.normalised
    // An empty path became "/": without it the prefix meant the host's name, whatever follows.
    let hadPath = text.utf8.dropFirst(uri.scheme == .http ? 7 : 8).contains(UInt8(ascii: "/"))
    return hadPath ? normalised : normalised.dropLast()
}

private func matchesHost(_ pattern: String, _ uri: [UInt8]) -> Bool {
    guard let host = TargetURI(uri)?.host else { return false }
    guard pattern.hasPrefix("*.") else { return host == pattern }
    let suffix = pattern.dropFirst()
    return host.utf8.count > suffix.utf8.count && host.hasSuffix(suffix)
}

/// `wanted` is a media type or, ending in `/*`, all of a kind.
func matchesType(_ wanted: String, _ type: String?) -> Bool {
    guard let type else { return false }
    return wanted.hasSuffix("/*") ? type.hasPrefix(wanted.dropLast()) : type == wanted
}

func wallClockSeconds() -> Int64 { Int64(time(nil)) }
