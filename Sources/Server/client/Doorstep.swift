import Access
import Accounts
import Credentials
import EventLoop
import Forwarding
import Framing
import Glibc
import LimitTables
import Message
import Rules
import TLS
import Transaction
import Transport

/// Finds out what a client speaks, and carries out what comes before its first request: a PROXY header, a handshake of TLS, the dialogue of SOCKS.
///
/// ```
/// [header] ─▶ looking ─▶ [handshaking ─▶ looking] ─▶ [dialogue ─▶ checking ─▶ dialogue] ─▶ a ClientConnection
/// ```
///
/// The decisions are values of Framing: `DoorstepTerms`, `ProxyHeader`, `SocksServerDialogue`. All of it takes `timeouts.client_head` at most. A client
/// that is refused becomes a `ClientConnection` as well, which sends the reply and ends.
///
/// Ownership: the worker's slab owns it until it ends; then its socket has another owner or is closed.
final class Doorstep: TimedObject {
    private enum Stage {
        /// Which protocol is it?
        case looking(DoorstepTerms.Stage)
        case header
        case handshaking
        case dialogue
        /// A helper thread checks the password.
        case checking
        case ended
    }

    private let worker: Worker
    private let snapshot: Snapshot
    private let listener: ListenerTerms
    private var place: Occupancy.Place
    private var id = ConnectionID(slot: .max, generation: 0)
    private var peer: IPAddress?
    private var isAdmitted: Bool
    private var proof: ConnectionProof?
    /// What verified the certificate of the client.
    private var handshakeContext: TLSServerContext?
    private var stage: Stage
    private var dialogue = SocksServerDialogue(password: .required)
    private var transport: Transport?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    /// What was read and not used.
    private var received: [UInt8]
    private var isSecured = false

    private init(
        worker: Worker, listener: ListenerTerms, peer: IPAddress?, place: Occupancy.Place,
        transport: consuming Transport, received: [UInt8], isTrusted: Bool
    ) {
        self.worker = worker
        snapshot = worker.snapshot
        self.listener = listener
        self.peer = peer
        self.place = place
        self.transport = consume transport
        self.received = received
        stage = .looking(.beginning(isTrusted: isTrusted))
        isAdmitted = listener.isForPeers || worker.snapshot.access.admits(client: peer)
    }

    /// - Parameters:
    ///   - received: what was read from the connection already.
    ///   - isTrusted: the peer is one that has to say for whom it speaks.
    static func open(
        worker: Worker, listener: ListenerTerms, peer: IPAddress?, place: Occupancy.Place,
        transport: consuming Transport, received: [UInt8], isTrusted: Bool
    ) {
        let doorstep = Doorstep(
            worker: worker, listener: listener, peer: peer, place: place, transport: transport, received: received,
            isTrusted: isTrusted)
        doorstep.id = worker.arrivals.insert(doorstep)
        worker.timers.schedule(doorstep, after: doorstep.snapshot.configuration.timeouts.clientHead)
        doorstep.assignEvents()
        doorstep.readEvent.add()
        if !received.isEmpty { doorstep.proceed() }
    }

    // MARK: events

    private func assignEvents() {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe transport?.assign(
            &readEvent, on: worker.loop, .read, { _, _, context in unsafe arrival(context).onReadable() }, context)
        unsafe transport?.assign(
            &writeEvent, on: worker.loop, .write, { _, _, context in unsafe arrival(context).onWritable() }, context)
    }

    private func clearEvents() {
        readEvent.clear()
        writeEvent.clear()
    }

    private func onReadable() {
        if case .handshaking = stage { return continueHandshake() }
        switch unsafe transport?.read(into: worker.readBuffer) ?? .closed {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            unsafe received.append(contentsOf: worker.readBuffer[..<count])
            proceed()
            drain()
        case .wouldBlock: return
        case .closed: close(received.isEmpty ? .clientClosed : .clientLeft)
        case .failed: close(.clientLeft)
        }
    }

    private func onWritable() {
        writeEvent.remove()
        if case .handshaking = stage { return continueHandshake() }
        // What is left of the handshake: a client need not read it before it goes on.
        if case .wouldBlock = transport?.flush() { writeEvent.add() }
    }

    /// Reads bytes that TLS has received, and that no event of the socket announces.
    private func drain() {
        guard isSecured, transport?.mustBeDrained == true, readEvent.isAdded else { return }
        worker.loop.afterTurn { [self] in if readEvent.isAdded { onReadable() } }
    }

    override func timerFired() {
        switch stage {
        case .looking where received.isEmpty: close(.idle)
        case .looking, .header, .dialogue, .checking:
            worker.counters.add(.timeouts)
            close(.headTimeout, isRefused: true)
        case .handshaking:
            worker.counters.add(.timeouts)
            close(.proxyHandshakeFailed, isRefused: true)
        case .ended: break
        }
    }

