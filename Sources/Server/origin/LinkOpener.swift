import Access
import Accounts
import Credentials
import EventLoop
import LogIns
import Message
import Routing
import TLS
import Transport

/// The owner of a `LinkOpener`. It keeps the opener until one of these is called, and cancels it before it is released itself.
protocol LinkOpenerOwner: AnyObject {
    /// The connection is open. The owner gets its transport, and for a tunnel the bytes that have come through it already.
    func opened(_ transport: consuming Transport, at address: SocketAddress, early: [UInt8])
    /// The connection could not be opened.
    func openingFailed(_ failure: OpeningFailure)
}

/// Opens one connection, for a fetch or a tunnel: performs the actions of an `Opening` with the resolver, with `ConnectAttempt`
/// (RFC 8305) and with OpenSSL.
///
/// The owner is called exactly once, or not at all after `cancel()`, and never from within `begin()`. The owner usually releases the opener
/// in that call, so nothing here may follow it.
final class LinkOpener: TimedObject {
    private let worker: Worker
    private let snapshot: Snapshot
    /// For each leg: the name and all its addresses together, each TLS handshake, and each answer of a next proxy.
    private let timeout: Duration
    /// The end of the first leg. Nil before it, and when its addresses are being connected to.
    private var dialDeadline: MonotonicTime?
    private let dialling: Dialling
    /// The request for which the connection is opened. The access rules decide on it.
    private let request: OwnedRequest
    private unowned let owner: any LinkOpenerOwner
    /// The machine calls nothing: the unchecked access is exclusive.
    private var opening: Opening {
        _read { yield unsafe uncheckedOpening }
        _modify { yield unsafe &uncheckedOpening }
    }
    @exclusivity(unchecked) private var uncheckedOpening: Opening
    private var ticket: ResolverTicket?
    private var attempt: ConnectAttempt?
    private var transport: Transport?
    private var address: SocketAddress?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    /// The name of the present handshake, for the log.
    private var serverName = ""
    private var talk: ProxyTalk?
    /// What the credential of the next proxy proves. Nil if it has none, and while nothing has been decided.
    private var proxyUse: CredentialUse?
    /// What the proxy is to be asked for when another request has tried the credential.
    private var undecided: (proxy: NextProxy, destination: Endpoint)?
    /// The log-in of the present connection to the proxy. Nil if the credential is proven in one message.
    private var logIn: LinkLogIn?
    /// Bytes that came through a tunnel behind the answer of the proxy.
    private var early: [UInt8] = []
    private var isBeginning = false
    private var failedAtOnce: OpeningFailure?
    /// Whether the opening has succeeded or failed.
    private var hasEnded = false

    init(
        worker: Worker, snapshot: Snapshot, goal: OpeningGoal, timeout: Duration, dialling: Dialling,
        for request: OwnedRequest, owner: any LinkOpenerOwner
    ) {
        self.worker = worker
        self.snapshot = snapshot
        self.timeout = timeout
        self.dialling = dialling
        self.request = request
        self.owner = owner
        unsafe uncheckedOpening = Opening(goal)
    }

    /// Starts. If the opening fails at once, returns the reason and does not call the owner.
    func begin() -> OpeningFailure? {
        precondition(!isBeginning && ticket == nil && attempt == nil, "an opener begins once")
        isBeginning = true
        if worker.isUnavailable(opening.goal, snapshot) {
            fail(.unavailable)
        } else {
            perform(opening.on(.begin))
        }
        isBeginning = false
        return failedAtOnce
    }

    /// Stops. The owner is not called afterwards.
    func cancel() {
        perform(opening.on(.cancelled))
        stop()
    }

    private func on(_ event: Opening.Event) { perform(opening.on(event)) }

    /// Performs actions until the opener waits for something or has ended.
    private func perform(_ first: Opening.Action) {
        var action = first
        while true {
            switch action {
            case .resolve(let host):
                guard let event = resolve(host) else { return }
                action = opening.on(event)
            case .permit(let addresses, let port, let addressee):
                action = opening.on(.judged(addresses.map { objection(to: $0, port: port, of: addressee) }))
            case .connect(let addresses, let port):
                return connect(addresses.map { SocketAddress($0, port: port) })
            case .connectBuiltIn:
                guard !connectBuiltIn() else { return }
                action = opening.on(.unreachable(.terminated))
            case .secure(let serverName, let profile):
                guard let event = secure(serverName, snapshot.tls[profile]) else { return }
                action = opening.on(event)
            case .securePeer(let peer):
                guard let context = worker.shared.fleet?.peers?.terms.tls.client else {
                    preconditionFailure("a node that is asked is one of a fleet")
                }
                guard let event = secure(peer.serverName, context) else { return }
                action = opening.on(event)
            case .askProxy(let proxy, let destination):
                guard let event = ask(proxy, for: destination) else { return }
                action = opening.on(event)
            case .ready:
                return becomeReady()
            case .fail(let failure):
                return fail(failure)
            case .nothing:
                return
            }
        }
    }

