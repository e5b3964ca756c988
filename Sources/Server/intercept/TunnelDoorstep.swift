import Access
import Accounts
import EventLoop
import Forwarding
import Framing
import Glibc
import Interception
import LimitTables
import Message
import Routing
import Rules
import TLS
import Transaction
import Transport

/// Stands between the answer to a client that asked for a tunnel and what the tunnel becomes, until its first bytes are judged.
///
/// ```
/// greeting ─▶ listening ─▶ [issuing] ─▶ handshaking ─▶ expecting ─▶ a ClientConnection
///                 ├──────────────────────────────────────────────▶ a ClientConnection (HTTP without TLS)
///                 └─▶ [dialling] ─▶ a TunnelRelay
/// ```
///
/// It carries out the steps that a `TunnelTarget` decides. A client that is silent where the access rules look at the server name may be waiting for a server that
/// speaks first: its tunnel is opened, and a `TunnelGate` judges what it sends later. If the tunnel is not to be opened, the origin is connected from the beginning, as the client
/// gets no 200 otherwise; the first byte goes there with the step `tunnel`. The handshake counts as accepted only when the client has sent a byte of a
/// request: in TLS 1.3 a client refuses the certificate after Larder's side is done.
///
/// Ownership: the worker's slab owns it until it ends; then its sockets have other owners or are closed.
final class TunnelDoorstep: TimedObject, LinkOpenerOwner {
    enum Stage {
        /// The 200 has not been sent whole.
        case greeting
        /// Waits for the client's first bytes.
        case listening(needs: Int)
        /// The access rules look at the address of the host, which a name server is asked for.
        case resolving(ResolverTicket)
        /// A helper thread signs the certificate.
        case issuing
        case handshaking
        /// The handshake is done. Waits for the first request.
        case expecting
        case dialling(TunnelDialler)
        case ended
    }

    let worker: Worker
    let snapshot: Snapshot
    private(set) var target: TunnelTarget
    /// The access rules have not decided: they look at the server name.
    private var awaitsVerdict = false
    /// The tunnel is opened although the client has sent nothing: the rules are asked once more when it does (`TunnelGate`).
    private var isUnheard = false
    let request: OwnedRequest
    private(set) var id = ConnectionID(slot: .max, generation: 0)
    private let place: Occupancy.Place
    private var tunnelPlace: Occupancy.Place?
    /// What the CONNECT holds of the buckets of `limits.rules`. The requests inside hold their own.
    private var limits: HeldLimits?
    private var account: Account
    var stage = Stage.greeting
    /// No method of a transport or of an `IOEvent` calls back: the unchecked accesses are exclusive.
    var transport: Transport? {
        _read { yield unsafe uncheckedTransport }
        _modify { yield unsafe &uncheckedTransport }
    }
    @exclusivity(unchecked) private var uncheckedTransport: Transport?
    var readEvent: IOEvent {
        _read { yield unsafe uncheckedReadEvent }
        _modify { yield unsafe &uncheckedReadEvent }
    }
    @exclusivity(unchecked) private var uncheckedReadEvent = IOEvent()
    var writeEvent: IOEvent {
        _read { yield unsafe uncheckedWriteEvent }
        _modify { yield unsafe &uncheckedWriteEvent }
    }
    @exclusivity(unchecked) private var uncheckedWriteEvent = IOEvent()
    /// What the client has sent in the tunnel, before TLS began.
    var received: [UInt8]
    private var unsentGreeting: ArraySlice<UInt8>
    /// Where the bytes will go. Nil for a tunnel that is to be opened.
    private var origin: Transport?
    private var originEvent = IOEvent()
    /// What the origin has sent. It goes to the client when the tunnel is there.
    private var early: [UInt8]

    private init(
        worker: Worker, snapshot: Snapshot, target: TunnelTarget, request: OwnedRequest, place: Occupancy.Place,
        account: Account, client: consuming SurrenderedConnection, greeting: [UInt8], early: [UInt8]
    ) {
        self.worker = worker
        self.snapshot = snapshot
        self.target = target
        self.request = request
        self.place = place
        self.account = account
        received = client.unread
        unsentGreeting = greeting[...]
        self.early = early
        unsafe uncheckedTransport = client.release()
    }

