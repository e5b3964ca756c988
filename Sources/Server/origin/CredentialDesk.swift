import Credentials
import Routing

/// What this worker knows about the log-ins at origins: which challenge each has sent, how often its nonce was used, and who waits.
///
/// The refusals are counted for all workers together (`Shared.credentialLedger`).
final class CredentialDesk {
    private struct Space {
        var logIn: LogIn
        let secretNumber: UInt64
        /// Computes the answers to the challenge with that number.
        var session: (digest: DigestSession, number: Int)?
        /// The fetches that wait until another one has tried the credentials.
        var waiting: [ConnectionID] = []
    }
    private var spaces: [CredentialLedger.Key: Space] = [:]
    /// Of origins that are known at the same time. Those that nobody waits for are forgotten first.
    private static let countMax = 1024

    /// Passes an event to the log-in of an origin.
    ///
    /// - Parameter secretNumber: the secret in use. With another one than before, nothing that was learnt holds.
    /// - Returns: the action, and the fetches that may go on.
    func on(
        _ event: LogIn.Event, at key: CredentialLedger.Key, _ rule: CredentialRule, secretNumber: UInt64
    ) -> (action: LogIn.Action, woken: [ConnectionID]) {
        var space = spaces.removeValue(forKey: key)
        var woken: [ConnectionID] = []
        if let known = space, known.secretNumber != secretNumber {
            woken = known.waiting
            space = nil
        }
        var present = space ?? Space(logIn: rule.means.logIn, secretNumber: secretNumber)
        let action = present.logIn.on(event)
        if !present.logIn.isProving {
            woken += present.waiting
            present.waiting = []
        }
        makeRoom()
        spaces[key] = present
        return (action, woken)
    }

    /// The fetch is among those that are returned when the credentials have been tried.
    func wait(_ fetch: ConnectionID, at key: CredentialLedger.Key) { spaces[key]?.waiting.append(fetch) }

    /// The authorization of a request that answers the challenge with that number. Throws a `DigestFailure` or a `CredentialFault`.
    func authorization(
        _ challenge: DigestChallenge, number: Int, for request: DigestRequest, at key: CredentialLedger.Key,
        user: String, secret: Secret
    ) throws -> DigestAuthorization {
        var digest = try DigestSession(challenge, user: user, password: secret)
        if let session = spaces[key]?.session, session.number == number { digest = session.digest }
        let authorization = try digest.authorization(
            for: request, clientNonce: Shared.boundary(), using: OpenSSLHashing())
        spaces[key]?.session = (digest, number)
        return authorization
    }

    /// Takes what an accepting answer says about the next request (RFC 7616 §3.5).
    func learn(from information: AuthenticationInfo, number: Int, at key: CredentialLedger.Key) {
        guard spaces[key]?.session?.number == number else { return }
        spaces[key]?.session?.digest.learn(from: information)
    }

    private func makeRoom() {
        guard spaces.count >= CredentialDesk.countMax else { return }
        if let victim = spaces.first(where: { $0.value.waiting.isEmpty && !$0.value.logIn.isProving }) {
            spaces[victim.key] = nil
        }
    }
}
