package import Message

/// The resources for which an answered challenge holds (RFC 9110 §11.5): one realm at one origin, or a part of it. Requests to them carry
/// credentials without being asked.
package struct ProtectionSpace: Hashable, Sendable {
    package let scheme: Scheme
    package let host: String
    package let port: UInt16
    package let realm: [UInt8]
    private let extent: Extent

    private enum Extent: Hashable, Sendable {
        case everything
        /// Paths, with queries where a prefix has one.
        case prefixes([[UInt8]])
    }

    /// The space of a challenge in a response to a request for `target`.
    ///
    /// - Basic: all paths at or below the directory of the target (RFC 7617 §2.2).
    /// - Digest: what `domain` names at this origin, or the whole origin (RFC 7616 §3.3). Another origin that `domain` names is not part of it,
    ///   because credentials are for one origin.
    /// - NTLM, Negotiate: the origin. They authenticate connections.
    package init(of challenge: AnswerableChallenge, for target: TargetURI) {
        switch challenge {
        case .basic(let realm): self.init(realm, at: target, .prefixes([directory(of: target)]))
        case .digest(let digest):
            let references = digest.domain.compactMap { target.resolving($0) }.filter { $0.isSameOrigin(as: target) }
            // A domain that names other origins alone leaves nothing but the target itself.
            let prefixes = references.isEmpty ? [target.pathAndQuery] : references.map(\.pathAndQuery)
            self.init(digest.realm, at: target, digest.domain.isEmpty ? .everything : .prefixes(prefixes))
        case .ntlm, .negotiate: self.init([], at: target, .everything)
        }
    }

    private init(_ realm: [UInt8], at target: TargetURI, _ extent: Extent) {
        scheme = target.scheme
        host = target.host
        port = target.port
        self.realm = realm
        self.extent = extent
    }

    /// Whether the resource lies in this space. Dot segments are removed first.
    package func contains(_ target: TargetURI) -> Bool {
        guard target.scheme == scheme, target.host == host, target.port == port else { return false }
        switch extent {
        case .everything: return true
        case .prefixes(let prefixes):
            var path = target.pathAndQuery
            removeDotSegments(&path, from: 0)
            return prefixes.contains { path.starts(with: $0) }
        }
    }
}

/// The path up to its last "/", without dot segments.
private func directory(of target: TargetURI) -> [UInt8] {
    var path = target.pathAndQuery
    removeDotSegments(&path, from: 0)
    path = Array(path.prefix { $0 != UInt8(ascii: "?") })
    return Array(path[...(path.lastIndex(of: UInt8(ascii: "/")) ?? 0)])
}
