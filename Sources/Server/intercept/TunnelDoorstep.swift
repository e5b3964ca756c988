import EventLoop
import Forwarding
import Framing
import Glibc
import Interception
import Message
import Routing
import TLS
import Transaction

/// Stands between a CONNECT that was answered with 200 and the first request inside its tunnel.
///
/// ```
/// greeting ─▶ listening ─▶ [issuing] ─▶ handshaking ─▶ expecting ─▶ a ClientConnection
///                 ├──────────────────────────────────────────────▶ a ClientConnection (HTTP without TLS)
///                 └─▶ dialling ─▶ a TunnelRelay (what Larder does not speak)
/// ```
///
/// It carries out the steps that a `TunnelTarget` decides. The handshake counts as accepted only when the client has sent a byte of a
/// request: in TLS 1.3 a client refuses the certificate after Larder's side is done.
///
/// Ownership: the worker's slab owns it until it ends; then its socket has another owner or is closed.
final class TunnelDoorstep: TimedObject, LinkOpenerOwner {
    private enum Stage {
        /// The 200 has not been sent whole.
        case greeting
        /// Waits for the client's first bytes.
        case listening(needs: Int)
        /// A helper thread signs the certificate.
        case issuing
        case handshaking
        /// The handshake is done. Waits for the first request.
        case expecting
        case dialling(TunnelDialler)
        case ended
    }

    private let worker: Worker
    private let snapshot: Snapshot
    private let interceptor: Interceptor
    private let target: TunnelTarget
    private let request: OwnedRequest
    private var id = ConnectionID(slot: .max, generation: 0)
    private let place: Occupancy.Place
    private var tunnelPlace: Occupancy.Place?
    private var account: Account
    private var stage = Stage.greeting
    private var transport: Transport?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    /// What the client has sent in the tunnel, before TLS began.
    private var received: [UInt8]
    private var unsentGreeting: ArraySlice<UInt8>

    private static let greeting =
        Array("HTTP/1.1 200 Connection established\r\nCache-Status: larder; detail=opened\r\n\r\n".utf8)

    private init(
        worker: Worker, snapshot: Snapshot, interceptor: Interceptor, target: TunnelTarget, request: OwnedRequest,
        place: Occupancy.Place, account: Account, client: consuming SurrenderedConnection
    ) {
        self.worker = worker
        self.snapshot = snapshot
        self.interceptor = interceptor
        self.target = target
        self.request = request
        self.place = place
        self.account = account
        received = client.unread
        unsentGreeting = TunnelDoorstep.greeting[...]
        transport = client.release()
    }

    /// Takes the client's connection from its stream, and answers the CONNECT.
    static func open(
        _ target: TunnelTarget, stream: ClientStream, worker: Worker, snapshot: Snapshot, interceptor: Interceptor,
        request: OwnedRequest
    ) {
        var account = Account()
        let place = stream.clientPlace
        let client = stream.surrender(&account)
        precondition(!client.transport.isSecured, "a tunnel inside an opened one names no origin of its own")
        worker.counters.add(.clientConnectionsAccepted)
        account.status = 200
        account.isLogged = false
        let doorstep = TunnelDoorstep(
            worker: worker, snapshot: snapshot, interceptor: interceptor, target: target, request: request,
            place: place, account: account, client: client)
        doorstep.id = worker.doorsteps.insert(doorstep)
        doorstep.begin()
    }

    /// Whether nothing has been read of a request, so that the tunnel may be closed when Larder stops.
    var isIdle: Bool { if case .dialling = stage { false } else { true } }

    private func begin() {
        worker.loop.timers.schedule(self, after: snapshot.limits.helloTimeout)
        assignEvents()
        sendGreeting()
    }

    // MARK: events

    private func assignEvents() {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe transport?.assign(
            &readEvent, on: worker.loop, .read, { _, _, context in unsafe doorstep(context).onReadable() }, context)
        unsafe transport?.assign(
            &writeEvent, on: worker.loop, .write, { _, _, context in unsafe doorstep(context).onWritable() }, context)
    }

    private func clearEvents() {
        readEvent.clear()
        writeEvent.clear()
    }

    private func onReadable() {
        switch stage {
        case .listening(let needs): listen(needs: needs)
        case .handshaking: continueHandshake()
        case .expecting: expectRequest()
        case .greeting, .issuing, .dialling, .ended: preconditionFailure("nothing is read at this stage")
        }
    }

