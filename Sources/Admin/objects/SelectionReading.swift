import Caching
import Message

/// What is wrong with the conditions of a purge or a listing. The text is sent to the client.
package struct SelectionError: Error, Equatable {
    package var message: String
}

/// The conditions of a selection, by their names in bodies and queries. The command line has dashes instead of underscores.
package enum SelectionKey: String, CaseIterable, Sendable {
    case url, prefix, host, tag, type, zone, storage
    case olderThan = "older_than"
}

extension Selection {
    /// Sets one condition from its text.
    package mutating func set(_ key: SelectionKey, _ text: String) throws(SelectionError) {
        switch key {
        case .url: url = try absoluteURL(text, key)
        case .prefix: prefix = try absoluteURL(text, key)
        case .host: host = try hostName(text)
        case .tag: tag = try plainText(text, key, mayHaveComma: false)
        case .type: type = try mediaRange(text)
        case .zone: zone = try plainText(text, key, mayHaveComma: true)
        case .storage: storage = try storagePolicy(text)
        case .olderThan: olderThan = try age(text)
        }
    }
}

/// Text that begins like an absolute http or https URL; the cache keeps nothing else.
private func absoluteURL(_ text: String, _ key: SelectionKey) throws(SelectionError) -> String {
    let start = text.prefix { $0 != "/" }.lowercased()
    guard start == "http:" || start == "https:", text.dropFirst(start.count).hasPrefix("//"),
        text.utf8.count > start.utf8.count + 2, text.utf8.allSatisfy(isVchar) || TargetURI(text.utf8) != nil
    else {
        throw SelectionError(message: "\"\(key.rawValue)\" must be an absolute URL such as http://example.org/file")
    }
    return text
}

private func hostName(_ text: String) throws(SelectionError) -> String {
    let name = text.hasPrefix("*.") ? text.utf8.dropFirst(2) : text.utf8[...]
    guard !name.isEmpty, name.allSatisfy({ isVchar($0) && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "*") }) else {
        throw SelectionError(
            message: "\"host\" must be a host name without scheme and path, such as example.org or *.example.org")
    }
    // As in a key: in lower case, without a dot at the end, and an IPv6 address in brackets (RFC 3986 §3.2.2).
    let isAddress = text.utf8.contains(UInt8(ascii: ":")) && !text.hasPrefix("[")
    if isAddress { return "[\(text.lowercased())]" }
    return (name.count > 1 && name.last == UInt8(ascii: ".") ? String(text.dropLast()) : text).lowercased()
}

/// A tag is one word: spaces and commas separate tags.
private func plainText(_ text: String, _ key: SelectionKey, mayHaveComma: Bool) throws(SelectionError) -> String {
    guard !text.isEmpty, text.utf8.allSatisfy({ isVchar($0) && (mayHaveComma || $0 != UInt8(ascii: ",")) }) else {
        throw SelectionError(message: "\"\(key.rawValue)\" must be one word")
    }
    return text
}

/// Reads `type/subtype` or `type/*`, without parameters (RFC 9110 §12.5.1).
private func mediaRange(_ text: String) throws(SelectionError) -> String {
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isTchar) }),
        !parts[0].contains(UInt8(ascii: "*"))
    else {
        throw SelectionError(message: "\"type\" must be a media type such as text/html or image/*")
    }
    return text.lowercased()
}

private func storagePolicy(_ text: String) throws(SelectionError) -> StoragePolicy {
    guard let policy = StoragePolicy(rawValue: text.lowercased()) else {
        let known = StoragePolicy.allCases.map(\.rawValue).joined(separator: ", ")
        throw SelectionError(message: "\"storage\" must be one of \(known)")
    }
    return policy
}

/// Reads `90s`, `30m`, `12h`, `7d` or `2w`. A number without unit is seconds.
func span(_ text: String) -> Seconds? {
    let digits = text.prefix { ("0"..."9").contains($0) }
    let factors: [Substring: Int64] = ["": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    guard let count = Int64(digits), let factor = factors[text.dropFirst(digits.count)],
        case let (seconds, overflow) = count.multipliedReportingOverflow(by: factor), !overflow
    else { return nil }
    return Seconds(seconds)
}

private func age(_ text: String) throws(SelectionError) -> Seconds {
    guard let span = span(text) else {
        throw SelectionError(message: "\"older_than\" must be a span of time such as 90s, 30m, 12h or 7d")
    }
    return span
}
