package import Credentials
import Message
package import Origins

/// What this worker knows about the log-ins at origins and next proxies: which challenge each has sent, how often its nonce was used, and who waits.
///
/// The refusals are counted for all workers together (`Shared.credentialLedger`).
package final class CredentialDesk {
    private struct Space {
        var logIn: LogIn
        let secretNumber: UInt64
        /// Computes the answers to the challenge with that number.
        var session: (digest: DigestSession, number: Int)?
        /// What resumes those that wait until another one has tried the credentials.
        var waiting: [() -> Void] = []
    }
    private var spaces: [CredentialLedger.Key: Space] = [:]
    /// Of places that are known at the same time. Those that nobody waits for are forgotten first.
    private static let countMax = 1024

    package init() {}

    /// Passes an event to the log-in at a place. Resumes those that waited for it.
    ///
    /// - Parameter secretNumber: the secret in use. With another one than before, nothing that was learnt holds.
    package func tell(
        _ event: LogIn.Event, at key: CredentialLedger.Key, _ rule: CredentialRule, secretNumber: UInt64
    ) -> LogIn.Action {
        var space = spaces.removeValue(forKey: key)
        var woken: [() -> Void] = []
        if let known = space, known.secretNumber != secretNumber {
            woken = known.waiting
            space = nil
        }
        var present = space ?? Space(logIn: rule.means.logIn(at: key.place), secretNumber: secretNumber)
        let action = present.logIn.on(event)
        if !present.logIn.isProving {
            woken += present.waiting
            present.waiting = []
        }
        makeRoom()
        spaces[key] = present
        for resume in woken { resume() }
        return action
    }

    /// Calls `resume` when the credentials have been tried. It must not call the desk itself, but let that happen later.
    package func wait(at key: CredentialLedger.Key, _ resume: @escaping () -> Void) {
        spaces[key]?.waiting.append(resume)
    }

    /// The authorization of a request that answers the challenge with that number, or a later one if that has been answered already: an older
    /// nonce would begin to count anew, and no count of a nonce may be used twice (RFC 7616 §3.4).
    ///
    /// Throws a `DigestFailure` or a `CredentialFault`.
    ///
    /// - Returns: the authorization, and the number of the challenge that it answers.
    package func authorization(
        _ challenge: DigestChallenge, number: Int, for request: DigestRequest, at key: CredentialLedger.Key,
        user: String, secret: Secret
    ) throws -> (DigestAuthorization, number: Int) {
        var session: (digest: DigestSession, number: Int)
        if let latest = spaces[key]?.session, latest.number >= number {
            session = latest
        } else {
            session = (try DigestSession(challenge, user: user, password: secret), number)
        }
        let authorization = try session.digest.authorization(
            for: request, clientNonce: hexadecimal(randomBytes(16)), using: OpenSSLHashing())
        spaces[key]?.session = session
        return (authorization, session.number)
    }

    /// Takes what an accepting answer says about the next request (RFC 7616 §3.5).
    package func learn(from information: AuthenticationInfo, number: Int, at key: CredentialLedger.Key) {
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
