import Credentials
import Forwarding
import Framing
import LogIns
import Message
import Routing
import Transaction

/// Log-ins that belong to the connection: NTLM and Negotiate, at the origin or at the next proxy that reads the request. The legs are no events of
/// the retrieval, which waits for one final head.
extension Fetch {
    /// Whose connections carry the request. Nil: those of everybody.
    var boundIdentity: BoundIdentity? { credentialUse == nil ? request.boundIdentity : credentialUse?.identity }

    // MARK: before the request

    /// Returns true if the request may go out now. If not, the connection is logged in first, and `follow` continues.
    func isLoggedIn() -> Bool {
        guard case .lent(let stream) = link else { preconditionFailure("a request goes out on a stream") }
        let proxy = forwardingProxy(of: stream)
        if proxy != nil, let known = stream.logIn, known.secretNumber != proxyUse?.secret.number {
            // The proxy knows this connection by a secret that is not used any more.
            stream.conversation.keep(for: nil)
            feed(.challenged(atLimit: .nextProxyLogIn))
            return false
        }
        guard let use = proxy == nil ? credentialUse : proxyUse, let scheme = use.connectionScheme else {
            legs = nil
            return mayLogIn(through: proxy)
        }
        let legs = legs ?? LogInLegs(use, scheme)
        self.legs = legs
        legs.begin(use, scheme)
        guard mayLogIn(through: proxy) else { return false }
        if stream.logIn?.isAccepted == true { return true }
        startLogIn(legs, stream)
        return false
    }

    /// What the request proves to the next proxy that reads it.
    private var proxyUse: CredentialUse? { if case .begun(let use) = proxyLogIn { use } else { nil } }

    /// Returns false if a proxy reads the request and the origin wants the connection to be logged in. The machine has been told.
    private func mayLogIn(through proxy: NextProxy?) -> Bool {
        guard let proxy, let use = credentialUse, use.connectionScheme != nil else { return true }
        use.noteLogInFailed(
            "\(proxy) reads the requests, so no connection to the origin can be logged in: use https, where it opens a tunnel"
        )
        use.settle()
        feed(.notAnswered(.credentialLogInIncomplete))
        return false
    }

    private func startLogIn(_ legs: LogInLegs, _ stream: OriginStream) {
        let logIn = LinkLogIn(
            legs.scheme, of: legs.use, host: legs.use.key.place.host,
            endPointHash: stream.conversation.endPointHash,
            desk: worker.tokenDesk)
        stream.logIn = logIn
        follow(logIn.begin(then: continuation))
    }

    /// What a log-in calls when a token has been made or examined.
    private var continuation: LinkLogIn.Completion {
        guard let id else { preconditionFailure("a fetch is enrolled before it asks") }
        return { [worker] step in
            guard let fetch = worker.fetches[id] else { return }
            fetch.turn { fetch.follow(step) }
        }
    }

    /// Does what the log-in wants next.
    ///
    /// - Parameter step: nil if a token is being made.
    private func follow(_ step: LinkLogIn.Step?) {
        guard isIn(.asked), let legs else { return }
        let use = legs.use
        switch step {
        case nil:
            // That has a time limit of its own, which is shorter.
            legs.state = .making
            wait(terms.firstByte)
        case .send(let authorization):
            legs.willSend(authorization, hasContent: request.hasBody)
            worker.debug(
                .authentication, request.id,
                "credential \(use.rule.name): message \(legs.tokensSent) of a log-in to \(use.key.place) goes with \(legs.isProbing ? "HEAD" : subject)"
            )
            // The first message of NTLM names nobody.
            if legs.tokensSent == legs.scheme.tokensMin { use.noteSent(with: subject) }
            if legs.isProbing {
                worker.counters.add(.originRequests)
                _ = sendHead(.probe)
            } else {
                sendRequest()
            }
        case .accepted: passHeldHead()
        // A connection that was logged in asks again, and ends.
        case .passOn: feed(.challenged(atLimit: refusal(of: .refused)))
        case .fail(let failure): logInFailed(failure)
        }
    }

    /// Writes the token into the request. Content waits, so that it is not lost if the origin wants another one.
    func addToken(to outgoing: inout OutgoingRequest) {
        guard let legs else { return }
        if let authorization = legs.authorization {
            outgoing.set(legs.use.key.place.fields.authorization, authorization)
        }
        if !legs.isProbing, legs.authorization != nil || legs.isUnwanted { holdBody(of: &outgoing) }
    }

    // MARK: final heads