    // MARK: the legs

    /// Resolves the host. Returns the result if it is known, and nil if a name server is asked.
    private func resolve(_ host: String) -> Opening.Event? {
        precondition(ticket == nil, "a name is resolved once")
        let deadline = deadlineOfDialling
        dialDeadline = deadline
        if let known = HostAddresses.known(of: host, worker: worker) { return event(for: known) }
        ticket = worker.resolver.resolve(host, by: deadline, for: HostAddresses.asker(request)) { [weak self] result in
            guard let self else { return }
            ticket = nil
            on(event(for: result.map(\.addresses).mapError(NameFailure.init)))
        }
        return nil
    }

    /// The end of a leg that begins now. What the request has waited for the addresses of its host, for the access rules, counts.
    private var deadlineOfDialling: MonotonicTime {
        var left = timeout
        if case .direct = opening.goal.route { left -= request.takeNameWait() }
        return worker.loop.now.advanced(by: left)
    }

    private func event(for result: Result<[SocketAddress], NameFailure>) -> Opening.Event {
        worker.debug(.dns, request.id, "\(opening.goal.dialled.host): \(result.described)")
        return switch result {
        case .success(let addresses): .resolved(dialling.select(addresses.compactMap(IPAddress.init)))
        case .failure(let failure): .unresolved(failure)
        }
    }

    /// Why the address must not be dialled; nil if it may be.
    private func objection(to address: IPAddress, port: UInt16, of addressee: Opening.Addressee) -> Denial? {
        worker.shared.objection(
            to: request.access, address: address, port: port, of: addressee, over: opening.goal.route, snapshot,
            learning: worker.learner?.active, now: worker.moment)
    }

    private func connect(_ addresses: [SocketAddress]) {
        precondition(attempt == nil && transport == nil, "a connection is dialled once for each leg")
        // A proxy that closed its connection for a log-in is dialled again, without its name: a leg of its own.
        let deadline = dialDeadline.take() ?? worker.loop.now.advanced(by: timeout)
        attempt = ConnectAttempt.start(
            addresses, ConnectOptions(dialling), loop: worker.loop, attemptDelay: .milliseconds(250),
            by: deadline, history: worker.connectHistory
        ) { [weak self] outcome in
            // If the opener is gone, the socket in `outcome` closes here.
            guard let self else { return }
            attempt = nil
            switch consume outcome {
            case .connected(let socket, let address):
                Sockets.setNoDelay(socket.rawValue)
                transport = Transport(plain: socket)
                self.address = address
                on(.connected)
            case .failed(let error):
                on(.unreachable(ConnectFailure(error)))
            }
        }
    }

    /// Connects to the origin inside this process. Returns false if there are no descriptors left.
    private func connectBuiltIn() -> Bool {
        guard let socket = worker.checkOrigin.connect(for: opening.goal.use) else { return false }
        transport = Transport(plain: socket)
        // It has no address; the owner wants one for the log.
        address = SocketAddress(v4: 0x7F00_0001, port: opening.goal.destination.port)
        // The owner is not called from within `begin`.
        worker.loop.afterTurn { [weak self] in self?.on(.connected) }
        return true
    }

    /// Starts the TLS handshake. Returns its result if it is known at once, and nil if the handshake waits for the origin.
    private func secure(_ serverName: String, _ context: TLSClientContext) -> Opening.Event? {
        guard let carrier = transport.take() else { preconditionFailure("a handshake has its connection") }
        self.serverName = serverName
        // The events of the leg before are tied to the same socket.
        clearEvents()
        do {
            transport = try Transport(securing: carrier, with: context, serverName: serverName)
        } catch {
            return .insecure(.noSession)
        }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe transport?.assign(
            &readEvent, on: worker.loop, .read, { _, _, context in unsafe opener(context).handshakeMayGoOn() }, context)
        unsafe transport?.assign(
            &writeEvent, on: worker.loop, .write, { _, _, context in unsafe opener(context).handshakeMayGoOn() },
            context)
        worker.loop.timers.schedule(self, after: timeout)
        return continueHandshake()
    }