    private func onWritable() {
        writeEvent.remove()
        switch stage {
        case .greeting: sendGreeting()
        case .handshaking: continueHandshake()
        case .expecting: sendTickets()
        case .listening, .issuing, .dialling, .ended: preconditionFailure("nothing is written at this stage")
        }
    }

    override func timerFired() {
        switch stage {
        case .greeting: close(.clientStalled)
        case .listening: perform(target.stepAtTimeLimit(received: received.count))
        case .issuing, .handshaking: close(.handshakeFailed)
        case .expecting: close(.idle)
        case .dialling, .ended: break
        }
    }

    // MARK: the client's first bytes

    private func sendGreeting() {
        let sent = unsafe unsentGreeting.withUnsafeBytes { unsafe transport?.write($0) ?? .closed }
        switch sent {
        case .bytes(let count):
            worker.counters.add(.bytesToClients, count)
            unsentGreeting = unsentGreeting.dropFirst(count)
            if !unsentGreeting.isEmpty { return writeEvent.add() }
            // A client may send its first bytes without waiting for the 200.
            if received.isEmpty { return awaitFirstBytes(1) }
            perform(target.step(after: FirstBytes(received.span)))
        case .wouldBlock: writeEvent.add()
        case .closed, .failed: close(.clientLeft)
        }
    }

    private func awaitFirstBytes(_ needs: Int) {
        stage = .listening(needs: needs)
        readEvent.add()
    }

    private func listen(needs: Int) {
        switch unsafe transport?.read(into: worker.readBuffer) ?? .closed {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            unsafe received.append(contentsOf: worker.readBuffer[..<count])
            if received.count >= needs { perform(target.step(after: FirstBytes(received.span))) }
        case .wouldBlock: return
        case .closed: close(received.isEmpty ? .clientClosed : .clientLeft)
        case .failed: close(.clientLeft)
        }
    }

    private func perform(_ step: TunnelStep) {
        switch step {
        case .wait(let needs): awaitFirstBytes(needs)
        case .plain:
            let bytes = received
            unsafe bytes.withUnsafeBytes { unsafe enter(.http, with: $0) }
        case .secure: issueLeaf()
        case .tunnel: dial()
        case .refuse(let reason, let alert):
            if let alert { unsafe alert.record.withUnsafeBytes { _ = unsafe transport?.write($0) } }
            close(reason)
        }
    }

    // MARK: TLS

    private func issueLeaf() {
        readEvent.remove()
        guard let name = Interceptor.leafName(target.host) else {
            preconditionFailure("a host without a leaf is denied")
        }
        let now = worker.wallTime.secondsSinceEpoch
        let leaves = interceptor.leaves
        if let leaf = leaves.leaf(for: name, at: now) { return beginHandshake(leaf) }
        worker.counters.add(.leavesIssued)
        guard !interceptor.authority.signsQuickly else { return beginHandshake(try? leaves.issue(name, at: now)) }
        // A signature with RSA takes long enough to delay other clients.
        stage = .issuing
        let reference = WorkerReference(worker)
        let isTaken = worker.shared.pool.submit(
            { try? leaves.issue(name, at: now) },
            then: { [id] in reference.value.doorsteps[id]?.issued($0) }, on: worker.loop.inbox)
        if !isTaken { perform(.refuse(.handshakeFailed, alert: .internalError)) }
    }

    private func issued(_ leaf: Leaf?) {
        guard case .issuing = stage else { return }
        beginHandshake(leaf)
    }