    // MARK: what the bytes mean

    private func proceed() {
        switch stage {
        case .looking(let place): look(at: place)
        case .header: readHeader()
        case .dialogue: converse(takeReceived())
        // A client may go on before it has its answer. It waits within bounds.
        case .checking: if received.count > SocksServerDialogue.bytesMax { readEvent.remove() }
        case .handshaking, .ended: break
        }
    }

    private func look(at place: DoorstepTerms.Stage) {
        switch listener.doorstep.step(after: received.span, at: place) {
        case .wait: break
        case .http1: enter(takeReceived())
        case .handshake: beginHandshake()
        case .proxyHeader:
            stage = .header
            readHeader()
        case .socks5:
            let reads = snapshot.readsCredentials && proof == nil && isAdmitted
            dialogue = SocksServerDialogue(
                password: !reads ? .ignored : snapshot.requiresIdentity ? .required : .optional)
            stage = .dialogue
            converse(takeReceived())
        case .refuse(let objection, let found): refuse(objection, found)
        }
    }

    private func takeReceived() -> [UInt8] {
        let taken = received
        received = []
        return taken
    }

    private func refuse(_ objection: DoorstepTerms.Objection, _ found: WireProtocol) {
        let reason: CloseReason =
            switch objection {
            case .tlsNotOffered: .tlsNotOffered
            case .tlsRequired: .tlsRequired
            case .protocolNotOffered: .protocolNotOffered
            case .proxyHeaderUntrusted: .proxyHeaderUntrusted
            case .proxyHeaderMissing: .proxyHeaderMissing
            }
        refuse(reason, reply: DoorstepReply.bytes(objection, found))
    }

    // MARK: the PROXY protocol

    private func readHeader() {
        switch ProxyHeader.read(received.span) {
        case .incomplete: break
        case .malformed(let fault):
            Diagnostics.debug(.connections, "\(listener.name): a PROXY header is refused: \(fault.rawValue)")
            refuse(.proxyHeaderMalformed, reply: [])
        case .complete(let header):
            received.removeFirst(header.byteCount)
            if case .client(let address, _) = header.source { peer = address }
            worker.counters.add(.proxyHeaders)
            isAdmitted = snapshot.access.admits(client: peer)
            // Limits of connections are for the client, and not for who speaks for it.
            guard let place = worker.place(place, of: peer) else { return close(.tooManyOfClient) }
            self.place = place
            stage = .looking(.behindProxyHeader)
            if !received.isEmpty { proceed() }
        }
    }

    // MARK: TLS

    private func beginHandshake() {
        stage = .handshaking
        // The events before the socket: it gets another owner.
        clearEvents()
        guard let context = listener.tls?.context, let socket = transport.take()?.surrender() else {
            preconditionFailure("TLS begins in plain text, where there is a certificate")
        }
        do {
            transport = try Transport(
                accepting: socket, with: context, received: takeReceived(), records: worker.records)
        } catch {
            return close(.proxyHandshakeFailed, isRefused: true)
        }
        handshakeContext = context
        isSecured = true
        assignEvents()
        continueHandshake()
    }

    private func continueHandshake() {
        switch transport?.handshake() {
        case .done: welcome()
        case .wantRead: readEvent.add()
        case .wantWrite: writeEvent.add()
        case .failed(let failure): handshakeFailed(failure)
        case nil: preconditionFailure("a handshake has its transport")
        }
    }

    private func handshakeFailed(_ failure: TLSFailure) {
        Diagnostics.debug(.connections, "\(listener.name): a TLS handshake failed: \(failure.details)")
        if case .certificate = failure { return close(.clientCertificateRefused, isRefused: true) }
        close(.proxyHandshakeFailed, isRefused: true)
    }

    /// The handshake is done: the client's own protocol follows.
    private func welcome() {
        worker.counters.add(.proxyHandshakes)
        if transport?.isResumed == true { worker.counters.add(.proxyHandshakesResumed) }
        stage = .looking(.insideTLS)
        if !listener.isForPeers {
            if let shown = transport?.clientCertificate, let tls = listener.tls, let context = handshakeContext {
                proof = ConnectionProof(shown, to: tls, accepted: context, on: worker)
            }
        }
        readEvent.add()
        if case .wouldBlock = transport?.flush() { writeEvent.add() }
        onReadable()
    }

    // MARK: SOCKS

    private func converse(_ bytes: [UInt8]) {
        var step = dialogue.on(bytes)
        while true {
            switch step {
            case .wait: return
            case .send(let reply):
                guard send(reply) else { return close(.clientStalled) }
                step = dialogue.on([])
            case .logIn(let user, let password):
                stage = .checking
                return check(user, password)
            case .connect(let target): return connect(to: target)
            case .refuse(let reply, let fault):
                Diagnostics.debug(.connections, "\(listener.name): a SOCKS client is refused: \(fault)")
                return refuse(fault == .malformed ? .malformedRequest : .tunnelRefused, reply: reply, isSocks: true)
            }
        }
    }