    /// Takes the client's connection from its stream, and tells the client that it has its tunnel, which is opened.
    ///
    /// - Parameter greeting: what tells the client so.
    static func open(
        _ target: TunnelTarget, greeting: [UInt8], stream: ClientStream, worker: Worker, snapshot: Snapshot,
        request: OwnedRequest
    ) {
        precondition(target.use != .pass && snapshot.interceptor != nil, "a tunnel is opened with an authority")
        let doorstep = TunnelDoorstep.make(
            target, greeting: greeting, early: [], stream: stream, worker: worker, snapshot: snapshot, request: request)
        worker.counters.add(.clientConnectionsAccepted)
        doorstep.begin()
    }

    /// Takes the client's connection from its stream, and tells the client that it has its tunnel to an origin that is connected. The client's first
    /// bytes decide whether it gets it.
    ///
    /// - Parameters:
    ///   - early: bytes that the origin has sent already.
    ///   - place: the tunnel's place among those that `limits.tunnels_max` bounds.
    static func judge(
        _ target: TunnelTarget, greeting: [UInt8], stream: ClientStream, worker: Worker, snapshot: Snapshot,
        request: OwnedRequest, origin: consuming Transport, early: [UInt8], place: Occupancy.Place?
    ) {
        precondition(target.use == .pass, "a tunnel that is opened has no origin")
        let doorstep = TunnelDoorstep.make(
            target, greeting: greeting, early: early, stream: stream, worker: worker, snapshot: snapshot,
            request: request)
        doorstep.origin = consume origin
        doorstep.tunnelPlace = place
        doorstep.begin()
    }

    /// Takes the client's connection from its stream, and tells the client that it has its tunnel. The access rules decide by the server name in the first
    /// bytes; the origin is connected afterwards.
    static func hear(
        greeting: [UInt8], stream: ClientStream, worker: Worker, snapshot: Snapshot, request: OwnedRequest
    ) {
        guard let host = request.destination?.host else { preconditionFailure("a request without a host goes nowhere") }
        let target = TunnelTarget(host: host, terms: TunnelTerms(.tls, namesHost: true), use: .pass)
        let doorstep = TunnelDoorstep.make(
            target, greeting: greeting, early: [], stream: stream, worker: worker, snapshot: snapshot, request: request)
        doorstep.awaitsVerdict = true
        doorstep.begin()
    }

    private static func make(
        _ target: TunnelTarget, greeting: [UInt8], early: [UInt8], stream: ClientStream, worker: Worker,
        snapshot: Snapshot, request: OwnedRequest
    ) -> TunnelDoorstep {
        var account = Account()
        let (place, limits) = (stream.clientPlace, stream.limits)
        let client = stream.surrender(&account)
        account.status = 200
        account.isLogged = false
        let doorstep = TunnelDoorstep(
            worker: worker, snapshot: snapshot, target: target, request: request, place: place, account: account,
            client: client, greeting: greeting, early: early)
        doorstep.limits = limits
        doorstep.id = worker.doorsteps.insert(doorstep)
        return doorstep
    }

    /// Whether nothing has been read of a request, so that the tunnel may be closed when Larder stops.
    var isIdle: Bool { if case .dialling = stage { false } else { true } }

    private func begin() {
        worker.loop.timers.schedule(self, after: snapshot.limits.helloTimeout)
        assignEvents()
        sendGreeting()
    }

    // MARK: events

    func assignEvents() {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe transport?.assign(
            &readEvent, on: worker.loop, .read, { _, _, context in unsafe doorstep(context).onReadable() }, context)
        unsafe transport?.assign(
            &writeEvent, on: worker.loop, .write, { _, _, context in unsafe doorstep(context).onWritable() }, context)
    }

    func clearEvents() {
        readEvent.clear()
        writeEvent.clear()
        originEvent.clear()
    }

    private func onReadable() {
        switch stage {
        case .listening(let needs): listen(needs: needs)
        case .handshaking: continueHandshake()
        case .expecting: expectRequest()
        case .greeting, .resolving, .issuing, .dialling, .ended: preconditionFailure("nothing is read at this stage")
        }
    }