    private func beginHandshake(_ leaf: Leaf?) {
        stage = .handshaking
        guard let leaf else { return perform(.refuse(.handshakeFailed, alert: .internalError)) }
        // The events before the socket: it gets another owner.
        clearEvents()
        guard let socket = transport.take()?.surrender() else { preconditionFailure("a tunnel begins in plain text") }
        do {
            transport = try Transport(
                opening: socket, with: interceptor.context, leaf: leaf, received: received, records: worker.records)
        } catch {
            return close(.handshakeFailed)
        }
        received = []
        assignEvents()
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.clientHead)
        continueHandshake()
    }

    private func continueHandshake() {
        switch transport?.handshake() {
        case .done: expect()
        case .wantRead: readEvent.add()
        case .wantWrite: writeEvent.add()
        case .failed(let failure):
            let signal = LeafRefusals.Signal(failure)
            if let signal { noteRefusal(signal) }
            close(signal == nil ? .handshakeFailed : .certificateRefused)
        case nil: preconditionFailure("a handshake has its transport")
        }
    }

    /// Waits for the first request.
    private func expect() {
        stage = .expecting
        worker.counters.add(.handshakes)
        if transport?.isResumed == true { worker.counters.add(.handshakesResumed) }
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.clientIdle)
        readEvent.add()
        sendTickets()
        expectRequest()
    }

    /// Sends what is left of the handshake: a client need not read it before it sends its request.
    private func sendTickets() {
        if case .wouldBlock = transport?.flush() { writeEvent.add() }
    }

    private func expectRequest() {
        switch unsafe transport?.read(into: worker.readBuffer) ?? .closed {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            worker.shared.leafRefusals.withLock { $0.forget(refusalKey) }
            unsafe enter(.https, with: UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count]))
        case .wouldBlock: return
        case .closed:
            noteRefusal(.ended)
            close(.clientClosed)
        case .failed:
            let signal = transport?.failure.flatMap { LeafRefusals.Signal($0) } ?? .ended
            noteRefusal(signal)
            close(.certificateRefused)
        }
    }

    // MARK: refusals

    private var refusalKey: LeafRefusals.Key { request.leafRefusalKey }

    private func noteRefusal(_ signal: LeafRefusals.Signal) {
        worker.counters.add(.leavesRefused)
        let key = refusalKey
        let isNews = worker.shared.leafRefusals.withLock { $0.note(signal, of: key, now: worker.wallTime) }
        guard isNews else { return }
        Diagnostics.warning(
            "\(key.client ?? "a client") does not accept the certificate for \(target.host) (\(signal)): it does not trust the authority of intercept.ca. Run setup.sh there, or leave the host out of intercept.hosts"
        )
    }

    // MARK: the end

    /// Gives the connection to a session that reads requests.
    ///
    /// - Parameter bytes: the first bytes of the first request.
    private func enter(_ scheme: Scheme, with bytes: UnsafeRawBufferPointer) {
        account.outcome = .opened
        worker.counters.add(.tunnelsOpened)
        end()
        guard let transport = transport.take() else { preconditionFailure("an open tunnel has its transport") }
        let context = ClientContext(
            peer: request.client, isAdmitted: true, identity: request.identity,
            fixedOrigin: FixedOrigin(
                scheme: scheme, host: target.host.uriText.utf8, port: request.head.target.port))
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
    private func refuse(_ refusal: Refusal) {
        account.refusal = refusal
        worker.counters.refusals.add(Int(refusal.rawValue), 1)
        close(.tunnelRefused)
    }

    func opened(_ origin: consuming Transport, at address: SocketAddress, early: [UInt8]) {
        worker.counters.add(.tunnels)
        account.outcome = .tunnel
        clearEvents()
        guard let client = transport.take() else { preconditionFailure("a tunnel that is dialled has its client") }
        leave(.becameTunnel)
        TunnelOpener.relay(
            SurrenderedConnection(client, unread: received), account, worker: worker, origin: origin, greeting: [],
            early: early, place: tunnelPlace, request: request)
    }

    /// Closes the connection, because Larder stops or for what the client did.
    func close(_ reason: CloseReason) {
        if case .ended = stage { return }
        if case .dialling(let dialler) = stage { dialler.cancel() }
        account.outcome = account.refusal.map { $0.isOfOrigin ? .failed : .refused } ?? .refused
        worker.counters.add(account.outcome == .failed ? .failed : .refused)
        account.closeReason = reason
        account.isBroken = true
        worker.counters.closes.add(Int(reason.rawValue), 1)
        worker.counters.add(.clientConnectionsClosed)
        end()
        transport = nil
    }

    private func leave(_ reason: CloseReason) {
        worker.counters.closes.add(Int(reason.rawValue), 1)
        worker.counters.add(.clientConnectionsClosed)
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

extension OwnedRequest {
    /// The client and the host of a CONNECT, as refused certificates are remembered.
    var leafRefusalKey: LeafRefusals.Key {
        guard let destination else { preconditionFailure("a request without a host goes nowhere") }
        return LeafRefusals.Key(client: identity?.name ?? client.map { "\($0)" }, host: destination.host)
    }
}

extension LeafRefusals.Signal {
    /// Nil if the failure says nothing about the certificate.
    init?(_ failure: TLSFailure) {
        switch failure {
        case .alertReceived(let code, _) where LeafRefusals.alerts.contains(code): self = .alert(code)
        case .truncated, .connectionFailed: self = .ended
        case .alertReceived, .certificate, .protocolError: return nil
        }
    }
}
