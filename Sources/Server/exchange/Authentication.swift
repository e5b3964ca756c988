import Access
import Authentication
import Credentials
import EventLoop
import Kerberos
import LogIns
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
        _ request: OwnedRequest, of stream: ClientStream, worker: Worker, snapshot: Snapshot,
        _ done: @escaping (Result) -> Void
    ) -> Result {
        guard let authenticator = snapshot.authenticator else { return .refused(.internalError) }
        let credentials = request.fields.first(.proxyAuthorization).map { Array($0) }
        let attempt = AuthenticationAttempt(
            credentials: credentials, method: Array(request.methodText),
            target: Array(request.bytes[request.head.targetRange]),
            body: credentials.map(authenticator.coverBody) == true ? coveredBody(of: stream) : .unknown,
            client: request.client, now: worker.uptime, wallTime: worker.wallTime)
        let conversation = Conversation(
            request: request, client: stream.address.connection, worker: worker, snapshot: snapshot,
            authenticator: authenticator, attempt: attempt, done)
        return conversation.carryOut(
            worker.noticingWaits { authenticator.examine(attempt, &worker.credentials) })
    }

    private static func coveredBody(of stream: ClientStream) -> DigestBody {
        guard let body = stream.body else { return .empty }
        return body.wholeContent.map { .content($0) } ?? .unknown
    }

    /// A user and a password as Basic has them in its field (RFC 7617 §2).
    static func basicCredentials(_ user: [UInt8], _ password: [UInt8]) -> Secret {
        Secret(Array("Basic ".utf8) + encodeBase64(user + [UInt8(ascii: ":")] + password))
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
            credentials: basicCredentials(user, password).bytes,
            method: Array("CONNECT".utf8), target: [], client: client, now: worker.uptime, wallTime: worker.wallTime)
        let conversation = Conversation(
            request: nil, client: nil, worker: worker, snapshot: snapshot, authenticator: authenticator,
            attempt: attempt, done)
        return conversation.carryOut(
            worker.noticingWaits { authenticator.examine(attempt, &worker.credentials) })
    }

    /// Checks once more what a client has sent with its CONNECT, or with SOCKS.
    ///
    /// - Parameter done: as above.
    static func check(
        again credentials: Secret, client: IPAddress?, worker: Worker, _ done: @escaping (Result) -> Void
    ) -> Result {
        let snapshot = worker.snapshot
        guard let authenticator = snapshot.authenticator else { return .refused(.authenticationRequired) }
        let attempt = AuthenticationAttempt(
            credentials: credentials.bytes, method: Array("CONNECT".utf8), target: [], client: client,
            now: worker.uptime, wallTime: worker.wallTime)
        let conversation = Conversation(
            request: nil, client: nil, worker: worker, snapshot: snapshot, authenticator: authenticator,
            attempt: attempt, done)
        return conversation.carryOut(
            worker.noticingWaits { authenticator.examine(attempt, &worker.credentials) })
    }

    /// The authentication of one request. A helper thread holds a reference while it answers a question, but reads nothing of it: every
    /// property is used on the worker's thread only. That is why the class is `@unchecked Sendable`.
    private final class Conversation: @unchecked Sendable {
        /// Nil for a client that speaks SOCKS, and where credentials are checked once more.
        private let request: OwnedRequest?
        /// Nil for a client that speaks SOCKS, which has no token.
        private let client: ConnectionID?
        private let worker: Worker
        private let snapshot: Snapshot
        /// The authenticator that asked the question also judges the answer, even if the configuration was reloaded in between.
        private let authenticator: Authenticator
        private let attempt: AuthenticationAttempt
        private let done: (Result) -> Void

        init(
            request: OwnedRequest?, client: ConnectionID?, worker: Worker, snapshot: Snapshot,
            authenticator: Authenticator, attempt: AuthenticationAttempt, _ done: @escaping (Result) -> Void
        ) {
            self.request = request
            self.client = client
            self.worker = worker
            self.snapshot = snapshot
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
                request?.challenges = authenticator.challenges(at: attempt.now, after: .stale)
                return .refused(.authenticationRequired)
            case .refused(.bodyNotCovered):
                worker.counters.add(.authenticationFailures)
                request?.challenges = authenticator.challenges(at: attempt.now, after: .bodyNotCovered)
                return .refused(.authenticationRequired)
            case .refused(.token(let fault)):
                worker.counters.add(.authenticationFailures)
                worker.debug(.authentication, request?.id, "a token of a client is not accepted: \(fault.text)")
                if fault == .unknownKey { snapshot.authentication.wantNewKeys() }
                request?.challenges = authenticator.challenges(at: attempt.now, after: .token(fault))
                return holdBack(.refused(.authenticationRequired), for: worker.credentials.takeDelay())
            case .refused(.unavailable):
                return .refused(.authenticationUnavailable)
            case .refused(.directoryUnavailable):
                return .refused(.directoryUnavailable)
            case .more(let challenge):
                request?.challenges = [challenge]
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
            // A signature takes less time than the way to a thread and back, and waits for no password this way.
            if case .signature(let signed) = pending.question {
                worker.counters.add(.authenticationChecks)
                return carryOut(conclude(pending, .signature(isRight: signed.isSigned)))
            }
            if case .negotiation(let token) = pending.question { return negotiate(token, pending) }
            if case .directory(let question) = pending.question { return askDirectory(question, pending) }
            let isTaken = worker.shared.pool.submit(
                { answer(pending.question) },
                then: { [self] answer in
                    let result = carryOut(conclude(pending, answer))
                    if case .waiting = result { return }
                    done(result)
                }, on: worker.loop.inbox)
            guard isTaken else { return .refused(.authenticationBusy) }
            worker.counters.add(.authenticationChecks)
            return .waiting
        }

        /// Asks the security context of the connection, on a thread where it may block.
        private func negotiate(_ token: [UInt8], _ pending: Authenticator.Pending) -> Result {
            guard let client else { preconditionFailure("a client that speaks SOCKS sends a password") }
            let context = worker.clients[client]?.logIn?.negotiation
            worker.clients[client]?.logIn?.negotiation = nil
            let settings = snapshot.configuration.access.authentication.negotiate
            let inbox = worker.loop.inbox
            let isTaken = worker.shared.acceptor.judge(token, context, settings) { [self] answer, context in
                inbox.post {
                    let decision = self.conclude(pending, .negotiation(answer))
                    self.keep(decision, context)
                    let result = self.carryOut(decision)
                    if case .waiting = result { return }
                    self.done(result)
                }
            }
            guard isTaken else { return .refused(.authenticationBusy) }
            worker.counters.add(.authenticationChecks)
            return .waiting
        }

        /// Asks a directory, on a thread where it may block.
        private func askDirectory(_ question: DirectoryQuestion, _ pending: Authenticator.Pending) -> Result {
            let inbox = worker.loop.inbox
            worker.shared.directory.check(question, snapshot.directoryTerms) { [self] answer in
                inbox.post {
                    switch answer {
                    case .accepted: self.worker.counters.add(.directoryAccepted)
                    case .refused: self.worker.counters.add(.directoryRefused)
                    case .unavailable: self.worker.counters.add(.directoryFailures)
                    }
                    let result = self.carryOut(self.conclude(pending, .directory(answer)))
                    if case .waiting = result { return }
                    self.done(result)
                }
            }
            return .waiting
        }

        /// What of a log-in its connection keeps, if it is still there.
        private func keep(_ decision: Authenticator.Decision, _ context: AcceptorContext?) {
            guard let connection = client.flatMap({ worker.clients[$0] }) else { return }
            let logIn = connection.logIn ?? ClientLogIn()
            switch decision {
            case .known(let identity, _):
                logIn.begin(
                    identity, attempt.credentials ?? [], worker.shared.credentialsHash, snapshot.authentication)
                // A decision about requests of nobody does not hold for the requests that follow.
                connection.shortWay = nil
            case .more: logIn.negotiation = context
            case .refused, .ask: return
            }
            connection.logIn = logIn
        }

        private func conclude(
            _ pending: Authenticator.Pending, _ answer: AuthenticationAnswer
        ) -> Authenticator.Decision {
            let later = attempt.at(worker.uptime)
            return worker.noticingWaits { authenticator.conclude(pending, answer, later, &worker.credentials) }
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
    case .signature, .negotiation, .directory: preconditionFailure("these are answered elsewhere")
    }
}
