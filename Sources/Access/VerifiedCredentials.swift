package import Message

/// What is known already about credentials, so that a password is hashed once a minute and not once a request.
///
/// Passwords are not kept: a digest of user and password under a secret key stands for them. Failures are remembered too,
/// briefly, and each client may fail only so often before it has to wait, right or wrong: hashing is what an
/// attacker would have us do. Pure: the clock is a monotonic `Duration`, the digest a function.
package struct VerifiedCredentials: Sendable {
    package enum Answer: Sendable, Equatable {
        case verified
        case refused
        /// Hash it, off the worker, and `record` the outcome.
        case unknown
        /// This client failed too often; its credentials are not looked at for that long.
        case tooManyFailures(wait: Duration)
    }

    /// Bounds; the reasons stand at `VerifiedCredentials`.
    package struct Bounds: Sendable, Equatable {
        /// Longest time verified credentials are taken for good.
        package var remember: Duration = .seconds(60)
        /// Longest time a failure is repeated without hashing.
        package var rememberFailure: Duration = .seconds(2)
        /// Credentials held, and clients counted. The oldest go.
        package var countMax = 4096
        /// Failures of one client in `failureWindow` before it has to wait for the window's end.
        package var failuresPerClientMax = 10
        package var failureWindow: Duration = .seconds(10)
        package init() {}
    }

    private let bounds: Bounds
    private let digest: @Sendable ([UInt8]) -> [UInt8]
    private var verified: ExpiringTable<[UInt8], Void>
    private var refused: ExpiringTable<[UInt8], Void>
    private var failures: ExpiringTable<Client, Int>

    /// - Parameter digest: a keyed digest (HMAC-SHA-256, say) whose key nobody else has.
    package init(bounds: Bounds = .init(), digest: @escaping @Sendable ([UInt8]) -> [UInt8]) {
        self.bounds = bounds
        self.digest = digest
        verified = ExpiringTable(lifetime: bounds.remember, countMax: bounds.countMax)
        refused = ExpiringTable(lifetime: bounds.rememberFailure, countMax: bounds.countMax)
        failures = ExpiringTable(lifetime: bounds.failureWindow, countMax: bounds.countMax)
    }

    /// - Parameter client: nil for clients of a Unix socket, who share one count.
    package func answer(for credentials: BasicCredentials, client: IPAddress?, now: Duration) -> Answer {
        if let (count, end) = failures.value(Client(client), now: now), count >= bounds.failuresPerClientMax {
            return .tooManyFailures(wait: end - now)
        }
        let key = identity(credentials)
        if verified.value(key, now: now) != nil { return .verified }
        if refused.value(key, now: now) != nil { return .refused }
        return .unknown
    }

    /// The outcome of hashing; a failure counts against the client.
    package mutating func record(_ credentials: BasicCredentials, isValid: Bool, client: IPAddress?, now: Duration) {
        let key = identity(credentials)
        if isValid {
            verified.set(key, (), now: now)
        } else {
            refused.set(key, (), now: now)
            countFailure(of: Client(client), now: now)
        }
    }

    /// After the users' file changed.
    package mutating func forgetAll() {
        verified.removeAll()
        refused.removeAll()
    }

    private mutating func countFailure(of client: Client, now: Duration) {
        if let (count, _) = failures.value(client, now: now) {
            failures.update(client, count + 1)
        } else {
            failures.set(client, 1, now: now)
        }
    }

    /// The length of the user's name goes first, so that no two pairs make the same bytes.
    private func identity(_ credentials: BasicCredentials) -> [UInt8] {
        let user = Array(credentials.user.utf8)
        let length = lengthBytes(user.count)
        return digest(length + user + credentials.password)
    }

    private func lengthBytes(_ count: Int) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
    }

    /// One customer of an IPv6 network has a /64 at least; its addresses count as one.
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
