package import Authentication
import EventLoop
import Synchronization

/// The schemes of one configuration, made of what their files say now: files and keys change without a reload. May be used by every thread.
package final class AuthenticationShelf: Sendable {
    private struct State: Sendable {
        var material: AuthenticationMaterial
        var authenticator: Authenticator?
        var tools: AuthenticationTools
    }
    private let settings: AuthenticationSettings
    private let state: Locked<State>
    private let wantsNewKeys = Atomic(false)

    package init(_ settings: AuthenticationSettings, _ material: AuthenticationMaterial) {
        self.settings = settings
        let tools = AuthenticationShelf.tools
        state = Locked(
            State(material: material, authenticator: Authenticator(settings, material, tools), tools: tools))
    }

    /// Nil if clients need not prove who they are.
    package var authenticator: Authenticator? { state.withLock { $0.authenticator } }

    package var material: AuthenticationMaterial { state.withLock { $0.material } }

    package func replace(_ material: AuthenticationMaterial) {
        let tools = state.withLock { $0.tools }
        let made = Authenticator(settings, material, tools)
        state.withLock { $0 = State(material: material, authenticator: made, tools: tools) }
    }

    /// Uses nonces that all nodes of a fleet know. Called before the first request.
    package func shareNonces(_ key: [UInt8]) {
        let tools = AuthenticationTools(
            hashing: OpenSSLHashing(), nonceHash: SipHash(bytes: key),
            clockOffset: {
                .microseconds(readWallMicroseconds()) - MonotonicTime.read().sinceStart
            }, random: { UInt64.random(in: .min ... .max) })
        state.withLock { state in
            state.tools = tools
            state.authenticator = Authenticator(settings, state.material, tools)
        }
    }

    /// Without a fleet the key of nonces is that of the process: a reload does not change it.
    private static let tools: AuthenticationTools = {
        AuthenticationTools(
            hashing: OpenSSLHashing(), nonceHash: SipHash(bytes: randomBytes(16)),
            random: { UInt64.random(in: .min ... .max) })
    }()

    /// A token names a key that is not there: the issuer may have a new one.
    package func wantNewKeys() { wantsNewKeys.store(true, ordering: .relaxed) }

    /// Whether `wantNewKeys` was called since the last time.
    package func takeWish() -> Bool { wantsNewKeys.exchange(false, ordering: .relaxed) }
}

extension SipHash {
    /// - Parameter bytes: 16 of them.
    package init(bytes: [UInt8]) {
        precondition(bytes.count == 16, "the key has 128 bits")
        func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        self.init(key: (word(bytes[..<8]), word(bytes[8...])))
    }
}