    private func handshakeMayGoOn() {
        guard let event = continueHandshake() else { return }
        clearEvents()
        on(event)
    }

    private func continueHandshake() -> Opening.Event? {
        switch transport?.handshake() {
        case .done:
            worker.noteHandshake(
                with: serverName, version: transport?.version ?? "", isResumed: transport?.isResumed == true,
                for: request.id)
            return .secured
        case .failed(let failure):
            worker.noteHandshakeFailure(with: serverName, failure, for: request.id)
            return event(for: failure)
        case .wantRead:
            writeEvent.remove()
            readEvent.add()
        case .wantWrite:
            readEvent.remove()
            writeEvent.add()
        case nil: preconditionFailure("a handshake has its transport")
        }
        return nil
    }

    /// An origin that wants a certificate of the client says so with one of several alerts, or just closes the connection.
    private func event(for failure: TLSFailure) -> Opening.Event {
        let event = Opening.Event(failure)
        if case .certificate = failure { return event }
        if transport?.isCertificateRefused == true { return .insecure(.clientCertificateRefused) }
        guard transport?.isAskedForCertificate == true else { return event }
        worker.noteCertificateRequest(by: opening.goal.destination.host)
        worker.noteCertificateRefusal(by: opening.goal.destination.host)
        return .insecure(.clientCertificate)
    }

    /// Asks the proxy for a tunnel. Returns the result if it is known at once, and nil if the proxy has yet to answer.
    private func ask(_ proxy: NextProxy, for destination: Endpoint) -> Opening.Event? {
        clearEvents()
        worker.loop.timers.schedule(self, after: timeout)
        switch approach(to: proxy, destination) {
        case .prove(let proof): return talk(with: proxy, to: destination, proof)
        case .logIn(let logIn):
            self.logIn = logIn
            return follow(logIn.begin { [unowned self] in tokenMade($0) })
        case .wait: return nil
        case .refusal: return .tunnelRefused(.logIn)
        }
    }

    private func talk(with proxy: NextProxy, to destination: Endpoint, _ proof: ProxyProof) -> Opening.Event? {
        talk = ProxyTalk(ProxyDialogue(with: proxy, to: destination, proof: proof, limits: snapshot.limits))
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe transport?.assign(
            &readEvent, on: worker.loop, .read, { _, _, context in unsafe opener(context).talkMayGoOn() }, context)
        unsafe transport?.assign(
            &writeEvent, on: worker.loop, .write, { _, _, context in unsafe opener(context).talkMayGoOn() }, context)
        return continueTalk()
    }

    private func talkMayGoOn() {
        guard let event = continueTalk() else { return }
        clearEvents()
        on(event)
    }

    private func continueTalk() -> Opening.Event? {
        guard transport != nil, talk != nil else { preconditionFailure("a proxy is asked over its connection") }
        switch unsafe talk!.advance(over: transport!, buffer: worker.readBuffer) {
        case .ended(let event, let unread):
            early = unread
            return logIn == nil ? concluded(event) : concludeLogIn(event)
        case .challenged(let challenges, let persists): return answer(challenges, persists: persists)
        case .waiting(let writes):
            // With TLS, each direction may wait for either event.
            transport?.wait(&readEvent, &writeEvent, toRead: !writes, toWrite: writes)
            return nil
        }
    }

    // MARK: the log-in at the proxy

    /// How Larder approaches a proxy.
    private enum Approach {
        case prove(ProxyProof)
        /// With several messages over the connection.
        case logIn(LinkLogIn)
        /// Another request tries the credential. `logInDecided` follows.
        case wait
        /// The credential must not be sent, or there is none.
        case refusal
    }

    private func approach(to proxy: NextProxy, _ destination: Endpoint) -> Approach {
        guard let name = proxy.credential else { return .prove(proxy.logIn.map { .logIn($0) } ?? ProxyProof.none) }
        guard let rule = snapshot.credentials[name]?.rule else { preconditionFailure("a route names a credential") }
        proxyUse = nil
        logIn = nil
        let permission = CredentialUse.begin(
            rule, at: proxy.place, of: request.id, onlyOnce: false, snapshot.secrets, worker: worker
        ) { [weak self, worker] in worker.loop.afterTurn { self?.logInDecided() } }
        switch permission {
        case .granted(let use):
            proxyUse = use
            if let scheme = use.connectionScheme {
                return .logIn(
                    LinkLogIn(
                        scheme, of: use, host: proxy.endpoint.host, endPointHash: transport?.endPointHash,
                        desk: worker.tokenDesk))
            }
            return proof(of: use, to: proxy, destination).map { .prove($0) } ?? .refusal
        case .undecided:
            undecided = (proxy, destination)
            worker.debug(
                .authentication, request.id,
                "credential \(name): \(destination) waits, because another request tries it at \(proxy)")
            return .wait
        case .refusal: return .refusal
        }
    }

