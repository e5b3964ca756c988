package import Message

/// Where a PAC file comes from.
package enum PACSource: Hashable, Sendable {
    /// A path of this machine.
    case file(String)
    case url(TargetURI)

    /// Reads what `pac` says. A text with `://` is a URL.
    ///
    /// - Returns: nil if the text is no path, or no absolute http or https URL without a user.
    package init?(_ text: String) {
        guard !text.isEmpty, !text.utf8.contains(0) else { return nil }
        guard text.contains("://") else {
            self = .file(text)
            return
        }
        guard let url = TargetURI(text.utf8) else { return nil }
        self = .url(url)
    }
}

extension PACSource: CustomStringConvertible {
    /// The path, or the URL without its query: that may be what a server lets its readers in by.
    package var description: String {
        switch self {
        case .file(let path): path
        case .url(let url): url.withoutQuery
        }
    }
}

extension PACSource: Comparable {
    package static func < (one: PACSource, other: PACSource) -> Bool { one.exactText < other.exactText }

    /// All of it, with the query. Not to be shown.
    var exactText: String {
        switch self {
        case .file(let path): path
        case .url(let url): String(decoding: url.normalised, as: UTF8.self)
        }
    }
}