    /// A few bytes, which an empty buffer of a socket accepts.
    private func send(_ reply: [UInt8]) -> Bool {
        let sent = unsafe reply.withUnsafeBytes { unsafe transport?.write($0) ?? .closed }
        if case .wouldBlock = transport?.flush() { writeEvent.add() }
        guard case .bytes(reply.count) = sent else { return false }
        worker.counters.add(.bytesToClients, reply.count)
        return true
    }

    private func check(_ user: [UInt8], _ password: [UInt8]) {
        let basis = ConnectionProof.Basis(worker)
        let credentials = Authentication.basicCredentials(user, password)
        let result = Authentication.check(
            user: user, password: password, client: peer, worker: worker, snapshot: snapshot
        ) { [weak self] in self?.checked($0, credentials, basis) }
        checked(result, credentials, basis)
    }

    private func checked(_ result: Authentication.Result, _ credentials: Secret, _ basis: ConnectionProof.Basis) {
        guard case .checking = stage else { return }
        let step: SocksServerDialogue.Step
        switch result {
        case .waiting: return
        case .known(let identity, _):
            // It holds for one tunnel, which is all that the connection can carry.
            proof = ConnectionProof(identity, by: credentials, on: basis)
            step = dialogue.checked(isRight: true)
        case .refused(let refusal):
            worker.counters.refusals.add(Int(refusal.rawValue), 1)
            step = dialogue.checked(isRight: false)
        }
        stage = .dialogue
        guard case .send(let reply) = step else {
            if case .refuse(let reply, _) = step { refuse(.tunnelRefused, reply: reply, isSocks: true) }
            return
        }
        guard send(reply) else { return close(.clientStalled) }
        readEvent.add()
        converse(takeReceived())
    }

    /// Goes on as a CONNECT of HTTP, so that the same decisions are made in the same order.
    private func connect(to target: SocksTarget) {
        let host: DestinationHost?
        let port: UInt16
        switch target {
        case .address(let address, let asked): (host, port) = (.address(address), asked)
        case .name(let name, let asked): (host, port) = (DestinationHost(name), asked)
        }
        guard let host, port > 0 else {
            worker.counters.refusals.add(Int(Refusal.hostInvalid.rawValue), 1)
            return refuse(.tunnelRefused, reply: SocksReply(Refusal.hostInvalid).bytes, isSocks: true)
        }
        let authority = "\(host.uriText):\(port)"
        let head = Array("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n".utf8)
        enter(head + dialogue.unread, isSocks: true)
    }

    // MARK: the end

    private func context(isSocks: Bool) -> ClientContext {
        ClientContext(
            peer: peer, isAdmitted: isAdmitted, proof: proof, listener: listener, isSecured: isSecured,
            isSocks: isSocks)
    }

    /// Gives the connection to a session that reads requests.
    private func enter(_ bytes: [UInt8], isSocks: Bool = false) {
        if !isAdmitted { worker.counters.add(.clientConnectionsRefused) }
        unsafe bytes.withUnsafeBytes {
            unsafe worker.accept(leave(), context(isSocks: isSocks), place, received: $0)
        }
    }

    private func refuse(_ reason: CloseReason, reply: [UInt8], isSocks: Bool = false) {
        worker.refuse(leave(), context(isSocks: isSocks), place, reason, reply: reply)
    }

    private func leave() -> Transport {
        stage = .ended
        clearEvents()
        worker.timers.cancel(self)
        guard let transport = transport.take() else { preconditionFailure("who has not ended has a transport") }
        worker.forget(arrival: id)
        return transport
    }

    /// Closes the connection, because Larder stops or for what the client did.
    ///
    /// - Parameter isRefused: the client did something wrong, which gets a line in the log.
    func close(_ reason: CloseReason, isRefused: Bool = false) {
        if case .ended = stage { return }
        stage = .ended
        if isRefused {
            var account = worker.log.opened()
            account.outcome = .refused
            account.closeReason = reason
            worker.counters.add(.refused)
            if worker.log.isOn { worker.log.append(account, client: peer, listener: listener.nameInLog) }
        }
        worker.counters.closes.add(Int(reason.rawValue), 1)
        worker.counters.add(.clientConnectionsClosed)
        clearEvents()
        worker.timers.cancel(self)
        transport = nil
        worker.forget(arrival: id)
    }
}

private func arrival(_ context: UnsafeMutableRawPointer?) -> Doorstep {
    unsafe Unmanaged<Doorstep>.fromOpaque(context!).takeUnretainedValue()
}