    private func proof(of use: CredentialUse, to proxy: NextProxy, _ destination: Endpoint) -> ProxyProof? {
        do {
            if proxy.kind == .socks5, case .password(let user, _, _, _) = use.rule.means {
                let logIn = ProxyLogIn(user: Array(user.utf8), password: use.secret[.password].bytes)
                if logIn != nil { use.noteSent(with: "\(destination)") }
                return logIn.map { .logIn($0) }
            }
            let covered = DigestRequest(
                method: Array("CONNECT".utf8), uri: Array("\(destination)".utf8), body: .empty)
            let value = try use.authorization(for: covered)
            if value != nil { use.noteSent(with: "CONNECT \(destination)") }
            return .answering(value)
        } catch {
            Diagnostics.warning("credential \(use.rule.name): \(proxy): nothing can be sent: \(error)")
            return nil
        }
    }

    private func logInDecided() {
        guard let (proxy, destination) = undecided else { return }
        undecided = nil
        if let event = ask(proxy, for: destination) { on(event) }
    }

    /// Returns what a 407 to CONNECT leads to: the same question once more, with the credential, or a failure. Nil if a token has to be made.
    private func answer(_ challenges: [Challenge], persists: Bool) -> Opening.Event? {
        if let logIn {
            let step = logIn.challenged(by: challenges, persists: persists) { [unowned self] in tokenMade($0) }
            if case .fail(let failure) = step, failure.cause == .refused {
                return refused(by: challenges, persists: persists)
            }
            return follow(step)
        }
        guard let proxyUse, case .askAgain = proxyUse.challenged(by: challenges) else { return .tunnelRefused(.logIn) }
        return askAgain(persists: persists)
    }

    /// The proxy does not accept the log-in. If another one has learnt meanwhile that it asks for something else, that is tried.
    private func refused(by challenges: [Challenge], persists: Bool) -> Opening.Event {
        logIn = nil
        guard let proxyUse, case .askAgain = proxyUse.challenged(by: challenges) else { return .tunnelRefused(.logIn) }
        return askAgain(persists: persists)
    }

    private func askAgain(persists: Bool) -> Opening.Event {
        if !persists {
            clearEvents()
            transport = nil
        }
        return .tunnelChallenged(persists: persists)
    }

    /// Does what the log-in of the connection wants next.
    ///
    /// - Parameter step: nil if a token is being made, or examined.
    private func follow(_ step: LinkLogIn.Step?) -> Opening.Event? {
        switch step {
        case nil:
            // That has a time limit of its own.
            clearEvents()
            return nil
        case .send(let authorization):
            guard let proxy = opening.goal.proxy else { preconditionFailure("a log-in at a proxy needs one") }
            let destination = opening.goal.destination
            if logIn?.namesUser == true { proxyUse?.noteSent(with: "CONNECT \(destination)") }
            worker.loop.timers.schedule(self, after: timeout)
            return talk(with: proxy, to: destination, .answering(authorization))
        case .accepted, .passOn:
            proxyUse?.noteLoggedIn(persists: true)
            return concluded(.tunnelOpened(early: !early.isEmpty))
        case .fail(let failure): return logInFailed(failure)
        }
    }

    private func tokenMade(_ step: LinkLogIn.Step) {
        guard let event = follow(step) else { return }
        clearEvents()
        on(event)
    }

    private func logInFailed(_ failure: LinkLogIn.Failure) -> Opening.Event {
        proxyUse?.noteLogInFailed("\(failure)")
        guard failure.cause == .refused else { return concluded(.tunnelRefused(.logInIncomplete(failure.cause))) }
        // Whoever issues tickets refuses the credentials.
        return concluded(.tunnelRefused(.logIn))
    }

    /// The dialogue has ended that carried a message of the log-in. Nil if what the proxy says last must be examined.
    private func concludeLogIn(_ event: Opening.Event) -> Opening.Event? {
        guard let logIn else { preconditionFailure("a log-in is under way") }
        switch event {
        case .tunnelOpened:
            return follow(logIn.answered(with: talk?.proof ?? []) { [unowned self] in tokenMade($0) })
        case .closed: return follow(logIn.broke())
        default: return concluded(event)
        }
    }

