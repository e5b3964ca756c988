import Access
import Accounts
import Credentials
import EventLoop
import Forwarding
import Framing
import Message
import Routing
import Origins
import Transaction

/// Bodies of requests that are kept until they are whole, before a connection is asked for.
extension Fetch {
    // MARK: before the request

    /// What the body needs before a connection is asked for. Nil: nothing, or it is here.
    func prepareBody() -> CredentialHindrance? {
        let coverage = bodyCoverage
        guard coverage != .unreadable else {
            noteUncovered("it covers the members of a form, which cannot be read in a content coding")
            return .refusal(.credentialUnavailable)
        }
        let isCovered = coverage == .whole
        if let keptBody {
            if keptBody.isArriving { return .bodyIsMissing }
            keptBody.isCovered = isCovered
            return examine(keptBody)
        }
        let bytesMax = snapshot.limits.keptBodyBytesMax
        var isTooLong = false
        if case .length(let count) = request.bodyLength { isTooLong = count > UInt64(bytesMax) }
        let members = listedMembers()
        do throws(PlaceholderFault) {
            let isCoded = request.fields.contains(.contentEncoding)
            for requirement in members?.requirements ?? [] {
                try requirement.check(isCoded: isCoded, isTooLong: isTooLong)
            }
        } catch {
            return refuse(error)
        }
        if isTooLong {
            if isCovered { return refusalOfTooLong() }
            // A placeholder in it is found while it is sent. Where the type of a body does not say what it is, its beginning does.
            if members?.requirements.isEmpty ?? true { return nil }
        }
        guard isCovered || members != nil else { return nil }
        guard let place = worker.shared.keptBodies.take(limit: snapshot.limits.keptBodiesMax) else {
            return .refusal(.tooManyRequests)
        }
        // Others that wait for a verdict on the credentials do not wait for this client.
        settleCredentials()
        keptBody = KeptBody(members, isCovered: isCovered, place)
        worker.counters.add(.bodiesKept)
        worker.debug(
            .requests, request.id,
            "\(subject): its body is kept until it is whole, \(isCovered ? "because a credential covers it" : "for placeholders")"
        )
        return .bodyIsMissing
    }

    /// Asks the client for the body that is kept.
    func receiveBody() {
        wait(terms.firstByte)
        notify { $0.uploadAtOnce(to: self) }
    }

    private var bodyCoverage: BodyCoverage {
        guard let use = credentialUse else { return .nothing }
        return use.bodyCoverage(
            type: request.fields.first(.contentType), isEncoded: request.fields.contains(.contentEncoding),
            isSecure: request.origin.scheme == .https)
    }

    private func noteUncovered(_ reason: String) {
        Diagnostics.warning("credential \(request.credential?.rule.name ?? ""): \(subject) is refused: \(reason)")
    }

    private func refusalOfTooLong() -> CredentialHindrance {
        noteUncovered(
            "it covers the body, and Larder keeps no body of more than \(snapshot.limits.keptBodyBytesMax) bytes")
        return .refusal(.credentialUnavailable)
    }

    /// Looks at what was kept. Returns a refusal if it is not sent.
    private func examine(_ kept: KeptBody) -> CredentialHindrance? {
        kept.replacement = nil
        do throws(PlaceholderFault) {
            guard !isTooLong(kept), !kept.isReleased else {
                for requirement in kept.members?.requirements ?? [] { try requirement.check(beginning: kept.bytes) }
                // The rest is examined while it is sent.
                return kept.isCovered ? refusalOfTooLong() : nil
            }
            return try replacePlaceholder(in: kept)
        } catch {
            return refuse(error)
        }
    }

    private func refuse(_ fault: PlaceholderFault) -> CredentialHindrance {
        worker.notePlaceholderFault(fault, request)
        notify { $0.note(Denial(reason: .credential, text: fault.text)) }
        return .refusal(.credentialMisplaced)
    }

    // MARK: the access rules

