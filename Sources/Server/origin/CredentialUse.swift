import Accounts
import Credentials
import Forwarding
import LogIns
import Message
import Routing
import Origins
import TLS
import Transaction

/// What one request proves with a credential of `credentials`, to an origin or to a next proxy.
///
/// It is begun before the request is sent, which asks the desk of the worker. It ends with one of `challenged`, `answered` and `settle`.
final class CredentialUse {
    /// Whether a request may go out.
    enum Permission {
        /// Yes. What it proves, which may be nothing yet.
        case granted(CredentialUse)
        /// Another request is trying the credentials. `resume` follows.
        case undecided
        /// No: there is no secret, or the place refuses it.
        case refusal(Refusal)
    }

    enum Verdict {
        /// Send the request again, with another use.
        case askAgain
        case refused
        /// The place asks for credentials, but not in a way that can be answered.
        case passOn
    }

    let rule: CredentialRule
    let key: CredentialLedger.Key
    let secret: SecretShelf.Version
    /// See `LogIn.Proof`.
    private(set) var proof: LogIn.Proof
    /// The challenge that is answered. Nil: credentials that need none, or no credentials at all (`proof` tells).
    private let challenge: AnswerableChallenge?
    private unowned let worker: Worker
    /// That of the request, for the log.
    private let id: RequestID?
    /// Nobody has told the desk yet what came of the credentials.
    private var isOpen: Bool
    /// What was sent, if it answers a digest's challenge.
    private var authorization: DigestAuthorization?
    /// Whose nonce the next sending uses.
    private enum Nonce {
        /// That of the desk, which counts for all requests.
        case shared
        /// That of a challenge which nobody else answers (`LogIn.Action.answerAlone`).
        case own(DigestChallenge)
        /// The same, used before. A connection that broke leads to another sending, and no count may be used twice.
        case counted(DigestSession)
    }
    private var nonce = Nonce.shared

    private init(
        _ rule: CredentialRule, _ key: CredentialLedger.Key, _ secret: SecretShelf.Version, proof: LogIn.Proof,
        challenge: AnswerableChallenge?, worker: Worker, id: RequestID?
    ) {
        self.rule = rule
        self.key = key
        self.secret = secret
        self.proof = proof
        self.challenge = challenge
        self.worker = worker
        self.id = id
        isOpen = proof != nil
    }

    /// Asks the desk what a request proves.
    ///
    /// - Parameters:
    ///   - id: that of the request.
    ///   - onlyOnce: the request cannot be sent again, because its body is not kept.
    ///   - resume: called once if the answer is `undecided`, perhaps within a call of another use.
    static func begin(
        _ rule: CredentialRule, at place: LogInPlace, of id: RequestID?, onlyOnce: Bool, _ secrets: SecretShelf,
        worker: Worker, resume: @escaping () -> Void
    ) -> Permission {
        let key = CredentialLedger.Key(credential: rule.name, at: place)
        guard let secret = secrets.version(of: rule.name) else { return .refusal(.credentialUnavailable) }
        let elsewhere: LogIn.Acceptance?
        switch worker.shared.credentialLedger.withLock({ $0.standing(key, secretNumber: secret.number) }) {
        case .givenUp: return .refusal(.credentialRefused)
        case .accepted(let acceptance): elsewhere = acceptance
        case .unknown: elsewhere = nil
        }
        let desk = worker.credentialDesk
        switch desk.tell(.sending(onlyOnce: onlyOnce, elsewhere: elsewhere), at: key, rule, secretNumber: secret.number)
        {
        case .sendAsItIs:
            return .granted(CredentialUse(rule, key, secret, proof: nil, challenge: nil, worker: worker, id: id))
        case .sendWithCredentials(let challenge, let number):
            return .granted(
                CredentialUse(rule, key, secret, proof: number, challenge: challenge, worker: worker, id: id))
        case .wait:
            desk.wait(at: key, resume)
            return .undecided
        case .passOn, .accepted, .askAgain, .answerAlone, .refused, .nothing:
            preconditionFailure("a request is sent or waits")
        }
    }

    /// Whether the request has a challenge of its own to answer, so that the desk is not asked again.
    func answersAlone(_ rule: CredentialRule, at place: LogInPlace, _ secrets: SecretShelf) -> Bool {
        if case .shared = nonce { return false }
        return key == CredentialLedger.Key(credential: rule.name, at: place)
            && secrets.version(of: rule.name)?.number == secret.number
    }

    /// A challenge may follow even if the credentials are right, so a body that is not kept must not leave before the answer.
    var mayBeChallenged: Bool { proof == nil || challenge?.isOnceOnly == true }

    /// What of a request's body it covers (`CredentialMeans.bodyCoverage`).
    func bodyCoverage(type: ArraySlice<UInt8>?, isEncoded: Bool, isSecure: Bool) -> BodyCoverage {
        rule.means.bodyCoverage(
            type: type, isEncoded: isEncoded, isSecure: isSecure, answering: proof == nil ? nil : challenge)
    }

    /// The scheme that logs in the connection and not the request, if the challenge has one.
    var connectionScheme: ChallengeScheme? {
        guard proof != nil, let scheme = challenge?.scheme, scheme.isOfConnection else { return nil }
        return scheme
    }

    /// Whose connections carry the request. Nil: those of everybody.
    var identity: BoundIdentity? { connectionScheme == nil ? nil : .credential(secretNumber: secret.number) }