    /// Takes a final head that belongs to the log-in. Nil if it is the answer to the request.
    func takeForLogIn(_ response: ReceivedResponse, _ head: ArrivedHead) -> ContentUse? {
        guard let legs, case .lent(let stream) = link else { return nil }
        let (place, scheme) = (legs.use.key.place, legs.scheme)
        if legs.isUnwanted, !legs.isProbing { return takeUnwanted(response) ? .leave : nil }
        guard let logIn = stream.logIn else { return nil }
        switch legs.state {
        case .over: return nil
        case .none where response.status != place.challengeStatus: return nil
        case .none,
            .sent where response.status == place.challengeStatus:
            return takeChallenge(response, head, scheme, logIn)
        // Larder's own expectation is not met. The log-in begins again on another connection.
        case .sent where response.status == 417 && expectation != .none: return nil
        case .sent:
            guard legs.tokensSent >= scheme.tokensMin else { return takeIgnorance(head) ? .leave : nil }
            let challenges = parseChallenges(response.fields.all(place.fields.challenge))
            switch logIn.answered(with: challenges, then: continuation) {
            case nil: return holdHead(legs)
            case .accepted: return takeAcceptance(response, head, scheme, stream) ? .leave : nil
            case .fail(let failure):
                logInFailed(failure)
                return .leave
            case .send, .passOn: preconditionFailure("a token was sent, and is accepted")
            }
        case .proven: return takeAcceptance(response, head, scheme, stream) ? .leave : nil
        case .making, .reading, .proving: preconditionFailure("no head is read in the middle of a leg")
        }
    }

    /// The origin asks for a token: the next one, or the first one once more.
    private func takeChallenge(
        _ response: ReceivedResponse, _ head: ArrivedHead, _ scheme: ChallengeScheme, _ logIn: LinkLogIn
    ) -> ContentUse? {
        guard let legs, case .lent(let stream) = link else { return nil }
        let challenges = parseChallenges(response.fields.all(legs.use.key.place.fields.challenge))
        let goesOn = scheme.token(in: challenges) != nil
        if !legs.isProbing, request.hasBody {
            // The origin waits for content on this connection, so it can carry no other request.
            guard holdsBody, goesOn else { return takeRefusal(by: challenges) ? .leave : nil }
            legs.takesSeveral = true
            feed(.challenged(atLimit: refusal(of: .noToken)))
            return .leave
        }
        // A request without a token that is not asked for this scheme: there is something else to prove.
        guard goesOn || (logIn.isAccepted && strongestChallenge(challenges, among: [scheme]) != nil) else {
            return takeRefusal(by: challenges) ? .leave : nil
        }
        legs.state = .reading(challenges)
        let countMax = snapshot.limits.challengeBodyBytesMax
        switch head.length {
        case .untilClose, .tunnel: stream.conversation.keep(for: nil)
        case .length(let count) where count > UInt64(countMax): stream.conversation.keep(for: nil)
        case .none, .length, .chunked: break
        }
        return .skip(atMost: countMax)
    }

    /// The peer does not accept what it got. Returns false if the client gets its response.
    private func takeRefusal(by challenges: [Challenge]) -> Bool {
        guard let legs else { return false }
        let use = legs.use
        let isUnsent = legs.isProbing || canRepeat
        let proxy = readingProxy
        // Nothing was proven with this request, on a connection that was logged in.
        if case .none = legs.state, !isUnsent {
            use.settle()
            legs.state = .over(.unjudged)
            guard proxy != nil else { return false }
            feed(.notAnswered(.nextProxyLogIn))
            return true
        }
        let verdict = use.challenged(by: challenges)
        if case .askAgain = verdict, isUnsent {
            feed(.challenged(atLimit: refusal(of: .refused)))
            return true
        }
        // No client could answer its challenge (RFC 9110 §11.7.1).
        if let proxy {
            feed(routeFailed(proxy, mayRepeat: isUnsent))
            return true
        }
        switch verdict {
        case .refused: feed(.notAnswered(.credentialRefused))
        case .passOn where legs.isProbing: feed(.notAnswered(.credentialRefused))
        case .askAgain, .passOn:
            legs.state = .over(.unjudged)
            return false
        }
        return true
    }

    /// The log-in is accepted. Returns false if the response is the one to the request.
    private func takeAcceptance(
        _ response: ReceivedResponse, _ head: ArrivedHead, _ scheme: ChallengeScheme, _ stream: OriginStream
    ) -> Bool {
        guard let legs else { return false }
        let use = legs.use
        let stays = scheme.staysLoggedIn(response.fields.persistentAuth)
        use.noteLoggedIn(persists: stays)
        if !stays { stream.logIn?.spend() }
        guard legs.isProbing else {
            legs.state = .over(.judged)
            return false
        }
        use.answered(nil)
        guard endProbe(head) else { return true }
        if stays {
            legs.state = .none
            sendRequest()
        } else {
            legs.begin(use, scheme)
            startLogIn(legs, stream)
        }
        return true
    }

    /// The origin has answered before it could know who asks: it does not ask for a log-in here. Returns false if the response is the one to the
    /// request.
    private func takeIgnorance(_ head: ArrivedHead) -> Bool {
        guard let legs, case .lent(let stream) = link else { return false }
        stream.logIn = nil
        legs.use.settle()
        guard legs.isProbing else {
            legs.state = .over(.unjudged)
            return false
        }
        guard endProbe(head) else { return true }
        legs.isUnwanted = true
        sendRequest()
        return true
    }

    /// The answer to a request that went out as it is, because a probe was not asked for a log-in.
    private func takeUnwanted(_ response: ReceivedResponse) -> Bool {
        guard let legs else { return false }
        let use = legs.use
        legs.state = .over(.unjudged)
        guard response.status == use.key.place.challengeStatus else { return false }
        fail(
            .outOfOrder,
            "\(use.key.place) asks for a log-in for \(request.access.methodText), and not for HEAD, with which Larder begins one for a request with content"
        )
        return true
    }

