package import Access
import EventLoop

/// The authenticator of a configuration, which gets a successor when a file of users has changed.
///
/// May be used by every thread.
package final class AuthenticatorShelf: Sendable {
    private let settings: AuthenticationSettings
    private let held: Locked<(material: AuthenticationMaterial, authenticator: Authenticator?)>

    package init(_ settings: AuthenticationSettings, _ material: AuthenticationMaterial) {
        self.settings = settings
        held = Locked((material, Authenticator(settings, material, AuthenticatorShelf.tools)))
    }

    var current: Authenticator? { held.withLock { $0.authenticator } }

    /// What the files gave last.
    package var material: AuthenticationMaterial { held.withLock { $0.material } }

    func replace(by material: AuthenticationMaterial) {
        let authenticator = Authenticator(settings, material, AuthenticatorShelf.tools)
        held.withLock { $0 = (material, authenticator) }
    }

    /// The key of nonces is that of the process: a reload does not change it.
    private static let tools: AuthenticationTools = {
        let key = Shared.random(16)
        func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        return AuthenticationTools(
            hashing: OpenSSLHashing(), nonceHash: SipHash(key: (word(key[..<8]), word(key[8...]))),
            random: { UInt64.random(in: .min ... .max) })
    }()
}

/// The counts of attempts to authenticate, for all workers.
struct AttemptLedger: SharedAttempts {
    private let attempts = Locked(Attempts())

    func withAttempts<Result>(_ body: (inout Attempts) -> Result) -> Result { attempts.withLock { body(&$0) } }
}
