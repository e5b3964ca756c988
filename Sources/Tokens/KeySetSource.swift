package import Message

/// Where the keys of an issuer come from.
package enum KeySetSource: Sendable, Hashable {
    /// A path of this machine.
    case file(String)
    case url(TargetURI)

    /// Reads what `jwks` says. A text with `://` is a URL.
    ///
    /// - Returns: nil if the text is no path, and no https URL. Plain http is for this machine alone: whoever is on the way could send keys of
    ///   their own, and sign tokens for anybody.
    package init?(_ text: String) {
        guard !text.isEmpty, !text.utf8.contains(0) else { return nil }
        guard text.contains("://") else {
            self = .file(text)
            return
        }
        guard let url = TargetURI(text.utf8), url.scheme == .https || url.isOnThisMachine else { return nil }
        self = .url(url)
    }
}

extension KeySetSource: CustomStringConvertible {
    /// The path, or the URL without its query.
    package var description: String {
        switch self {
        case .file(let path): path
        case .url(let url): url.withoutQuery
        }
    }
}

extension TargetURI {
    fileprivate var isOnThisMachine: Bool { ["127.0.0.1", "[::1]", "localhost"].contains(host) }
}
