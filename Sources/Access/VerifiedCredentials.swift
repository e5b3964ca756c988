package import Message

/// Remembers which credentials were right and which were wrong, so that a password is hashed once a minute instead of once per request.
///
/// It does not store passwords, but a digest of user and password under a secret key. It remembers failures briefly, and a client that
/// fails too often has to wait even with right credentials: otherwise an attacker could keep us busy hashing. The clock is a parameter
/// (a monotonic `Duration`), and so is the digest.
package struct VerifiedCredentials: Sendable {
    package enum Answer: Sendable, Equatable {
        /// - Parameter until: when the password has to be hashed again.
        case verified(until: Duration)
        case refused
        /// Hash the password on a helper thread, and `record` the result.
        case unknown
        /// This client failed too often. Its credentials are ignored for that long.
        case tooManyFailures(wait: Duration)
    }

    /// How much is remembered, and for how long.
    package struct Bounds: Sendable, Equatable {
        /// How long credentials that were right are accepted.
        package var remember: Duration = .seconds(60)
        /// How long credentials that were wrong are refused without hashing them again.
        package var rememberFailure: Duration = .seconds(2)
        /// The most credentials, and the most clients, that are remembered. The oldest are forgotten first.
        package var countMax = 4096
        /// How often a client may fail within `failureWindow` before it has to wait for the end of that time.
        package var failuresPerClientMax = 10
        package var failureWindow: Duration = .seconds(10)
        package init() {}
    }

    /// Signed tokens that have been verified.
    package var tokens: VerifiedTokens

    private let bounds: Bounds
    private let digest: @Sendable ([UInt8]) -> [UInt8]
    private var verified: ExpiringTable<[UInt8], Void>
    private var refused: ExpiringTable<[UInt8], Void>
    private var failures: ExpiringTable<Client, Int>

    /// - Parameter digest: a keyed digest (HMAC-SHA-256, say) whose key no other program knows.
    package init(bounds: Bounds = .init(), digest: @escaping @Sendable ([UInt8]) -> [UInt8]) {
        self.bounds = bounds
        self.digest = digest
        tokens = VerifiedTokens(digest: digest)
        verified = ExpiringTable(lifetime: bounds.remember, countMax: bounds.countMax)
        refused = ExpiringTable(lifetime: bounds.rememberFailure, countMax: bounds.countMax)
        failures = ExpiringTable(lifetime: bounds.failureWindow, countMax: bounds.countMax)
    }

    /// - Parameter client: nil for clients of a Unix socket, who share one count.
    package func answer(for credentials: BasicCredentials, client: IPAddress?, now: Duration) -> Answer {
        if let wait = wait(of: client, now: now) { return .tooManyFailures(wait: wait) }
        let key = identity(credentials)
        if let (_, expiry) = verified.value(key, now: now) { return .verified(until: expiry) }
        if refused.value(key, now: now) != nil { return .refused }
        return .unknown
    }

    /// How long this client has to wait because it failed too often. Nil: not at all.
    package func wait(of client: IPAddress?, now: Duration) -> Duration? {
        guard let (count, end) = failures.value(Client(client), now: now), count >= bounds.failuresPerClientMax else {
            return nil
        }
        return end - now
    }

    /// How often a client began to have to wait. Who keeps an answer of `verified` asks again when it changes.
    package private(set) var waitsBegun = 0

    /// When credentials that are found right now have to be hashed again.
    func expiry(now: Duration) -> Duration { now + bounds.remember }

    /// Records the result of hashing. A failure counts against the client.
    package mutating func record(_ credentials: BasicCredentials, isValid: Bool, client: IPAddress?, now: Duration) {
        let key = identity(credentials)
        if isValid {
            verified.set(key, (), now: now)
        } else {
            refused.set(key, (), now: now)
            countFailure(of: Client(client), now: now)
        }
    }

    /// Counts a failure of a client without credentials that could be remembered.
    package mutating func recordFailure(of client: IPAddress?, now: Duration) {
        countFailure(of: Client(client), now: now)
    }

    /// Call this when the users' file has changed.
    package mutating func forgetAll() {
        verified.removeAll()
        refused.removeAll()
        tokens.forgetAll()
    }

    private mutating func countFailure(of client: Client, now: Duration) {
        let count = (failures.value(client, now: now)?.value ?? 0) + 1
        if count == 1 { failures.set(client, count, now: now) } else { failures.update(client, count) }
        if count == bounds.failuresPerClientMax { waitsBegun += 1 }
    }

    /// The length of the user name comes first, so that no two pairs of user and password have the same bytes.
    private func identity(_ credentials: BasicCredentials) -> [UInt8] {
        let user = Array(credentials.user.utf8)
        let length = lengthBytes(user.count)
        return digest(length + user + credentials.password)
    }

    private func lengthBytes(_ count: Int) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
    }

    /// A client in an IPv6 network has at least a /64, so all addresses of a /64 count as one client.
    private struct Client: Hashable, Sendable {
        let address: IPAddress?

        init(_ address: IPAddress?) {
            guard let address, !address.isV4 else {
                self.address = address
                return
            }
            self.address = IPAddress(v6: address.v6.high, low: 0)
        }
    }
}