    /// The value of `Authorization` or `Proxy-Authorization` of a password or a token. Nil if nothing is proven yet.
    func authorization(for covered: DigestRequest) throws -> [UInt8]? {
        guard let number = proof else { return nil }
        switch rule.means {
        case .password(let user, _, _, _):
            guard case .digest(let challenge) = challenge else {
                return try basicAuthorization(user: user, password: secret[.password]).bytes
            }
            if let authorization = try ownAuthorization(for: covered, user: user) {
                self.authorization = authorization
                return authorization.value
            }
            let (authorization, latest) = try worker.credentialDesk.authorization(
                challenge, number: number, for: covered, at: key, user: user, secret: secret[.password])
            self.authorization = authorization
            proof = latest
            return authorization.value
        case .bearer: return try bearerAuthorization(token: secret[.token]).bytes
        case .ticket, .oauth1, .sigv4, .placeholder:
            preconditionFailure("a ticket, a signature or a placeholder is no authorization of this kind")
        }
    }

    /// Nil: the request shares the nonce of the desk.
    private func ownAuthorization(for covered: DigestRequest, user: String) throws -> DigestAuthorization? {
        var session: DigestSession
        switch nonce {
        case .shared: return nil
        case .own(let challenge): session = try DigestSession(challenge, user: user, password: secret[.password])
        case .counted(let used): session = used
        }
        let authorization = try session.authorization(
            for: covered, clientNonce: Shared.boundary(), using: OpenSSLHashing())
        nonce = .counted(session)
        return authorization
    }

    /// The credentials are about to leave.
    func noteSent(with subject: @autoclosure () -> String) {
        worker.counters.add(.credentialsSent)
        worker.debug(.authentication, id, "credential \(rule.name): sent to \(key.place) with \(subject())")
    }

    // MARK: the answer

    /// The place asks for credentials.
    ///
    /// - Parameter mayLogIn: a connection to it may be logged in.
    func challenged(by challenges: [Challenge], mayLogIn: Bool = true) -> Verdict {
        isOpen = false
        let schemes = rule.means.challengeSchemes.filter { mayLogIn || !$0.isOfConnection }
        let answerable = strongestChallenge(challenges, among: schemes)
        switch tell(.challenged(answerable, proof)) {
        case .askAgain:
            nonce = .shared
            worker.debug(.authentication, id, "credential \(rule.name): \(key.place) asks for it")
            return .askAgain
        case .answerAlone:
            guard case .digest(let challenge) = answerable else { preconditionFailure("only a digest is stale") }
            nonce = .own(challenge)
            worker.debug(.authentication, id, "credential \(rule.name): \(key.place) does not take its nonce again")
            return .askAgain
        case .refused:
            refused()
            return .refused
        case .passOn:
            if answerable == nil { noteNoScheme(challenges) }
            return .passOn
        case .sendAsItIs, .sendWithCredentials, .wait, .accepted, .nothing:
            preconditionFailure("a challenge is answered, refused or passed on")
        }
    }

    /// The place answered and did not ask for credentials.
    ///
    /// - Parameter information: what it says about them.
    func answered(_ information: AuthenticationInfo?) {
        isOpen = false
        guard let number = proof else { return }
        if case .accepted = tell(.answered(number)) {
            worker.debug(.authentication, id, "credential \(rule.name): accepted by \(key.place)")
            worker.shared.credentialLedger.withLock {
                $0.accepted(key, LogIn.Acceptance(answering: challenge), secretNumber: secret.number)
            }
        }
        guard let authorization, let information else { return }
        worker.credentialDesk.learn(from: information, number: number, at: key)
        if (try? authorization.proof(in: information, using: OpenSSLHashing())) == .wrong {
            Diagnostics.warning(
                "credential \(rule.name): \(key.place.shortName) does not prove that it knows the password (RFC 7616 §3.5)"
            )
        }
    }

    /// Tells the desk that no verdict came, if it still waits for one.
    func settle() {
        guard isOpen else { return }
        isOpen = false
        _ = tell(.broke(proof))
    }

    // MARK: log-ins that belong to a connection

    /// - Parameter persists: the connection remains logged in after this request.
    func noteLoggedIn(persists: Bool) {
        worker.counters.add(.connectionLogIns)
        worker.debug(
            .connections, id,
            "\(key.place): logged in as credential \(rule.name), for \(persists ? "the connection" : "this request")")
    }

    /// A log-in that belongs to a connection did not come to its end, or whoever issues tickets refuses the credentials.
    func noteLogInFailed(_ text: String) {
        worker.counters.add(.connectionLogInsFailed)
        worker.noteLogInFailure("credential \(rule.name): \(key.place.shortName): the log-in failed: \(text)")
    }

    private func refused() {
        worker.counters.add(.credentialsRefused)
        let entry = worker.shared.credentialLedger.withLock {
            $0.refused(key, secretNumber: secret.number, now: worker.wallTime)
        }
        let place = key.place.shortName
        Diagnostics.warning(
            entry.isGivenUp
                ? "credential \(rule.name): \(place) has refused it \(entry.refusals) times: it is not sent there again until its secret or the configuration changes"
                : "credential \(rule.name): \(place) refuses it")
    }

    private func noteNoScheme(_ challenges: [Challenge]) {
        let offered = challenges.map { String(decoding: $0.scheme, as: UTF8.self) }.joined(separator: ", ")
        let allowed = rule.means.schemeNames.joined(separator: ", ")
        Diagnostics.info(
            "credential \(rule.name): \(key.place.shortName) asks for \(offered.isEmpty ? "nothing that is known" : offered), and the credential allows \(allowed)"
        )
    }

    private func tell(_ event: LogIn.Event) -> LogIn.Action {
        worker.credentialDesk.tell(event, at: key, rule, secretNumber: secret.number)
    }
}
