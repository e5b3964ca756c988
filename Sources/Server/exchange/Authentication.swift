import Access
import EventLoop
import Message
import Passwords
import Transaction

/// Carries out what the `Authenticator` decides: takes what it looks at from the request, has questions answered off the worker,
/// and counts.
enum Authentication {
    enum Result {
        case known(Identity)
        case refused(Refusal)
        /// The result comes by the closure.
        case waiting
    }

    /// - Parameter done: called on this worker's thread, only after `waiting`. It never gets `waiting`, unless a scheme asks twice.
    static func check(
        _ request: OwnedRequest, worker: Worker, snapshot: Snapshot, _ done: @escaping (Result) -> Void
    ) -> Result {
        guard let authenticator = snapshot.authenticator else { return .refused(.internalError) }
        let attempt = AuthenticationAttempt(
            credentials: request.fields.first(.proxyAuthorization).map { Array($0) }, client: request.client,
            now: worker.uptime)
        let conversation = Conversation(
            request: request, worker: worker, authenticator: authenticator, attempt: attempt, done)
        return conversation.carryOut(authenticator.examine(attempt, &worker.credentials))
    }

    /// One request that proves who it is from. Helper threads hold a reference while they work and touch nothing of it: everything
    /// happens on the worker's thread.
    private final class Conversation: @unchecked Sendable {
        private let request: OwnedRequest
        private let worker: Worker
        /// A reload between question and answer does not change who judges the answer.
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
            case .known(let identity):
                return .known(identity)
            case .refused(.tooManyFailures):
                return .refused(.authenticationBusy)
            case .refused(.missing), .refused(.wrong):
                worker.counters.add(.authenticationFailures)
                return .refused(.authenticationRequired)
            case .more(let challenge):
                request.challenge = challenge
                return .refused(.authenticationRequired)
            case .ask(let pending):
                return ask(pending)
            }
        }

        private func ask(_ pending: Authenticator.Pending) -> Result {
            let isTaken = worker.shared.pool.submit(
                { answer(pending.question) },
                then: { [self] answer in
                    let later = attempt.at(worker.uptime)
                    done(carryOut(authenticator.conclude(pending, answer, later, &worker.credentials)))
                }, on: worker.loop.inbox)
            guard isTaken else { return .refused(.authenticationBusy) }
            worker.counters.add(.authenticationChecks)
            return .waiting
        }
    }
}

/// Answers a question of a scheme. Blocks; for a helper thread.
private func answer(_ question: AuthenticationQuestion) -> AuthenticationAnswer {
    switch question {
    case .password(let credentials, let hash):
        .password(isRight: verify(password: credentials.password, hash: hash ?? hashOfNobody))
    }
}
