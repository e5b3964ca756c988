import Accounts
import Credentials
import Forwarding
import LogIns
import Message
import Routing
import Origins
import TLS
import Transaction

/// The `Expect: 100-continue` that Larder sends itself, so that the origin sees the credentials before the content (RFC 9110 §10.1.1).
enum OwnExpectation {
    /// Larder has sent none.
    case none
    /// The origin has said nothing yet, and the content waits.
    case pending
    /// The content follows.
    case over
}

/// Larder's own credentials: the desk is asked before a connection to an origin is requested, and before a request is sent to a next proxy. It is
/// told of each final head.
extension Fetch {
    // MARK: before the request

    /// What keeps a request from asking for a connection.
    enum CredentialHindrance {
        /// Another request is trying the credentials. `credentialsDecided` follows.
        case undecided
        /// The body is kept and is not here yet. The client is to send it.
        case bodyIsMissing
        case refusal(Refusal)
    }

    /// Asks the desk what the request proves. Nil: it may go out.
    func prepareCredentials() -> CredentialHindrance? {
        if let hindrance = prepareSubstitution() { return hindrance }
        guard let rule = request.credential?.rule, rule.means.placeholderPlaces == nil else { return nil }
        return prepareCredential(rule)
    }

    private func prepareCredential(_ rule: CredentialRule) -> CredentialHindrance? {
        if let use = credentialUse, use.answersAlone(rule, at: .origin(request.origin), snapshot.secrets) { return nil }
        settleCredentials()
        switch begin(rule, at: .origin(request.origin), then: { $0.credentialsDecided() }) {
        case .granted(let use):
            credentialUse = use
            if use.connectionScheme != nil {
                worker.origins.noteLogIns(with: rule.name, secretNumber: use.secret.number)
            }
        case .undecided: return .undecided
        case .refusal(let refusal): return .refusal(refusal)
        }
        return nil
    }

    private func begin(
        _ rule: CredentialRule, at place: LogInPlace, then resume: @escaping @Sendable (Fetch) -> Void
    ) -> CredentialUse.Permission {
        guard let id else { preconditionFailure("a fetch is enrolled before it asks") }
        let wake = worker.wake { worker in worker.fetches[id].map { resume($0) } }
        let permission = CredentialUse.begin(
            rule, at: place, of: request.id, onlyOnce: request.hasBody && wholeBody == nil, snapshot.secrets,
            worker: worker
        ) { wake() }
        if case .undecided = permission {
            worker.debug(
                .authentication, request.id,
                "credential \(rule.name): \(subject) waits, because another request tries it at \(place)")
        }
        return permission
    }

    /// Writes the credentials for the origin into the request, and removes those of the client.
    func addCredentials(to outgoing: inout OutgoingRequest) {
        guard let use = credentialUse else { return }
        outgoing.remove(.authorization)
        if use.connectionScheme != nil { return addToken(to: &outgoing) }
        if use.mayBeChallenged, keptBody == nil { holdBody(of: &outgoing) }
        guard use.proof != nil else { return }
        do {
            try prove(use, in: &outgoing)
            use.noteSent(with: subject)
        } catch {
            Diagnostics.warning(
                "credential \(use.rule.name): \(use.key.place.shortName): nothing can be sent: \(error)")
        }
    }

    /// Lets the head go out alone, so that the body is not lost if a challenge is the answer.
    func holdBody(of outgoing: inout OutgoingRequest) {
        guard request.hasBody, mayExpect else { return }
        expectation = .pending
        outgoing.set(.expect, Array("100-continue".utf8))
    }

    private func covered(by outgoing: borrowing OutgoingRequest) -> DigestRequest {
        let body = wholeBody.map(DigestBody.content) ?? (request.hasBody ? .unknown : .empty)
        return DigestRequest(method: Array(request.methodText), uri: outgoing.target, body: body)
    }

