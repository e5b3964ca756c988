import EventLoop

/// What an origin wants to see before it answers for guarded resources. One of the two origins knows Basic (RFC 7617) alone, the other one
/// Digest (RFC 7616). Clients know nothing of it: the proxy logs in.
final class Guards: Sendable {
    static let user = "fleet"
    static let password = "secret"
    /// `fleet:secret`.
    private static let basic = "Basic ZmxlZXQ6c2VjcmV0"

    private struct State {
        /// How often each nonce that holds was used.
        var nonces: [String: Set<String>] = [:]
        var last = 0
        var challenges = 0
    }
    private let state = Locked(State())

    /// How many requests were answered with a challenge.
    var challenges: Int { state.withLock { $0.challenges } }

    /// - Parameter isStale: nothing is wrong with the request but its nonce.
    func challenge(origin: Int, isStale: Bool) -> String {
        state.withLock {
            $0.challenges += 1
            $0.last += 1
            guard origin % 2 == 1 else { return "Basic realm=\"soak\"" }
            let nonce = "n\($0.last)"
            $0.nonces[nonce] = []
            return
                "Digest realm=\"soak\", nonce=\"\(nonce)\", algorithm=SHA-256, qop=\"auth\"\(isStale ? ", stale=true" : "")"
        }
    }

    /// Whether the request proves what it must.
    ///
    /// - Parameter expires: the nonce ends with this request, and counts no more, unless this is its first. So a client that answers its own
    ///   challenge gets through.
    func admits(_ head: Head, origin: Int, expires: Bool) throws(Violation) -> Bool {
        let values = head.all("authorization")
        guard values.count <= 1 else { throw Violation("Authorization \(values.count) times") }
        guard let value = values.first else { return false }
        guard origin % 2 == 1 else {
            guard value == Guards.basic else { throw Violation("Authorization: \(value)") }
            return true
        }
        guard value.hasPrefix("Digest "), let nonce = Guards.parameter("nonce", of: value),
            let count = Guards.parameter("nc", of: value), Guards.parameter("username", of: value) == Guards.user,
            Guards.parameter("uri", of: value) == String(head.startLine.split(separator: " ")[1])
        else { throw Violation("Authorization: \(value)") }
        let use: (isKnown: Bool, isFirst: Bool) = state.withLock {
            guard let counts = $0.nonces[nonce] else { return (false, true) }
            guard !expires || counts.isEmpty else {
                $0.nonces[nonce] = nil
                return (false, true)
            }
            return (true, $0.nonces[nonce]!.insert(count).inserted)
        }
        guard use.isFirst else { throw Violation("nonce \(nonce) with the count \(count) twice (RFC 7616 §3.4)") }
        return use.isKnown
    }

    private static func parameter(_ name: String, of value: String) -> String? {
        for part in value.dropFirst("Digest ".count).split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1).map { trimmed($0) }
            if pair.count == 2, pair[0] == name { return pair[1].filter { $0 != "\"" } }
        }
        return nil
    }
}

extension Resource {
    /// The origin wants a log-in for it.
    var isGuarded: Bool { Self.guarded.contains(folder) }
    static let guarded: [Folder] = [.b, .once, .pass]
}