    private func onWritable() {
        writeEvent.remove()
        switch stage {
        case .greeting: sendGreeting()
        case .handshaking: continueHandshake()
        case .expecting: sendTickets()
        case .listening, .resolving, .issuing, .dialling, .ended:
            preconditionFailure("nothing is written at this stage")
        }
    }

    override func timerFired() {
        switch stage {
        case .greeting: close(.clientStalled)
        case .listening: timeLimitReached()
        case .issuing, .handshaking: close(.handshakeFailed)
        case .expecting: close(.idle)
        case .resolving, .dialling, .ended: break
        }
    }

    // MARK: the client's first bytes

    private func sendGreeting() {
        let sent =
            unsentGreeting.isEmpty
            ? transport?.flush() ?? .closed
            : unsafe unsentGreeting.withUnsafeBytes { unsafe transport?.write($0) ?? .closed }
        switch sent {
        case .bytes(let count):
            worker.counters.add(.bytesToClients, count)
            unsentGreeting = unsentGreeting.dropFirst(count)
            if !unsentGreeting.isEmpty || transport?.hasUnsentBytes == true { return writeEvent.add() }
            if origin != nil, target.hearsOrigin, hearOrigin() { return }
            // A client may send its first bytes without waiting for the 200.
            if received.isEmpty { return awaitFirstBytes(1) }
            proceed(FirstBytes(received.span))
        case .wouldBlock: writeEvent.add()
        case .closed: close(.clientLeft, .failed(.a, errno: EPIPE))
        case .failed(let code): close(.clientLeft, .failed(.a, errno: code))
        }
    }

    private func awaitFirstBytes(_ needs: Int) {
        stage = .listening(needs: needs)
        // Decrypted bytes, which no event announces.
        if transport?.mustBeDrained == true { return listen(needs: needs) }
        readEvent.add()
    }

    private func listen(needs: Int) {
        switch unsafe transport?.read(into: worker.readBuffer) ?? .closed {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            unsafe received.append(contentsOf: worker.readBuffer[..<count])
            if received.count < needs { return awaitFirstBytes(needs) }
            proceed(FirstBytes(received.span))
        case .wouldBlock: readEvent.add()
        case .closed where received.isEmpty: close(.clientClosed, early.isEmpty ? .closed : .refused)
        case .closed: close(.clientLeft)
        case .failed(let code): close(.clientLeft, .failed(.a, errno: code))
        }
    }

    /// Goes on by what the client's first bytes are.
    private func proceed(_ bytes: FirstBytes) {
        if case .undecided(let needs) = bytes { return awaitFirstBytes(needs) }
        switch bytes.serverName {
        case .success(let name): request.serverName = name
        case .failure where awaitsVerdict: return perform(.refuse(.malformedHello, alert: .illegalParameter))
        case .failure: request.serverName = ServerName.absent
        }
        awaitsVerdict ? decide() : perform(target.step(after: bytes))
    }

    private func timeLimitReached() {
        guard awaitsVerdict else { return perform(target.stepAtTimeLimit(received: received.count)) }
        // A client that sends nothing may wait for a server that speaks first.
        guard received.isEmpty else { return perform(.refuse(.helloTimeout, alert: nil)) }
        request.serverName = ServerName.absent
        decide()
    }

    // MARK: the verdict of the access rules

    /// Asks the access rules, which know the server name now.
    private func decide() {
        let ticket = worker.decide(request, snapshot) { [weak self] in self?.decided($0) }
        guard let ticket else { return }
        readEvent.remove()
        worker.loop.timers.cancel(self)
        stage = .resolving(ticket)
    }

    private func decided(_ result: Result<(verdict: Verdict, address: IPAddress?), NameFailure>) {
        if case .resolving = stage {
            // What follows may wait for the client again.
            stage = .listening(needs: 1)
            worker.loop.timers.schedule(self, after: snapshot.limits.helloTimeout)
        }
        switch result {
        case .success(let judged): settle(judged.verdict, address: judged.address)
        case .failure(let failure): refuse(Refusal(failure))
        }
    }

