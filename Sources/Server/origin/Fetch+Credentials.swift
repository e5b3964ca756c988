import Credentials
import Forwarding
import Message
import Routing
import TLS
import Transaction

/// What one request proves with a credential of `credentials`.
final class CredentialUse {
    let rule: CredentialRule
    let key: CredentialLedger.Key
    let secret: SecretShelf.Version
    /// See `LogIn.Proof`.
    let proof: LogIn.Proof
    /// The challenge that is answered. Nil: credentials that need none, or no credentials at all (`proof` tells).
    let challenge: AnswerableChallenge?
    /// Nobody has told the desk yet what came of the credentials.
    var isOpen: Bool
    /// What was sent, if it answers a digest's challenge.
    var authorization: DigestAuthorization?

    init(
        _ rule: CredentialRule, _ key: CredentialLedger.Key, _ secret: SecretShelf.Version, proof: LogIn.Proof,
        challenge: AnswerableChallenge? = nil
    ) {
        self.rule = rule
        self.key = key
        self.secret = secret
        self.proof = proof
        self.challenge = challenge
        isOpen = proof != nil
    }

    /// A challenge may follow even if the credentials are right, so a body that is not kept must not leave before the answer.
    var mayBeChallenged: Bool { proof == nil || challenge?.isOnceOnly == true }
}

/// The `Expect: 100-continue` that Larder sends itself, so that the origin sees the credentials before the content (RFC 9110 §10.1.1).
enum OwnExpectation {
    /// Larder has sent none.
    case none
    /// The origin has said nothing yet, and the content waits.
    case pending
    /// The content follows.
    case over
}

/// Larder's own credentials: the desk is asked before a connection is requested, and told of each final head.
extension Fetch {
    // MARK: before the request

    /// What keeps a request from asking for a connection.
    enum CredentialHindrance {
        /// Another request is trying the credentials. `credentialsDecided` follows.
        case undecided
        case refusal(Refusal)
    }

    /// Asks the desk what the request proves. Nil: it may go out.
    func prepareCredentials() -> CredentialHindrance? {
        if let hindrance = prepareSubstitution() { return hindrance }
        guard let rule = request.credential?.rule, rule.means.placeholderPlaces == nil else { return nil }
        settleCredentials()
        let key = CredentialLedger.Key(credential: rule.name, origin: request.origin)
        guard rule.means.canSign(request) else {
            Diagnostics.warning(
                "credential \(rule.name): it covers the body of this request, which Larder does not keep")
            return .refusal(.credentialUnavailable)
        }
        guard let secret = snapshot.secrets.version(of: rule.name) else { return .refusal(.credentialUnavailable) }
        let elsewhere: LogIn.Acceptance?
        switch worker.shared.credentialLedger.withLock({ $0.standing(key, secretNumber: secret.number) }) {
        case .givenUp: return .refusal(.credentialRefused)
        case .accepted(let acceptance): elsewhere = acceptance
        case .unknown: elsewhere = nil
        }
        switch tell(.sending(onlyOnce: request.hasBody, elsewhere: elsewhere), at: key, rule, secret) {
        case .sendAsItIs:
            credentialUse = CredentialUse(rule, key, secret, proof: nil)
        case .sendWithCredentials(let challenge, let number):
            credentialUse = CredentialUse(rule, key, secret, proof: number, challenge: challenge)
        case .wait:
            guard let id else { preconditionFailure("a fetch is enrolled before it asks") }
            worker.credentialDesk.wait(id, at: key)
            Diagnostics.debug(
                .authentication,
                "credential \(rule.name): \(subject) waits, because another request tries it at \(request.origin)")
            return .undecided
        case .passOn, .accepted, .askAgain, .refused, .nothing: preconditionFailure("a request is sent or waits")
        }
        return nil
    }

    /// Writes the credentials into the request, and removes those of the client.
    func addCredentials(to outgoing: inout OutgoingRequest) {
        guard let use = credentialUse else { return }
        outgoing.remove(.authorization)
        expectation = request.hasBody && use.mayBeChallenged && mayExpect ? .pending : .none
        if holdsBody { outgoing.set(.expect, Array("100-continue".utf8)) }
        guard let number = use.proof else { return }
        do {
            try prove(use, number: number, in: &outgoing)
            worker.counters.add(.credentialsSent)
            Diagnostics.debug(.authentication, "credential \(use.rule.name): sent with \(subject)")
        } catch {
            Diagnostics.warning(
                "credential \(use.rule.name): \(request.origin.endpoint): nothing can be sent: \(error)")
        }
    }