    /// The access rules were asked before it was known which credential goes out in the body. Asks those that look at credentials again.
    func askRulesAboutBody() -> CredentialHindrance? {
        guard let kept = keptBody, snapshot.access.looksAtDetails, let secrets = substitution?.secrets,
            secrets.use == nil
        else { return nil }
        let name = secrets.placeholder.credential
        guard kept.allowedCredential != name else { return nil }
        request.noteCredentialOfBody(name)
        let verdict = worker.decide(request.access, address: nil, snapshot)
        guard verdict == .needsAddress else { return take(verdict, for: nil, kept, name) }
        switch HostAddresses.known(of: request.host, worker: worker) {
        case .success(let addresses): return take(amongst: addresses, kept, name)
        case .failure(let failure): return .refusal(Refusal(failure))
        case nil: break
        }
        guard let id else { preconditionFailure("a fetch is enrolled before it asks") }
        _ = HostAddresses.ask(for: request, snapshot, worker: worker) { [worker] result in
            guard let fetch = worker.fetches[id] else { return }
            fetch.turn { fetch.resolved(result, kept, name) }
        }
        return .undecided
    }

    private func resolved(_ result: Result<[SocketAddress], NameFailure>, _ kept: KeptBody, _ name: String) {
        guard way.need == .permission else { return }
        switch result {
        case .success(let addresses):
            guard case .refusal(let refusal)? = take(amongst: addresses, kept, name) else {
                return approach(.met(.permission))
            }
            approach(.refused(.permission, refusal))
        case .failure(let failure): approach(.refused(.permission, Refusal(failure)))
        }
    }

    private func take(amongst addresses: [SocketAddress], _ kept: KeptBody, _ name: String) -> CredentialHindrance? {
        let judged = worker.decide(request.access, amongst: addresses, snapshot)
        return take(judged.verdict, for: judged.address, kept, name)
    }

    private func take(
        _ verdict: Verdict, for address: IPAddress?, _ kept: KeptBody, _ name: String
    ) -> CredentialHindrance? {
        var refusal: Refusal?
        if case .deny(let denial) = verdict { refusal = Refusal(denial) }
        notify { refusal = $0.note(verdict, onceMoreFor: address) }
        if let refusal { return .refusal(refusal) }
        kept.allowedCredential = name
        return nil
    }

    private func isTooLong(_ kept: KeptBody) -> Bool { kept.bytes.count > snapshot.limits.keptBodyBytesMax }

    // MARK: the body

    /// Takes a piece of a body that is kept. Returns false if the client is to wait.
    func keep(_ bytes: UnsafeRawBufferPointer, in kept: KeptBody) -> Bool {
        unsafe kept.append(bytes)
        guard kept.isArriving else { return false }
        wait(terms.firstByte)
        let isSettled = !kept.isCovered && kept.members?.areSettled(by: kept.bytes) == true
        guard isTooLong(kept) || isSettled else { return true }
        kept.release()
        goOn()
        return false
    }

    /// The body that is kept is whole.
    func endKept(_ kept: KeptBody, trailers: Fields?) {
        let isAwaited = kept.isArriving
        // One that is too long is sent all the same, or refused.
        kept.end(trailers: trailers)
        if isAwaited { goOn() }
    }

    /// Asks for a connection in the next turn: the client's connection is in the middle of giving the body.
    private func goOn() {
        guard let id else { return }
        worker.loop.afterTurn { [worker] in
            guard let fetch = worker.fetches[id] else { return }
            fetch.turn { fetch.approach(.bodyCame) }
        }
    }

    /// Lets the body follow its head: the one that was kept, or the client's.
    func sendBodyBehindHead() {
        guard let kept = keptBody else { return notify { $0.upload(to: self) } }
        guard kept.isWhole else {
            keptBody = nil
            _ = unsafe kept.bytes.withUnsafeBytes { unsafe sendBody($0) }
            return notify { $0.upload(to: self) }
        }
        if isTooLong(kept), substitution != nil {
            guard unsafe kept.bytes.withUnsafeBytes({ unsafe examineBody($0) }) else { return }
        }
        if !kept.content.isEmpty { _ = unsafe kept.content.withUnsafeBytes { unsafe sendContent($0) } }
        endContent(trailers: kept.trailers)
    }
}