    /// Goes on by the verdict, with what the client has sent by then.
    private func settle(_ verdict: Verdict, address: IPAddress?) {
        awaitsVerdict = false
        if snapshot.access.hasReports { worker.noteReports(request, address: address, snapshot, in: &account) }
        let allowedBy: Int?
        switch verdict {
        case .allow(let rule): allowedBy = rule
        case .deny(let denial): return deny(denial.withoutCredentials)
        case .needsAddress, .needsServerName: preconditionFailure("name and address are known")
        }
        switch TunnelChoice(request, allowedBy: allowedBy, snapshot, worker) {
        case .remain:
            let terms = TunnelChoice.terms(request, allowedBy: allowedBy, snapshot)
            target = TunnelTarget(host: target.host, terms: terms, use: .pass)
        case .open(let opened):
            target = opened
            worker.counters.add(.clientConnectionsAccepted)
        case .deny(let denial): return deny(denial)
        }
        guard received.isEmpty else { return perform(target.step(after: FirstBytes(received.span))) }
        let isOpen = target.use == .pass && target.terms == .anything
        let step = isOpen ? .tunnel : target.stepAtTimeLimit(received: 0)
        // The name that the client sends, if it sends one, may be one that a rule denies.
        if step == .tunnel { isUnheard = true }
        perform(step)
    }

    private func deny(_ denial: Denial) {
        worker.counters.count(denial, in: &account)
        if case .tls = FirstBytes(received.span) {
            unsafe TLSAlert.unrecognisedName.record.withUnsafeBytes { _ = unsafe transport?.write($0) }
        }
        refuse(Refusal(denial))
    }

    /// Waits for the origin too, which may speak first. Returns true if it has done so already.
    private func hearOrigin() -> Bool {
        stage = .listening(needs: 1)
        guard early.isEmpty, origin?.mustBeDrained != true else {
            perform(target.stepWhenOriginSpeaks)
            return true
        }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe origin?.assign(
            &originEvent, on: worker.loop, .read, { _, _, context in unsafe doorstep(context).onOriginReadable() },
            context)
        originEvent.add()
        return false
    }

    private func onOriginReadable() {
        guard case .listening = stage else { preconditionFailure("the origin is heard while the client is") }
        switch unsafe origin?.read(into: worker.readBuffer) ?? .closed {
        case .bytes(let count):
            unsafe early.append(contentsOf: worker.readBuffer[..<count])
            perform(target.stepWhenOriginSpeaks)
        case .wouldBlock: return
        case .closed: refuse(.connectionTerminated, .closed)
        case .failed(let code): refuse(.connectionTerminated, .failed(.b, errno: code))
        }
    }

    func perform(_ step: TunnelStep) {
        switch step {
        case .wait(let needs): awaitFirstBytes(needs)
        case .plain:
            let bytes = received
            unsafe bytes.withUnsafeBytes { unsafe enter(.http, with: $0) }
        case .secure: issueLeaf()
        case .tunnel: origin == nil ? dial() : relay()
        case .refuse(let reason, let alert):
            if let alert { unsafe alert.record.withUnsafeBytes { _ = unsafe transport?.write($0) } }
            close(reason)
        }
    }

    // MARK: the end

    /// Gives the connection to a session that reads requests.
    ///
    /// - Parameter bytes: the first bytes of the first request.
    func enter(_ scheme: Scheme, with bytes: UnsafeRawBufferPointer) {
        account.outcome = .opened
        worker.counters.add(.tunnelsOpened)
        end()
        guard let transport = transport.take() else { preconditionFailure("an open tunnel has its transport") }
        let context = ClientContext(
            peer: request.client, isAdmitted: true, proof: request.provenTunnel(on: worker), listener: request.listener,
            isSecured: transport.isSecured,
            fixedOrigin: FixedOrigin(
                scheme: scheme, host: target.host.uriText, port: request.head.target.port),
            serverName: request.serverName, tunnel: account.id)
        unsafe worker.accept(transport, context, place, received: bytes)
    }

