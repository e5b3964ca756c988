import Accounts
import Interception
import Routing
import TLS
import Transaction
import Transport

/// TLS with the client of a tunnel that is opened.
extension TunnelDoorstep {
    private var interceptor: Interceptor {
        guard let interceptor = snapshot.interceptor else {
            preconditionFailure("a tunnel is opened with an authority")
        }
        return interceptor
    }

    func issueLeaf() {
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
        guard let carrier = transport.take() else { preconditionFailure("a tunnel has its client") }
        do {
            transport = try Transport(
                opening: carrier, with: interceptor.context, leaf: leaf, received: received, records: worker.records)
        } catch {
            return close(.handshakeFailed)
        }
        received = []
        assignEvents()
        worker.loop.timers.schedule(self, after: snapshot.configuration.timeouts.clientHead)
        continueHandshake()
    }

    func continueHandshake() {
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
        expectRequest()
    }

    /// Sends what is left of the handshake. With TLS 1.3 the request may be there already; then it goes with the answer.
    func sendTickets() {
        if case .wouldBlock = transport?.flush() { writeEvent.add() }
    }

    func expectRequest() {
        switch unsafe transport?.read(into: worker.readBuffer) ?? .closed {
        case .bytes(let count):
            worker.counters.add(.bytesFromClients, count)
            worker.shared.leafRefusals.withLock { if !$0.isEmpty { $0.forget(refusalKey) } }
            unsafe enter(.https, with: UnsafeRawBufferPointer(rebasing: worker.readBuffer[..<count]))
        case .wouldBlock: sendTickets()
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
        let isNews = worker.shared.leafRefusals.withLock { $0.note(signal, of: key, now: worker.moment) }
        guard isNews else { return }
        Diagnostics.warning(
            "\(key.client ?? "a client") does not accept the certificate for \(target.host) (\(signal)): it does not trust the authority of intercept.ca. Run setup.sh there, or leave the host out of intercept.hosts"
        )
    }
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
