import Accounts
package import EventLoop
import Glibc
import Message
package import Routing

/// The judge of all resolvers of this process: a `NameHealth` for all workers and the node of the fleet. So one of them finds out that name servers are
/// silent, and the answer that one of them gets holds for the others.
package final class NameServerWatch: NameServerJudge {
    private struct State {
        /// Nil: every look-up asks (`circuit.failures: 0`).
        var terms: Circuit.Terms?
        var health = NameHealth()
    }
    private let state = Locked(State())

    init() {}

    /// Takes the terms of a new configuration. What is known stays.
    func adopt(_ terms: Circuit.Terms?) {
        state.withLock { state in
            state.terms = terms
            if terms == nil { state.health = NameHealth() }
        }
    }

    package func permit(_ host: String, of servers: String, at now: MonotonicTime) -> NameServerPermit {
        let permit = state.withLock { state in
            state.terms.map { state.health.permit(host, of: servers, now: now.sinceStart, $0) } ?? .ask
        }
        return switch permit {
        case .ask: .ask
        case .attempt: .attempt
        case .refusal: .refusal
        }
    }

    package func note(_ outcome: NameServerOutcome, of host: String, by servers: String, at now: MonotonicTime) {
        let wallTime = WallTime(secondsSinceEpoch: Int64(time(nil)))
        let news = state.withLock { state in
            state.terms.flatMap {
                state.health.note(
                    NameHealth.Outcome(outcome), of: host, by: servers, now: now.sinceStart, wallTime: wallTime, $0)
            }
        }
        switch news {
        case .nameSilent:
            Diagnostics.warning(
                "no name server answers for \(host): its look-ups fail at once for a while (\(servers))")
        case .serversSilent:
            Diagnostics.warning("the name servers do not answer: look-ups wait for a moment at most (\(servers))")
        case .nameAnswered: Diagnostics.info("\(host) can be looked up again (\(servers))")
        case .serversAnswered: Diagnostics.info("the name servers answer again (\(servers))")
        case nil: break
        }
    }

    /// Since when servers have been silent about a name. Nil if they have not, as far as known.
    package func entry(of host: String, at now: MonotonicTime) -> NameHealth.Entry? {
        state.withLock { state in state.terms.flatMap { state.health.entry(of: host, now: now.sinceStart, $0) } }
    }

    /// All names about which servers have been silent.
    package func entries(at now: MonotonicTime) -> [NameHealth.Entry] {
        state.withLock { state in state.terms.map { state.health.entries(now: now.sinceStart, $0) } ?? [] }
    }
}

extension NameHealth.Outcome {
    fileprivate init(_ outcome: NameServerOutcome) {
        self =
            switch outcome {
            case .answer: .answer
            case .partialAnswer: .partialAnswer
            case .quickFailure: .quickFailure
            case .silence: .silence
            }
    }
}
