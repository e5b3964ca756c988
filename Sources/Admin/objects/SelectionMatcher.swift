import Caching
import Glibc
import Message
import Server
import Storage

/// Tells whether a selection includes a stored response. Prepares the conditions once, because they are checked often.
struct SelectionMatcher: Sendable {
    private enum URIRule: Sendable {
        /// The URI, and the keys under which the rules of the cache store it, without what follows "#" there: one purge removes what is stored
        /// for each credential, and what was fetched with signatures.
        case exactly([[UInt8]])
        case prefix([UInt8])
        /// The text is not a URI, so nothing is stored under it.
        case nothing
    }
    private let selection: Selection
    private var uris: [URIRule] = []
    private let now: WallTime

    /// - Parameter keys: returns the keys under which the proxy stores a GET of the URI.
    init(_ selection: Selection, now: WallTime, keys: (TargetURI) -> [[UInt8]] = { [$0.normalised] }) {
        self.selection = selection
        self.now = now
        if let url = selection.url {
            uris.append(TargetURI(url.utf8).map { .exactly(([$0.normalised] + keys($0)).map(uriOfKey)) } ?? .nothing)
        }
        if let prefix = selection.prefix { uris.append(.prefix(normalisedPrefix(prefix))) }
    }

    /// Whether the zone can have a response that is selected.
    func mayBe(inZone zone: String) -> Bool { selection.zone.map { $0 == zone } ?? true }

    /// Checks the conditions for which the key is enough, or the addresses of what has its key by a digest. Prefix and host select it by one of
    /// these, and not by the key, which has neither the path nor, with mirrors, the host of any.
    func matches(uri key: [UInt8], addresses: [[UInt8]] = []) -> Bool {
        if addresses.isEmpty { return isAsked(key) && isPlaced(key, { $0.starts(with: $1) }) }
        return (isAsked(key) || addresses.contains(where: isAsked))
            && addresses.contains { isPlaced($0, StoredAddresses.begins) }
    }

    private func isAsked(_ uri: [UInt8]) -> Bool {
        uris.allSatisfy { rule in
            switch rule {
            case .nothing: false
            case .exactly(let wanted): wanted.contains(uriOfKey(uri))
            case .prefix: true
            }
        }
    }

    private func isPlaced(_ uri: [UInt8], _ begins: (_ uri: [UInt8], _ prefix: [UInt8]) -> Bool) -> Bool {
        uris.allSatisfy { rule in
            switch rule {
            case .nothing: false
            case .exactly: true
            case .prefix(let prefix): begins(uri, prefix)
            }
        } && (selection.host.map { matchesHost($0, uri) } ?? true)
    }

    /// Which part of a back store can have responses that are selected.
    var listingRange: ListingRange {
        for case .prefix(let prefix) in uris { return .keyPrefix(prefix) }
        guard let host = selection.host else { return .all }
        return host.hasPrefix("*.") ? .below(Array(host.utf8.dropFirst(2))) : .host(Array(host.utf8))
    }

    var tag: [UInt8]? { selection.tag.map { Array($0.utf8) } }

    /// Checks all conditions except the zone and the tag, by which the response was found.
    func matches(_ entry: ListedResponse) -> Bool {
        guard matches(uri: entry.keyBytes, addresses: entry.attributes.addresses) else { return false }
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

    /// Checks all conditions except the zone.
    func matches(_ record: StoredResponse) -> Bool {
        guard matches(uri: record.keyBytes, addresses: record.addresses.list) else { return false }
        if let storage = selection.storage, record.storage != storage { return false }
        if let olderThan = selection.olderThan, now - record.cached.responseTime < olderThan { return false }
        if let type = selection.type, !matchesType(type, mediaType(record.fields)) { return false }
        if let tag, !tags(of: record.fields).contains(tag) { return false }
        return true
    }
}

private func uriOfKey(_ key: [UInt8]) -> [UInt8] { Array(key.prefix { $0 != UInt8(ascii: "#") }) }

/// Normalises a prefix that is a URI itself, so that `HTTP://Example.org` finds `http://example.org/`.
private func normalisedPrefix(_ text: String) -> [UInt8] {
    guard let uri = TargetURI(text.utf8) else { return Array(text.utf8) }
    let normalised = uri.normalised
    // Normalising has made "/" of an empty path. Without it, the prefix selects by the beginning of the host name, too.
    let hadPath = text.utf8.dropFirst(uri.scheme == .http ? 7 : 8).contains(UInt8(ascii: "/"))
    return hadPath ? normalised : normalised.dropLast()
}

private func matchesHost(_ pattern: String, _ uri: [UInt8]) -> Bool {
    guard let host = TargetURI(uri)?.host else { return false }
    guard pattern.hasPrefix("*.") else { return host == pattern }
    let suffix = pattern.dropFirst()
    return host.utf8.count > suffix.utf8.count && host.hasSuffix(suffix)
}

/// - Parameter wanted: a media type, or all of one kind if it ends in `/*`.
func matchesType(_ wanted: String, _ type: String?) -> Bool {
    guard let type else { return false }
    return wanted.hasSuffix("/*") ? type.hasPrefix(wanted.dropLast()) : type == wanted
}

func wallClockSeconds() -> Int64 { Int64(time(nil)) }