    // MARK: between the legs

    /// The body of a challenge has been read over: the log-in goes on.
    func skipped() {
        guard let legs, case .reading(let challenges) = legs.state, case .lent(let stream) = link,
            let logIn = stream.logIn
        else { return }
        let step = logIn.challenged(by: challenges, persists: stream.conversation.persists, then: continuation)
        if case .fail(let failure) = step, failure.cause == .refused {
            if takeRefusal(by: challenges) { return }
            return fail(.refused, "it is refused in the middle of the log-in")
        }
        follow(step)
    }

    /// Ends a probe, whose answer has no content. Returns false if the connection cannot carry the request; the machine has been told.
    private func endProbe(_ head: ArrivedHead) -> Bool {
        guard case .lent(let stream) = link, stream.conversation.persists, unsafe head.rest.isEmpty else {
            fail(.connectionEnded, "\(ConnectionLogIn.Failure.connectionEnded)")
            return false
        }
        legs?.endProbing()
        return true
    }

    /// Bytes have come although no head is awaited. Returns false if that has nothing to do with the log-in.
    func logInIsDisturbed() -> Bool {
        guard let legs else { return false }
        switch legs.state {
        case .none, .sent, .reading, .proven, .over: return false
        // Nothing has been asked, so this answers nothing.
        case .making, .proving: fail(.outOfOrder, "it sends something that it was not asked for")
        }
        return true
    }

    // MARK: the proof of the origin

    /// Has a head wait until the proof of the origin has been examined.
    private func holdHead(_ legs: LogInLegs) -> ContentUse {
        legs.state = .proving
        // The origin has answered, so content that has not left is not wanted.
        expectation = .none
        wait(terms.firstByte)
        return .hold
    }

    private func passHeldHead() {
        guard let legs, case .proving = legs.state, case .lent(let stream) = link else {
            preconditionFailure("a proof comes with a head that is kept")
        }
        legs.state = .proven
        stream.conversation.release()
    }

    // MARK: ends

    /// The connection has ended before a final head. Returns false if that has nothing to do with the log-in.
    func logInBroke() -> Bool {
        guard let legs, case .lent(let stream) = link, let logIn = stream.logIn else { return false }
        switch legs.state {
        // The connection may have been dead before.
        case .making where legs.tokensSent == 0, .sent where legs.tokensSent < 2: return false
        case .making, .sent: follow(logIn.broke())
        case .none, .reading, .proving, .proven, .over: return false
        }
        return true
    }

    private func logInFailed(_ failure: LinkLogIn.Failure) {
        guard failure.cause == .refused else { return fail(failure.cause, "\(failure)") }
        guard let use = legs?.use else { return }
        // Whoever issues the tickets refuses the credentials.
        let verdict = use.challenged(by: [])
        use.noteLogInFailed("\(failure)")
        if case .askAgain = verdict { return feed(.challenged(atLimit: refusal(of: .refused))) }
        guard let proxy = readingProxy else { return feed(.notAnswered(.credentialRefused)) }
        feed(routeFailed(proxy, mayRepeat: true))
    }

    /// Gives the log-in up. Nothing is known about the credentials.
    private func fail(_ cause: ConnectionLogIn.Failure, _ text: String) {
        guard let legs else { return }
        legs.use.noteLogInFailed(text)
        legs.use.settle()
        let mayRepeat = mayRepeat(after: cause, legs)
        legs.state = .over(.unjudged)
        guard let proxy = readingProxy else { return feed(.notAnswered(refusal(of: cause))) }
        feed(routeFailed(proxy, cause == .refused ? .logIn : .logInIncomplete(cause), mayRepeat: mayRepeat))
    }

    /// Whether another route may be tried: nobody has done what the request says, and its content is still there.
    private func mayRepeat(after cause: ConnectionLogIn.Failure, _ legs: LogInLegs) -> Bool {
        if legs.isProbing { return true }
        switch cause {
        // The proxy has asked for another token, or none was sent.
        case .refused, .noToken, .tooManyLegs, .outOfOrder: return canRepeat
        case .connectionEnded: return canRepeat && request.method.isSafe
        case .unproven: return false
        }
    }

    /// What the client is told.
    private func refusal(of cause: ConnectionLogIn.Failure) -> Refusal {
        guard readingProxy == nil else { return cause == .refused ? .nextProxyLogIn : .nextProxyLogInIncomplete }
        return Refusal(cause)
    }

    /// The next proxy that reads the request and is logged in to. Nil if it is the origin.
    private var readingProxy: NextProxy? {
        guard case .lent(let stream) = link else { return nil }
        return forwardingProxy(of: stream)
    }
}

extension Fields {
    fileprivate var persistentAuth: ArraySlice<UInt8>? {
        lines.first { $0.name == .other && equalsIgnoringCase(name(of: $0), "Persistent-Auth") }.map { value(of: $0) }
    }
}