    /// Tells the desk what came of the credential. Returns the event.
    private func concluded(_ event: Opening.Event) -> Opening.Event {
        logIn = nil
        guard let proxyUse else { return event }
        switch event {
        case .tunnelOpened, .tunnelRefused(.refused), .tunnelRefused(.socksRefused):
            proxyUse.answered(talk?.information)
        case .tunnelRefused(.logIn): _ = proxyUse.challenged(by: [])
        default: proxyUse.settle()
        }
        return event
    }

    override func timerFired() { on(.timedOut) }

    // MARK: the end

    private func becomeReady() {
        // The owner gets a socket without events: it registers its own, and may release this opener within the call.
        becomeEnded()
        precondition(!isBeginning, "the owner is not called from within `begin`")
        precondition(ticket == nil && attempt == nil, "an open connection waits for no name and no other address")
        clearEvents()
        guard let ready = transport.take(), let address else { preconditionFailure("an open connection has a socket") }
        if ready.isAskedForCertificate { worker.noteCertificateRequest(by: opening.goal.destination.host) }
        if case .secured(_, let profile) = opening.goal.use, !profile.provesOrigin {
            worker.noteUnverified(opening.goal.destination)
        }
        if let proxy = opening.goal.proxy {
            worker.noteSuccess(of: proxy)
        } else {
            worker.noteSuccess(of: opening.goal, snapshot)
        }
        owner.opened(ready, at: address, early: early)
    }

    private func becomeEnded() {
        precondition(!hasEnded, "an opening ends once")
        hasEnded = true
    }

    private func fail(_ failure: OpeningFailure) {
        becomeEnded()
        stop()
        switch failure {
        case .unreachable(let failure):
            worker.counters.add(.originConnectionsFailed)
            worker.noteFailure(of: opening.goal, failure, snapshot)
        case .insecure: worker.counters.add(.originConnectionsFailed)
        case .unavailable: worker.counters.add(.originsUnavailable)
        case .nextProxy(let proxy, let failure):
            worker.counters.add(.originConnectionsFailed)
            if failure.isOfProxy { worker.noteFailure(of: proxy, failure) } else { worker.noteSuccess(of: proxy) }
        case .nameNotFound, .nameTimeout, .nameUnasked, .tooManyNames, .denied: break
        case .routeUnknown: preconditionFailure("an opener has its route")
        }
        guard !isBeginning else {
            failedAtOnce = failure
            return
        }
        owner.openingFailed(failure)
    }

    private func stop() {
        ticket?.cancel()
        ticket = nil
        attempt?.cancel()
        attempt = nil
        proxyUse?.settle()
        logIn = nil
        undecided = nil
        // Remove the events before the socket closes: its number may be used again at once.
        clearEvents()
        transport = nil
    }

    private func clearEvents() {
        readEvent.clear()
        writeEvent.clear()
        worker.loop.timers.cancel(self)
    }
}

private func opener(_ context: UnsafeMutableRawPointer?) -> LinkOpener {
    unsafe Unmanaged<LinkOpener>.fromOpaque(context!).takeUnretainedValue()
}

extension Result<[SocketAddress], NameFailure> {
    fileprivate var described: String {
        switch self {
        case .success(let addresses): addresses.map(\.numericHost).joined(separator: ", ")
        case .failure(let failure): "\(failure)"
        }
    }
}

extension ConnectOptions {
    fileprivate init(_ dialling: Dialling) {
        guard dialling !== Dialling.general else {
            self.init()
            return
        }
        self.init(
            sources: dialling.sources.map { SocketAddress($0, port: 0) }, device: dialling.device,
            fastOpen: dialling.fastOpen, keepAlive: dialling.keepAlive)
    }
}

extension ConnectFailure {
    init(_ error: ConnectError) {
        switch error {
        case .refused: self = .refused
        case .timedOut: self = .timedOut
        case .unreachable, .noAddress: self = .unroutable
        case .failed: self = .terminated
        }
    }
}

extension Opening.Event {
    init(_ failure: TLSFailure) {
        switch failure {
        case .certificate(.notPinned): self = .insecure(.pin)
        case .certificate: self = .insecure(.certificate)
        case .protocolError, .alertReceived: self = .insecure(.disagreement)
        case .truncated, .connectionFailed: self = .closed
        }
    }
}