    private func prove(_ use: CredentialUse, in outgoing: inout OutgoingRequest) throws {
        let secret = use.secret
        switch use.rule.means {
        case .password, .ticket, .bearer:
            guard let value = try use.authorization(for: covered(by: outgoing)) else { return }
            outgoing.set(.authorization, value)
        case .oauth1(let clientKey, let method, let realm):
            guard let target = TargetURI(request.uri) else { return }
            let signer = try OAuth1(
                consumerKey: clientKey, consumerSecret: secret[.clientSecret],
                token: secret.has(.token) ? String(decoding: secret[.token].bytes, as: UTF8.self) : nil,
                tokenSecret: secret[.tokenSecret], method: method, realm: realm)
            outgoing.set(
                .authorization,
                try signer.authorization(
                    for: Array(request.methodText), target, form: keptBody?.isCovered == true ? wholeBody : nil,
                    nonce: Shared.boundary(), at: worker.wallTime,
                    using: OpenSSLHashing()))
        case .sigv4(let region, let service):
            let signer = try AWSCredential(
                accessKeyID: String(decoding: secret[.accessKey].bytes, as: UTF8.self),
                secretAccessKey: secret[.secretKey],
                sessionToken: secret.has(.sessionToken) ? secret[.sessionToken] : nil, region: region,
                service: service)
            // Those of a client belong to its own signature.
            for name in AWSCredential.ownFieldNames { outgoing.remove(spelling: Array(name.utf8)) }
            let payload =
                if let wholeBody { AWSPayload.hashed(Digest.sha256(wholeBody)) } else {
                    request.hasBody ? AWSPayload.unsigned : .hashed(Digest.sha256([]))
                }
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
    func credentialsDecided() { turn { approach(.decided(.credential)) } }

    // MARK: after the answer

    /// Tells the desk of a final head. Returns the event to report in place of the head; nil if the head is what the client gets.
    func judgeCredentials(by response: ReceivedResponse) -> Retrieval.Event? {
        guard let use = credentialUse else { return nil }
        if isUnjudged(use) { return nil }
        guard response.status == 401 else {
            use.answered(response.fields.authenticationInfo)
            return nil
        }
        let challenges = parseChallenges(response.fields.all(.wwwAuthenticate))
        switch use.challenged(by: challenges, mayLogIn: reachesOrigin) {
        case .askAgain: return canRepeat ? .challenged(atLimit: .credentialRefused) : nil
        case .refused: return .notAnswered(.credentialRefused)
        case .passOn: return nil
        }
    }

    /// The response says nothing about the credentials, which it has not seen.
    private func isUnjudged(_ use: CredentialUse) -> Bool {
        if let legs, legs.use === use, case .over(.unjudged) = legs.state { true } else { false }
    }

    /// Whether the connection ends at the origin, and not at a next proxy that passes requests on over connections of its own.
    private var reachesOrigin: Bool {
        guard case .lent(let stream) = link else { return false }
        return forwardingProxy(of: stream) == nil
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
        worker.debug(
            .authentication, request.id,
            "\(origin) does not know Expect: \(holdsBody ? "\(subject) is sent again without" : subject)")
        return holdsBody ? .expectationFailed : nil
    }

    /// What is sent behind the head, if it is known before the head is.
    private var wholeBody: [UInt8]? { keptBody?.isWhole == true ? keptBody?.content : nil }

    /// A body that has left is gone, unless it was kept.
    var canRepeat: Bool { !request.hasBody || holdsBody || wholeBody != nil }

    /// Lets the body follow its head: the origin has asked for it, or says nothing, as servers of HTTP/1.0 do.
    func releaseBody() {
        expectation = .over
        wait(terms.firstByte)
        sendBodyBehindHead()
    }

    /// How long a body waits for a 100 (RFC 9110 §10.1.1: not for ever).
    static var continueTimeout: Duration { .seconds(1) }

    /// Tells the desk that no verdict came, if it still waits for one.
    func settleCredentials() {
        credentialUse?.settle()
        credentialUse = nil
    }

    // MARK: next proxies

    /// What becomes of the log-in at the next proxy that reads the request itself.
    enum ProxyLogInState {
        case none
        /// The stream is lent and nothing has been sent. `proxyLogInDecided` follows.
        case undecided
        case begun(CredentialUse)
    }

    /// Asks the desk what the request proves to the proxy that it is sent to. Returns false if it is not sent now.
    func beginProxyLogIn(at proxy: NextProxy) -> Bool {
        guard let name = proxy.credential else {
            settleProxyLogIn()
            return true
        }
        guard let rule = snapshot.credentials[name]?.rule else { preconditionFailure("a route names a credential") }
        if case .begun(let use) = proxyLogIn, use.answersAlone(rule, at: proxy.place, snapshot.secrets) { return true }
        settleProxyLogIn()
        switch begin(rule, at: proxy.place, then: { $0.proxyLogInDecided() }) {
        case .granted(let use):
            proxyLogIn = .begun(use)
            return true
        case .undecided:
            proxyLogIn = .undecided
            wait(terms.firstByte)
        case .refusal: feed(routeFailed(proxy, mayRepeat: true))
        }
        return false
    }

    private func proxyLogInDecided() {
        guard isIn(.asked), case .undecided = proxyLogIn else { return }
        turn { send() }
    }

    /// Addresses the request to the proxy, with what proves Larder to it.
    func address(_ outgoing: inout OutgoingRequest, to proxy: NextProxy) {
        outgoing.addressToProxy(authorization: proxy.logIn?.basic)
        guard case .begun(let use) = proxyLogIn else { return }
        if use.connectionScheme != nil { return addToken(to: &outgoing) }
        if use.mayBeChallenged, keptBody == nil { holdBody(of: &outgoing) }
        do {
            guard let value = try use.authorization(for: covered(by: outgoing)) else { return }
            outgoing.set(.proxyAuthorization, value)
            use.noteSent(with: subject)
        } catch {
            Diagnostics.warning("credential \(use.rule.name): \(proxy): nothing can be sent: \(error)")
        }
    }

    /// Takes a 407. The challenge is for Larder: no client could answer it (RFC 9110 §11.7.1).
    func judgeProxyLogIn(by response: ReceivedResponse, of proxy: NextProxy) -> Retrieval.Event {
        guard case .begun(let use) = proxyLogIn else { return routeFailed(proxy, mayRepeat: canRepeat) }
        switch use.challenged(by: parseChallenges(response.fields.all(.proxyAuthenticate))) {
        case .askAgain: return canRepeat ? .challenged(atLimit: .nextProxyLogIn) : .notAnswered(.nextProxyLogIn)
        case .refused, .passOn: return routeFailed(proxy, mayRepeat: canRepeat)
        }
    }

    /// The proxy passed the request on.
    func noteProxyAcceptance(_ response: ReceivedResponse) {
        guard case .begun(let use) = proxyLogIn, !isUnjudged(use) else { return }
        use.answered(response.fields.first(.proxyAuthenticationInfo).flatMap { AuthenticationInfo($0) })
    }

    func settleProxyLogIn() {
        if case .begun(let use) = proxyLogIn { use.settle() }
        proxyLogIn = .none
    }

    /// The proxy does not accept the log-in, which counts as a failure of the route. The next route is tried if there is one.
    func routeFailed(
        _ proxy: NextProxy, _ failure: NextProxyFailure = .logIn, mayRepeat: Bool
    ) -> Retrieval.Event {
        worker.noteFailure(of: proxy, failure)
        refusedRoutes.append(.proxy(proxy))
        guard mayRepeat, case .plan(let plan) = snapshot.choice(for: request),
            let next = plan.without(refusedRoutes)?.current
        else {
            return .notAnswered(Refusal(failure))
        }
        worker.counters.add(.routesFailedOver)
        worker.debug(.routes, request.id, "\(request.origin): \(proxy) does not accept the log-in, next \(next)")
        return .routeFailed
    }
}

extension Fields {
    fileprivate var authenticationInfo: AuthenticationInfo? {
        let line = lines.first { $0.name == .other && equalsIgnoringCase(name(of: $0), "Authentication-Info") }
        return line.flatMap { AuthenticationInfo(value(of: $0)) }
    }
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
