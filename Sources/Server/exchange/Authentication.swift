import Access
import EventLoop
import Message
import Passwords
import Transaction

/// Authenticates a request as the `Authenticator` decides: reads the credentials, has helper threads answer questions that take
/// long, and counts.
enum Authentication {
    enum Result {
        case known(Identity, reply: AuthenticationReply?)
        case refused(Refusal)
        /// The closure gets the result later.
        case waiting
    }

    /// Checks the credentials of a request.
    ///
    /// - Parameter done: called once on this worker's thread if the result is `waiting`, and only then. It never gets `waiting`.
    static func check(
        _ request: OwnedRequest, worker: Worker, snapshot: Snapshot, _ done: @escaping (Result) -> Void
    ) -> Result {
        guard let authenticator = snapshot.authenticator else { return .refused(.internalError) }
        let attempt = AuthenticationAttempt(
            credentials: request.fields.first(.proxyAuthorization).map { Array($0) },
            method: Array(request.methodText), target: Array(request.bytes[request.head.targetRange]),
            client: request.client, now: worker.uptime)
        let conversation = Conversation(
            request: request, worker: worker, authenticator: authenticator, attempt: attempt, done)
        return conversation.carryOut(
            worker.noticingWaits { authenticator.examine(attempt, &worker.credentials) })
    }

    /// The authentication of one request. A helper thread holds a reference while it answers a question, but reads nothing of it: every
    /// property is used on the worker's thread only. That is why the class is `@unchecked Sendable`.
    private final class Conversation: @unchecked Sendable {
        private let request: OwnedRequest
        private let worker: Worker
        /// The authenticator that asked the question also judges the answer, even if the configuration was reloaded in between.
        private let authenticator: Authenticator
        private let attempt: AuthenticationAttempt
        private let done: (Result) -> Void

        init(
            request: OwnedRequest, worker: Worker, authenticator: Authenticator, attempt: AuthenticationAttempt,
            _ done: @escaping (Result) -> Void
        ) {
            self.request = request
            self.worker = worker
            self.authenticator = authenticator
            self.attempt = attempt
            self.done = done
        }

        func carryOut(_ decision: Authenticator.Decision) -> Result {
            switch decision {
            case .known(let identity, let reply):
                return .known(identity, reply: reply)
            case .refused(.tooManyFailures):
                worker.counters.add(.authenticationWaits)
                return .refused(.authenticationBusy)
            case .refused(.missing):
                worker.counters.add(.authenticationFailures)
                return .refused(.authenticationRequired)
            case .refused(.wrong):
                worker.counters.add(.authenticationFailures)
                return holdBack(.refused(.authenticationRequired), for: worker.credentials.takeDelay())
            case .refused(.stale):
                worker.counters.add(.authenticationStale)
                request.challenges = authenticator.challenges(at: attempt.now, isStale: true)
                return .refused(.authenticationRequired)
            case .more(let challenge):
                request.challenges = [challenge]
                return .refused(.authenticationRequired)
            case .ask(let pending):
                return ask(pending)
            }
        }

        /// The client gets the answer to a failure later. It occupies a timer meanwhile, and no thread.
        private func holdBack(_ result: Result, for delay: Duration) -> Result {
            guard delay > .zero else { return result }
            worker.hold(for: delay) { [self] in done(result) }
            return .waiting
        }

        private func ask(_ pending: Authenticator.Pending) -> Result {
            let isTaken = worker.shared.pool.submit(
                { answer(pending.question) },
                then: { [self] answer in
                    let later = attempt.at(worker.uptime)
                    let decision = worker.noticingWaits {
                        authenticator.conclude(pending, answer, later, &worker.credentials)
                    }
                    let result = carryOut(decision)
                    if case .waiting = result { return }
                    done(result)
                }, on: worker.loop.inbox)
            guard isTaken else { return .refused(.authenticationBusy) }
            worker.counters.add(.authenticationChecks)
            return .waiting
        }
    }
}

/// Answers a question of a scheme. It may take a second (password hashes are slow on purpose), so a helper thread calls it.
private func answer(_ question: AuthenticationQuestion) -> AuthenticationAnswer {
    switch question {
    case .password(let credentials, let hash):
        if let hash, WeakHash.isOne(hash) {
            .password(isRight: WeakHash.matches(credentials.password, hash, using: OpenSSLHashing()))
        } else {
            .password(isRight: verify(password: credentials.password, hash: hash ?? hashOfNobody))
        }
    }
}
