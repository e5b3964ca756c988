import Access
import EventLoop
import Message
import Passwords
import Transaction

/// Authenticates a request as the `Authenticator` decides: reads the credentials, has helper threads answer questions that take
/// long, and counts.
enum Authentication {
    enum Result {
        case known(Identity)
        case refused(Refusal)
        /// The closure gets the result later.
        case waiting
    }

    /// Checks the credentials of a request.
    ///
    /// - Parameter done: called on this worker's thread if the result is `waiting`, and only then. It gets `waiting` itself if a scheme
    ///   has a second question.
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
        return conversation.carryOut(authenticator.examine(attempt, &worker.credentials))
    }

    /// Checks the user and the password of a client that speaks SOCKS (RFC 1929), as those of Basic are.
    ///
    /// - Parameter done: as above.
    static func check(
        user: [UInt8], password: [UInt8], client: IPAddress?, worker: Worker, snapshot: Snapshot,
        _ done: @escaping (Result) -> Void
    ) -> Result {
        // Nobody need say who they are since the last reload.
        guard let authenticator = snapshot.authenticator else { return .refused(.internalError) }
        // Basic ends the user at the first colon.
        guard !user.contains(UInt8(ascii: ":")) else {
            worker.counters.add(.authenticationFailures)
            return .refused(.authenticationRequired)
        }
        let attempt = AuthenticationAttempt(
            credentials: Array("Basic ".utf8) + encodeBase64(user + [UInt8(ascii: ":")] + password),
            method: Array("CONNECT".utf8), target: [], client: client, now: worker.uptime)
        let conversation = Conversation(
            request: nil, worker: worker, authenticator: authenticator, attempt: attempt, done)
        return conversation.carryOut(authenticator.examine(attempt, &worker.credentials))
    }

    /// The authentication of one request. A helper thread holds a reference while it answers a question, but reads nothing of it: every
    /// property is used on the worker's thread only. That is why the class is `@unchecked Sendable`.
    private final class Conversation: @unchecked Sendable {
        /// Nil for a client that speaks SOCKS.
        private let request: OwnedRequest?
        private let worker: Worker
        /// The authenticator that asked the question also judges the answer, even if the configuration was reloaded in between.
        private let authenticator: Authenticator
        private let attempt: AuthenticationAttempt
        private let done: (Result) -> Void

        init(
            request: OwnedRequest?, worker: Worker, authenticator: Authenticator, attempt: AuthenticationAttempt,
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
            case .known(let identity, _):
                return .known(identity)
            case .refused(.tooManyFailures):
                return .refused(.authenticationBusy)
            case .refused(.missing), .refused(.wrong):
                worker.counters.add(.authenticationFailures)
                return .refused(.authenticationRequired)
            case .more(let challenge):
                request?.challenge = challenge
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
                    let waitsBegun = worker.credentials.waitsBegun
                    let decision = authenticator.conclude(pending, answer, later, &worker.credentials)
                    if worker.credentials.waitsBegun != waitsBegun { worker.closeShortWays() }
                    done(carryOut(decision))
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
        .password(isRight: verify(password: credentials.password, hash: hash ?? hashOfNobody))
    }
}
