import EventLoop
import Kerberos

/// What Negotiate proves itself with.
package struct NegotiateIdentity: Sendable {
    /// The name of the credential in the configuration.
    let credential: String
    /// Tells the secrets of one credential apart.
    let secretNumber: UInt64
    let source: InitiatorCredential.Source
    /// The service of the principal `service/host`.
    var service = "HTTP"
}

/// The tickets of Kerberos, which all connections of a credential share, and the threads on which they are made and used: the key distribution
/// center may take many seconds.
///
/// May be used by every thread.
package final class TicketShelf: Sendable {
    private struct Ticket: Sendable {
        let secretNumber: UInt64
        let credential: InitiatorCredential
        /// Nil if the library itself gets another one in time.
        let goodUntil: MonotonicTime?
    }
    private struct Refusal: Sendable {
        let secretNumber: UInt64
        let failure: GSSAPIFailure
        /// Which attempt of all it was.
        let attempt: UInt64
    }
    private struct State {
        /// By the name of the credential, likewise `failures`.
        var tickets: [String: Ticket] = [:]
        var failures: [String: Refusal] = [:]
        /// How many attempts to get a ticket have ended.
        var attempts: UInt64 = 0
    }
    private let state = Locked(State())
    private let calls = CallPool(name: "kerberos", threadsMax: threadsMax, waitingMax: waitingMax)

    /// As many credentials can wait for their key distribution centers at once. Those of one credential come one after the other.
    private static let threadsMax = 8
    /// Log-ins of all workers that wait for a thread. Beyond: they fail (`TokenFailure.overloaded`).
    private static let waitingMax = 256
    /// Of credentials. Beyond: another one gets a new ticket when it is used next.
    private static let ticketsMax = 256

    package init() {}

    /// Runs `work` on a thread where it may block. It gets what `ticket` wants.
    ///
    /// - Returns: false if too many wait. The work is not run then.
    func submit(for identity: NegotiateIdentity, _ work: @escaping @Sendable (_ asked: Asked) -> Void) -> Bool {
        let asked = Asked(attempts: state.withLock { $0.attempts })
        return calls.submit(key: identity.credential) { work(asked) }
    }

    /// When a log-in asked for its ticket.
    struct Asked: Sendable { fileprivate let attempts: UInt64 }

    /// The ticket of a credential. Gets one if there is none. Blocks; called within `submit` alone, so that the log-ins of a credential come one after
    /// the other: what one of them learns holds for those that have waited for it, and a wrong password is not tried once for each.
    func ticket(for identity: NegotiateIdentity, _ asked: Asked) throws(GSSAPIFailure) -> InitiatorCredential {
        let name = identity.credential
        let (known, failure) = state.withLock { ($0.tickets[name], $0.failures[name]) }
        let now = MonotonicTime.read()
        if let known, known.secretNumber == identity.secretNumber, known.goodUntil.map({ now < $0 }) ?? true {
            return known.credential
        }
        if let failure, failure.secretNumber == identity.secretNumber, failure.attempt > asked.attempts {
            throw failure.failure
        }
        let made: InitiatorCredential
        do throws(GSSAPIFailure) {
            made = try InitiatorCredential(identity.source)
        } catch {
            state.withLock { state in
                state.attempts += 1
                state.tickets[name] = nil
                makeRoom(in: &state.failures)
                state.failures[name] = Refusal(
                    secretNumber: identity.secretNumber, failure: error, attempt: state.attempts)
            }
            throw error
        }
        let ticket = Ticket(
            secretNumber: identity.secretNumber, credential: made,
            goodUntil: made.lifetime.map { MonotonicTime.read().advanced(by: TicketShelf.usable(of: $0)) })
        state.withLock { state in
            state.attempts += 1
            state.failures[name] = nil
            makeRoom(in: &state.tickets)
            state.tickets[name] = ticket
        }
        return made
    }

    /// A token could not be made with this ticket. The next log-in gets another one.
    func forget(_ ticket: InitiatorCredential, of identity: NegotiateIdentity) {
        state.withLock { state in
            guard state.tickets[identity.credential]?.credential === ticket else { return }
            state.tickets[identity.credential] = nil
        }
    }

    /// Drops the log-ins that wait, and all tickets. Does not wait for calls under way, which may hang.
    package func close() {
        calls.close()
        state.withLock { $0 = State() }
    }

    private func makeRoom<Value>(in table: inout [String: Value]) {
        guard table.count >= TicketShelf.ticketsMax, let other = table.first else { return }
        table[other.key] = nil
    }

    /// For how long a ticket that expires after so many seconds is used. The token that it makes last has to arrive in time.
    private static func usable(of seconds: Int) -> Duration { .seconds(max(0, seconds - min(60, seconds / 10))) }
}