    private func prove(
        _ use: CredentialUse, number: Int, in outgoing: inout OutgoingRequest
    ) throws {
        let secret = use.secret
        switch use.rule.means {
        case .password(let user, _, _):
            if case .digest(let challenge) = use.challenge {
                let covered = DigestRequest(
                    method: Array(request.methodText), uri: outgoing.target, body: request.hasBody ? .unknown : .empty)
                let authorization = try worker.credentialDesk.authorization(
                    challenge, number: number, for: covered, at: use.key, user: user, secret: secret[.password])
                use.authorization = authorization
                outgoing.set(.authorization, authorization.value)
            } else {
                outgoing.set(.authorization, try basicAuthorization(user: user, password: secret[.password]).bytes)
            }
        case .bearer: outgoing.set(.authorization, try bearerAuthorization(token: secret[.token]).bytes)
        case .oauth1(let clientKey, let method, let realm):
            guard let target = TargetURI(request.uri) else { return }
            let signer = try OAuth1(
                consumerKey: clientKey, consumerSecret: secret[.clientSecret],
                token: secret.has(.token) ? String(decoding: secret[.token].bytes, as: UTF8.self) : nil,
                tokenSecret: secret[.tokenSecret], method: method, realm: realm)
            outgoing.set(
                .authorization,
                try signer.authorization(
                    for: Array(request.methodText), target, nonce: Shared.boundary(), at: worker.wallTime,
                    using: OpenSSLHashing()))
        case .sigv4(let region, let service):
            let signer = try AWSCredential(
                accessKeyID: String(decoding: secret[.accessKey].bytes, as: UTF8.self),
                secretAccessKey: secret[.secretKey],
                sessionToken: secret.has(.sessionToken) ? secret[.sessionToken] : nil, region: region,
                service: service)
            let payload = request.hasBody ? AWSPayload.unsigned : .hashed(Digest.sha256([]))
            let covered = AWSRequest(
                method: Array(request.methodText), target: outgoing.target, fields: outgoing.signedFields,
                payload: payload)
            for field in try signer.sign(covered, at: worker.wallTime, using: OpenSSLHashing()) {
                outgoing.set(field)
            }
        case .placeholder: preconditionFailure("a placeholder is replaced, and nothing is added")
        }
    }

    /// The credentials have been tried: the request goes on.
    func credentialsDecided() {
        guard isIn(.opening), hasNoLink, credentialUse == nil else { return }
        turn { acquire(mayReuse: retrieval.mayReuseConnection) }
    }

    // MARK: after the answer

    /// Tells the desk of a final head. Returns the event to report in place of the head; nil if the head is what the client gets.
    func judgeCredentials(by response: ReceivedResponse) -> Retrieval.Event? {
        guard let use = credentialUse else { return nil }
        use.isOpen = false
        guard response.status == 401 else {
            noteAcceptance(use, response)
            return nil
        }
        let challenges = parseChallenges(response.fields.all(.wwwAuthenticate))
        let answerable = strongestChallenge(challenges, among: use.rule.means.challengeSchemes)
        switch tell(.challenged(answerable, use.proof), of: use) {
        case .askAgain:
            Diagnostics.debug(
                .authentication, "credential \(use.rule.name): \(request.origin) asks for it: \(subject) is sent again")
            // A body that has left is not kept.
            return request.hasBody && !holdsBody ? nil : .challenged
        case .refused:
            refused(use)
            return .notAnswered(.credentialRefused)
        case .passOn:
            if answerable == nil { noteNoScheme(use, challenges) }
            return nil
        case .sendAsItIs, .sendWithCredentials, .wait, .accepted, .nothing:
            preconditionFailure("a challenge is answered, refused or passed on")
        }
    }

    /// Whether the origin is asked for a 100 before the body follows.
    private var mayExpect: Bool {
        guard !request.fields.contains(.expect) else { return true }
        let (origin, now) = (request.origin, worker.uptime)
        return retrieval.mayExpect
            && worker.shared.withoutExpectations.withLock { $0.value(origin, now: now) == nil }
    }

    /// Takes a 417. Returns the event to report in place of the head; nil if the head is what the client gets.
    func judgeExpectation() -> Retrieval.Event? {
        // The client's own is for the client to withdraw.
        guard expectation != .none, !request.fields.contains(.expect) else { return nil }
        let (origin, now) = (request.origin, worker.uptime)
        worker.shared.withoutExpectations.withLock { $0.set(origin, (), now: now) }
        Diagnostics.debug(
            .authentication,
            "\(origin) does not know Expect: \(holdsBody ? "\(subject) is sent again without" : subject)")
        return holdsBody ? .expectationFailed : nil
    }

    /// Lets the body follow its head: the origin has asked for it, or says nothing, as servers of HTTP/1.0 do.
    func releaseBody() {
        expectation = .over
        wait(terms.firstByte)
        notify { $0.upload(to: self) }
    }

