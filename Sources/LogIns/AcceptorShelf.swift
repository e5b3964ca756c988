import Accounts
package import Authentication
import EventLoop
package import Kerberos
import Synchronization

/// The keys with which clients are logged in by Negotiate, and the threads on which their tokens are judged: the library reads the keytab and
/// writes a replay cache. May be used by every thread.
package final class AcceptorShelf: Sendable {
    private let known = Locked<(settings: NegotiateSettings, credential: AcceptorCredential)?>(nil)
    private let calls = CallPool(name: "kerberos-in", threadsMax: threadsMax, waitingMax: waitingMax)
    private let count = Atomic<UInt64>(0)

    private static let threadsMax = 4
    /// Tokens of all workers that wait for a thread. Beyond: their clients get 429.
    private static let waitingMax = 256

    package init() {}

    /// Judges a token where that may block.
    ///
    /// - Parameters:
    ///   - context: of the tokens before it on this connection. Nil: it is the first one.
    ///   - then: called once, on any thread, with the context for the next token.
    /// - Returns: false if too many tokens wait. Nothing is called then.
    package func judge(
        _ token: [UInt8], _ context: AcceptorContext?, _ settings: NegotiateSettings,
        then: @escaping @Sendable (NegotiationAnswer, AcceptorContext?) -> Void
    ) -> Bool {
        // Calls of one key run one after the other: as many keys as threads.
        let key = "\(count.add(1, ordering: .relaxed).newValue % UInt64(AcceptorShelf.threadsMax))"
        return calls.submit(key: key) { [self] in
            do throws(GSSAPIFailure) {
                let used: AcceptorContext
                if let context { used = context } else { used = AcceptorContext(try credential(for: settings)) }
                then(answer(of: used, to: token), used)
            } catch {
                Diagnostics.error("access.authentication.negotiate: the keytab cannot be used: \(error)")
                then(.unavailable, nil)
            }
        }
    }

    private func answer(of context: AcceptorContext, to token: [UInt8]) -> NegotiationAnswer {
        do throws(GSSAPIFailure) {
            let (reply, client) = try context.step(token)
            guard let client else { return .more(reply) }
            return .accepted(
                principal: client.principal, lifetime: client.lifetime.map { .seconds($0) }, token: reply)
        } catch {
            Diagnostics.debug(.authentication, "a token of Negotiate is not accepted: \(error)")
            return .refused
        }
    }

    /// Blocks.
    private func credential(for settings: NegotiateSettings) throws(GSSAPIFailure) -> AcceptorCredential {
        guard let keytab = settings.keytab else { preconditionFailure("Negotiate is offered with a keytab") }
        if let known = known.withLock({ $0 }), known.settings == settings { return known.credential }
        let made = try AcceptorCredential(keytab: keytab, principal: settings.principal)
        known.withLock { $0 = (settings, made) }
        return made
    }

    /// Drops the tokens that wait.
    package func close() { calls.close() }
}
