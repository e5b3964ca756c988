package import Message

/// Remembers which credentials were right and which were wrong, so that a password is hashed once a minute instead of once per request.
///
/// It does not store passwords, but a digest of user, password and stored hash under a secret key: if the stored hash of a user changes,
/// what was remembered of that user is found no more. Failures are counted with those that other workers see (`Attempts`). The clock is a
/// parameter (a monotonic `Duration`), and so is the digest.
package struct VerifiedCredentials: Sendable {
    package enum Answer: Sendable, Equatable {
        /// - Parameter until: when the password has to be hashed again.
        case verified(until: Duration)
        case refused
        /// Hash the password on a helper thread, and `record` the result.
        case unknown
        /// This client failed too often, or others did with this name. The credentials are ignored for that long.
        case tooManyFailures(wait: Duration)
    }

    /// How much is remembered, and for how long.
    package struct Bounds: Sendable, Equatable {
        /// How long credentials that were right are accepted.
        package var remember: Duration = .seconds(60)
        /// How long credentials that were wrong are refused without hashing them again.
        package var rememberFailure: Duration = .seconds(2)
        /// The most credentials that are remembered. The oldest are forgotten first.
        package var countMax = 4096
        package init() {}
    }

    /// Signed tokens that have been verified.
    package var tokens: VerifiedTokens

    private let bounds: Bounds
    private let attempts: any SharedAttempts
    private let digest: @Sendable ([UInt8]) -> [UInt8]
    private var verified: ExpiringTable<[UInt8], Void>
    private var refused: ExpiringTable<[UInt8], Void>
    private var delay: Duration = .zero
    private var hasBegunWait = false

    /// - Parameters:
    ///   - attempts: the counts of all workers.
    ///   - digest: a keyed digest (HMAC-SHA-256, say) whose key no other program knows.
    package init(
        bounds: Bounds = .init(), attempts: some SharedAttempts, digest: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) {
        self.bounds = bounds
        self.attempts = attempts
        self.digest = digest
        tokens = VerifiedTokens(digest: digest)
        verified = ExpiringTable(lifetime: bounds.remember, countMax: bounds.countMax)
        refused = ExpiringTable(lifetime: bounds.rememberFailure, countMax: bounds.countMax)
    }

    // MARK: passwords

    /// - Parameters:
    ///   - stored: what the password is compared with. Nil: there is no such user, or somebody else compares it.
    ///   - client: nil for clients of a Unix socket, who share one count.
    package func answer(
        for credentials: BasicCredentials, storedAs stored: String? = nil, client: IPAddress?, now: Duration
    ) -> Answer {
        if let wait = wait(of: client, as: credentials.user, now: now) { return .tooManyFailures(wait: wait) }
        let key = identity(credentials, stored)
        if let (_, expiry) = verified.value(key, now: now) { return .verified(until: expiry) }
        if refused.value(key, now: now) != nil { return .refused }
        return .unknown
    }

    /// When credentials that are found right now have to be hashed again.
    func expiry(now: Duration) -> Duration { now + bounds.remember }

    /// Records the result of hashing. A failure counts against client and name.
    package mutating func record(
        _ credentials: BasicCredentials, storedAs stored: String? = nil, isValid: Bool, client: IPAddress?,
        now: Duration
    ) {
        let key = identity(credentials, stored)
        if isValid {
            verified.set(key, (), now: now)
            succeeded(client, as: credentials.user, now: now)
        } else {
            refused.set(key, (), now: now)
            failed(client, as: credentials.user, now: now)
        }
    }

    /// Call this when it is no longer known what passwords were compared with.
    package mutating func forgetAll() {
        verified.removeAll()
        refused.removeAll()
        tokens.forgetAll()
    }

    /// The lengths come first, so that no two inputs have the same bytes.
    private func identity(_ credentials: BasicCredentials, _ stored: String?) -> [UInt8] {
        let user = Array(credentials.user.utf8)
        let stored = Array((stored ?? "").utf8)
        return digest(lengthBytes(user.count) + lengthBytes(stored.count) + user + stored + credentials.password)
    }

    private func lengthBytes(_ count: Int) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
    }

    // MARK: users of a directory

    /// Under which the answer of a directory is remembered.
    func directoryKey(_ credentials: BasicCredentials, _ fingerprint: [UInt8]) -> [UInt8] {
        let user = Array(credentials.user.utf8)
        return digest(
            lengthBytes(fingerprint.count) + lengthBytes(user.count) + fingerprint + user + credentials.password)
    }

    /// All workers remember the same users: one that a directory has accepted is known everywhere until `expiry`, even if no directory answers.
    func directoryUser(_ key: [UInt8], now: Duration) -> (user: DirectoryUser, expiry: Duration)? {
        attempts.withAttempts { $0.directory.user(key, now: now) }.map { ($0.value, $0.expiry) }
    }

    func rememberDirectoryUser(_ user: DirectoryUser, _ key: [UInt8], for lifetime: Duration, now: Duration) {
        attempts.withAttempts { $0.directory.remember(user, key, for: lifetime, now: now) }
    }

    func isRefusedByDirectory(_ key: [UInt8], now: Duration) -> Bool { refused.value(key, now: now) != nil }

    mutating func rememberDirectoryRefusal(_ key: [UInt8], now: Duration) { refused.set(key, (), now: now) }

    // MARK: failures, for every scheme

    /// How long this client has to wait because it failed too often, or because others did with this name. Nil: not at all.
    package func wait(of client: IPAddress?, as name: String?, now: Duration) -> Duration? {
        attempts.withAttempts { $0.failures.wait(of: client, as: name, now: now) }
    }

    /// Whether somebody began to have to wait with a failure that was counted here. Who keeps an answer of `verified` asks again then.
    /// Taken once.
    package mutating func takeBegunWait() -> Bool {
        defer { hasBegunWait = false }
        return hasBegunWait
    }

    /// Counts a failure against the client and the name that it gave. Nil: it gave none.
    package mutating func failed(_ client: IPAddress?, as name: String?, now: Duration) {
        (delay, hasBegunWait) = attempts.withAttempts { [hasBegunWait] attempts in
            let waits = attempts.failures.waitsBegun
            let delay = attempts.failures.failed(client, as: name, now: now)
            return (delay, hasBegunWait || attempts.failures.waitsBegun != waits)
        }
    }

    package func succeeded(_ client: IPAddress?, as name: String, now: Duration) {
        attempts.withAttempts { $0.failures.succeeded(client, as: name, now: now) }
    }

    /// How long the answer to the last failure is held back. Taken once.
    package mutating func takeDelay() -> Duration {
        defer { delay = .zero }
        return delay
    }

    /// Uses a count of a nonce of Digest. Returns false if it may have been used before.
    ///
    /// - Parameter valid: when the nonces that are valid were made, until now. Older ones may be forgotten.
    func use(_ count: UInt32, of nonce: DigestNonce, valid: ClosedRange<UInt64>) -> Bool {
        attempts.withAttempts { $0.nonces.use(count, of: nonce, valid: valid) }
    }
}