    /// Connects to the origin, to pass on bytes unread.
    private func dial() {
        readEvent.remove()
        worker.loop.timers.cancel(self)
        tunnelPlace = worker.shared.tunnels.take(limit: snapshot.limits.tunnelsMax)
        guard tunnelPlace != nil else { return refuse(.tooManyTunnels) }
        let dialler = TunnelDialler(worker: worker, snapshot: snapshot, for: request, owner: self)
        stage = .dialling(dialler)
        if let failure = dialler.begin() { openingFailed(failure) }
    }

    func openingFailed(_ failure: OpeningFailure) {
        let refusal = OpeningRefusal(failure)
        if let denial = refusal.denial { worker.counters.count(denial, in: &account) }
        refuse(refusal.refusal)
    }

    /// The client has its 200, so that it learns of the failure by the end of the connection alone.
    private func refuse(_ refusal: Refusal, _ ending: TunnelEnd = .refused) {
        account.refusal = refusal
        worker.counters.refusals.add(Int(refusal.rawValue), 1)
        close(.tunnelRefused, ending)
    }

    func opened(_ origin: consuming Transport, at address: SocketAddress, early: [UInt8]) {
        var gate: TunnelGate?
        if case .dialling(let dialler) = stage, isUnheard {
            gate = TunnelGate(
                to: target.host, request, snapshot, worker, connectedTo: dialler.isDirect ? IPAddress(address) : nil,
                account: account)
        }
        self.origin = consume origin
        self.early = early
        relay(gate)
    }

    private func relay(_ gate: TunnelGate? = nil) {
        worker.counters.add(.tunnels)
        account.outcome = .tunnel
        // The relay waits with the same event, which saves two system calls.
        originEvent.clear()
        var waiting = IOEvent()
        swap(&waiting, &readEvent)
        guard let client = transport.take(), let origin = origin.take() else {
            preconditionFailure("a tunnel has its two ends")
        }
        leave(.becameTunnel)
        TunnelOpener.relay(
            SurrenderedConnection(client, unread: received), account, worker: worker, origin: origin, greeting: [],
            early: early, place: tunnelPlace, limits: limits, connection: place.connectionLimits, request: request,
            clientEvent: waiting, gate: gate)
    }

    /// Closes the connections, because Larder stops or for what the client did.
    ///
    /// - Parameter ending: which of the two are reset.
    func close(_ reason: CloseReason, _ ending: TunnelEnd = .refused) {
        if case .ended = stage { return }
        switch stage {
        case .dialling(let dialler): dialler.cancel()
        case .resolving(let ticket): ticket.cancel()
        case .greeting, .listening, .issuing, .handshaking, .expecting, .ended: break
        }
        account.outcome = account.refusal.map { $0.isOfOrigin ? .failed : .refused } ?? .refused
        worker.counters.add(account.outcome == .failed ? .failed : .refused)
        if origin != nil { account.tunnelBreak = TunnelBreak(ending) }
        if account.tunnelBreak == nil { account.closeReason = reason }
        account.isBroken = true
        // A connection that is passed on has been counted as a tunnel, so it is counted anew.
        if target.use == .pass { worker.counters.add(.clientConnectionsAccepted) }
        worker.counters.closes.add(Int(reason.rawValue), 1)
        worker.counters.add(.clientConnectionsClosed)
        end()
        if ending.resets(.a, isOwed: !early.isEmpty) { transport?.resetOnClose() }
        if ending.resets(.b, isOwed: !received.isEmpty) { origin?.resetOnClose() }
        transport = nil
        origin = nil
    }

    private func leave(_ reason: CloseReason) {
        if target.use != .pass {
            worker.counters.closes.add(Int(reason.rawValue), 1)
            worker.counters.add(.clientConnectionsClosed)
        }
        account.isLogged = true
        end()
    }

    /// Releases all but the transport, and writes the log line of the CONNECT.
    private func end() {
        stage = .ended
        clearEvents()
        worker.loop.timers.cancel(self)
        if !account.isLogged {
            worker.observe(account, request, snapshot)
            if worker.log.isOn { worker.log.append(account, request: request) }
        }
        account.isLogged = true
        worker.forget(doorstep: id)
    }
}

private func doorstep(_ context: UnsafeMutableRawPointer?) -> TunnelDoorstep {
    unsafe Unmanaged<TunnelDoorstep>.fromOpaque(context!).takeUnretainedValue()
}
