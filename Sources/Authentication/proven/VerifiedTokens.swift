import Message
import Rules

/// Remembers which signed tokens were verified, so that a signature is computed once and not with every request. Bounded; the oldest are
/// forgotten first.
///
/// It does not store tokens, but digests of them under a secret key.
package struct VerifiedTokens: Sendable {
    private let digest: @Sendable ([UInt8]) -> [UInt8]
    private var verified: ExpiringTable<[UInt8], Identity>
    private var refused: ExpiringTable<[UInt8], Void>

    /// How long a token is remembered, unless it expires before.
    static let remembered = Duration.seconds(3600)
    private static let refusalRemembered = Duration.seconds(10)
    private static let countMax = 4096

    init(digest: @escaping @Sendable ([UInt8]) -> [UInt8]) {
        self.digest = digest
        verified = ExpiringTable(lifetime: VerifiedTokens.remembered, countMax: VerifiedTokens.countMax)
        refused = ExpiringTable(lifetime: VerifiedTokens.refusalRemembered, countMax: VerifiedTokens.countMax)
    }

    /// Under which a token is remembered. The first byte tells it from digests of other things under the same key.
    func key(_ token: [UInt8]) -> [UInt8] { digest([0xFE] + token) }

    /// The identity that a token proves. Nil if it has not been verified, or if it has expired.
    func identity(_ key: [UInt8], now: Duration) -> Identity? {
        guard let found = verified.value(key, now: now)?.value, found.expiry.map({ now < $0 }) ?? false else {
            return nil
        }
        return found
    }

    func isRefused(_ key: [UInt8], now: Duration) -> Bool { refused.value(key, now: now) != nil }

    /// - Parameter identity: nil if the signature was wrong.
    mutating func record(_ key: [UInt8], _ identity: Identity?, now: Duration) {
        if let identity { verified.set(key, identity, now: now) } else { refused.set(key, (), now: now) }
    }

    package mutating func forgetAll() {
        verified.removeAll()
        refused.removeAll()
    }
}