    /// How long a body waits for a 100 (RFC 9110 §10.1.1: not for ever).
    static var continueTimeout: Duration { .seconds(1) }

    /// Tells the desk that no verdict came, if it still waits for one.
    func settleCredentials() {
        if let use = credentialUse, use.isOpen { _ = tell(.broke(use.proof), of: use) }
        credentialUse = nil
    }

    private func noteAcceptance(_ use: CredentialUse, _ response: ReceivedResponse) {
        guard let number = use.proof else { return }
        if case .accepted = tell(.answered(number), of: use) {
            Diagnostics.debug(.authentication, "credential \(use.rule.name): accepted by \(request.origin)")
            worker.shared.credentialLedger.withLock {
                $0.accepted(use.key, LogIn.Acceptance(answering: use.challenge), secretNumber: use.secret.number)
            }
        }
        guard let sent = use.authorization, let information = response.fields.authenticationInfo else { return }
        worker.credentialDesk.learn(from: information, number: number, at: use.key)
        if (try? sent.proof(in: information, using: OpenSSLHashing())) == .wrong {
            Diagnostics.warning(
                "credential \(use.rule.name): \(request.origin.endpoint) does not prove that it knows the password (RFC 7616 §3.5)"
            )
        }
    }

    private func refused(_ use: CredentialUse) {
        worker.counters.add(.credentialsRefused)
        let entry = worker.shared.credentialLedger.withLock {
            $0.refused(use.key, secretNumber: use.secret.number, now: worker.wallTime)
        }
        let place = "\(request.origin.endpoint)"
        Diagnostics.warning(
            entry.isGivenUp
                ? "credential \(use.rule.name): \(place) has refused it \(entry.refusals) times: it is not sent there again until its secret or the configuration changes"
                : "credential \(use.rule.name): \(place) refuses it")
    }

    private func noteNoScheme(_ use: CredentialUse, _ challenges: [Challenge]) {
        let offered = challenges.map { String(decoding: $0.scheme, as: UTF8.self) }.joined(separator: ", ")
        let allowed = use.rule.means.schemeNames.joined(separator: ", ")
        Diagnostics.info(
            "credential \(use.rule.name): \(request.origin.endpoint) asks for \(offered.isEmpty ? "nothing that is known" : offered), and the credential allows \(allowed)"
        )
    }

    private func tell(_ event: LogIn.Event, of use: CredentialUse) -> LogIn.Action {
        tell(event, at: use.key, use.rule, use.secret)
    }

    private func tell(
        _ event: LogIn.Event, at key: CredentialLedger.Key, _ rule: CredentialRule, _ secret: SecretShelf.Version
    ) -> LogIn.Action {
        let (action, woken) = worker.credentialDesk.on(event, at: key, rule, secretNumber: secret.number)
        for fetch in woken { worker.wake { $0.fetches[fetch]?.credentialsDecided() }() }
        return action
    }
}

extension Fields {
    fileprivate var authenticationInfo: AuthenticationInfo? {
        let line = lines.first { $0.name == .other && equalsIgnoringCase(name(of: $0), "Authentication-Info") }
        return line.flatMap { AuthenticationInfo(value(of: $0)) }
    }
}

extension CredentialMeans {
    /// False if the signature would have to cover a body, which is sent while it arrives.
    fileprivate func canSign(_ request: OwnedRequest) -> Bool {
        guard request.hasBody else { return true }
        switch self {
        case .password, .bearer, .placeholder: return true
        // The members of a form are signed, and nothing else of a body (RFC 5849 §3.4.1.3.1).
        case .oauth1: return !(request.fields.first(.contentType).map(isForm) ?? false)
        // Object stores accept a body that is not covered, if TLS protects it.
        case .sigv4(_, let service): return service == "s3" && request.origin.scheme == .https
        }
    }
}

private func isForm(_ type: ArraySlice<UInt8>) -> Bool {
    equalsIgnoringCase(trimOWS(type.prefix { $0 != UInt8(ascii: ";") }), "application/x-www-form-urlencoded")
}

extension SecretShelf.Version {
    fileprivate func has(_ part: SecretPart) -> Bool { !self[part].bytes.isEmpty }
}

extension OutgoingRequest {
    /// What a signature covers (`AWSCredential.mustSign`), `Host` among it.
    fileprivate var signedFields: [(name: [UInt8], value: [UInt8])] {
        var fields: [(name: [UInt8], value: [UInt8])] = []
        forEachField { name, value in
            if AWSCredential.mustSign(Array(name)) { fields.append((Array(name), Array(value))) }
        }
        return fields
    }

    fileprivate mutating func set(_ field: CredentialField) {
        if field.name == "Authorization" {
            set(.authorization, field.value.bytes)
        } else {
            set(spelling: Array(field.name.utf8), field.value.bytes)
        }
    }
}
