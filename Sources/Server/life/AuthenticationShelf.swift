package import Access
import EventLoop
import Synchronization

/// The schemes of one configuration, made of what their files say now: files and keys change without a reload. May be used by every thread.
package final class AuthenticationShelf: Sendable {
    private struct State: Sendable {
        var material: AuthenticationMaterial
        var authenticator: Authenticator?
    }
    private let settings: AuthenticationSettings
    private let state: Locked<State>
    private let wantsNewKeys = Atomic(false)

    init(_ settings: AuthenticationSettings, _ material: AuthenticationMaterial) {
        self.settings = settings
        state = Locked(State(material: material, authenticator: AuthenticationShelf.make(settings, material)))
    }

    /// Nil if clients need not prove who they are.
    var authenticator: Authenticator? { state.withLock { $0.authenticator } }

    package var material: AuthenticationMaterial { state.withLock { $0.material } }

    func replace(_ material: AuthenticationMaterial) {
        let made = AuthenticationShelf.make(settings, material)
        state.withLock { $0 = State(material: material, authenticator: made) }
    }

    private static func make(_ settings: AuthenticationSettings, _ material: AuthenticationMaterial) -> Authenticator? {
        Authenticator(settings, material, AuthenticationShelf.tools)
    }

    /// The key of nonces is that of the process: a reload does not change it.
    private static let tools: AuthenticationTools = {
        let key = Shared.random(16)
        func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        return AuthenticationTools(
            hashing: OpenSSLHashing(), nonceHash: SipHash(key: (word(key[..<8]), word(key[8...]))),
            random: { UInt64.random(in: .min ... .max) })
    }()

    /// A token names a key that is not there: the issuer may have a new one.
    func wantNewKeys() { wantsNewKeys.store(true, ordering: .relaxed) }

    /// Whether `wantNewKeys` was called since the last time.
    package func takeWish() -> Bool { wantsNewKeys.exchange(false, ordering: .relaxed) }
}
