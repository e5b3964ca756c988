import Access
import Accounts
import EventLoop
import Interception
import Message
import Routing
import Rules
import Transaction

/// Judges what a client sends first in a tunnel that was opened while it was silent, because its server may speak first (SSH, SMTP).
///
/// ```
/// silent ──▶ hearing ──▶ [resolving] ──▶ passed
///               └────────────┴─────────▶ refused
/// ```
///
/// The access rules look at the server name of such a tunnel. They allowed it as one without a name; the name may be one that a `deny` rule has. So what the origin
/// sends goes to the client, and what the client sends waits here. The relay asks for the judgement, reads while it is `waiting`, and passes on or ends the tunnel.
///
/// Ownership: the relay owns it until the bytes have passed, and what writes the log line until the tunnel ends.
final class TunnelGate {
    enum Judgement {
        /// More bytes are needed.
        case waiting
        /// A name server is asked. The relay is told when it has answered.
        case resolving
        /// The bytes may go to the origin.
        case passed
        /// The tunnel ends. Before that, the client is sent the alert if there is one.
        case refused(alert: TLSAlert?)
    }

    private enum Stage {
        case silent
        /// The timer has the time limit for the first bytes.
        case hearing(needs: Int, Timer)
        case resolving(ResolverTicket)
        case passed
        case refused(CloseReason, alert: TLSAlert?)
    }

    private let host: DestinationHost
    private let request: OwnedRequest
    private let snapshot: Snapshot
    private let worker: Worker
    private let address: IPAddress?
    private var stage = Stage.silent
    private var bytes: [UInt8] = []
    private var changed: (() -> Void)?
    /// What the log says of the tunnel, until there is the line for it.
    private var account: Account

    /// - Parameters:
    ///   - address: where the tunnel leads. Nil if it leads to a next proxy.
    ///   - account: the record so far. It has the report-only rules that matched already.
    init(
        to host: DestinationHost, _ request: OwnedRequest, _ snapshot: Snapshot, _ worker: Worker,
        connectedTo address: IPAddress?, account: Account
    ) {
        self.account = account
        self.host = host
        self.request = request
        self.snapshot = snapshot
        self.worker = worker
        self.address = address
    }

    var judgement: Judgement {
        switch stage {
        case .silent, .hearing: .waiting
        case .resolving: .resolving
        case .passed: .passed
        case .refused(_, let alert): .refused(alert: alert)
        }
    }

    var isResolving: Bool { if case .resolving = stage { true } else { false } }

    /// - Parameter changed: is called when the judgement has changed while the relay waits: because a name server has answered, or the time is over.
    func start(_ changed: @escaping () -> Void) { self.changed = changed }

    /// The relay has ended, or needs no judgement any more.
    func cancel() {
        stopWaiting()
        changed = nil
    }

    private func stopWaiting() {
        switch stage {
        case .hearing(_, let timer): worker.loop.timers.cancel(timer)
        case .resolving(let ticket): ticket.cancel()
        case .silent, .passed, .refused: break
        }
    }

    /// Takes out what the client has sent. It is the origin's now.
    func takeReceived() -> [UInt8] {
        guard case .passed = stage else { preconditionFailure("nothing passes before it is judged") }
        let taken = bytes
        bytes = []
        return taken
    }

    // MARK: what the client sends

    /// The client has sent more bytes.
    func received(_ more: UnsafeRawBufferPointer) {
        unsafe bytes.append(contentsOf: more)
        switch stage {
        case .silent: break
        case .hearing(let needs, _): if bytes.count < needs { return }
        case .resolving, .passed, .refused: preconditionFailure("who has judged reads nothing")
        }
        let first = FirstBytes(bytes.span)
        if case .undecided(let needs) = first { return wait(for: needs) }
        stopWaiting()
        switch first.serverName {
        case .success(let name): request.serverName = name
        case .failure: return refuse(.malformedHello, .illegalParameter)
        }
        decide(first)
    }

    /// The client has sent its last byte.
    func ended() {
        // Nothing to judge: the origin learns that the client is done.
        guard case .silent = stage else { return refuse(.clientLeft, nil) }
        stage = .passed
    }

    private func wait(for needs: Int) {
        if case .hearing(_, let timer) = stage {
            stage = .hearing(needs: needs, timer)
            return
        }
        let timer = Timer { [weak self] in
            guard let self else { return }
            worker.counters.add(.timeouts)
            refuse(.helloTimeout, nil)
            changed?()
        }
        stage = .hearing(needs: needs, timer)
        worker.loop.timers.schedule(timer, after: snapshot.limits.helloTimeout)
    }

    // MARK: the verdict

    private func decide(_ first: FirstBytes) {
        // The address is known where the tunnel leads to the host itself, and is the only one that counts.
        if let address { return settle(worker.decide(request.access, address: address, snapshot), address, first) }
        let ticket = worker.decide(request, snapshot) { [weak self] result in
            guard let self else { return }
            let wasResolving = isResolving
            switch result {
            case .success(let judged): settle(judged.verdict, judged.address, first)
            case .failure(let failure): refuse(Refusal(failure), nil)
            }
            if wasResolving { changed?() }
        }
        if let ticket { stage = .resolving(ticket) }
    }

    private func settle(_ verdict: Verdict, _ address: IPAddress?, _ first: FirstBytes) {
        if snapshot.access.hasReports { worker.noteReports(request, address: address, snapshot, in: &account) }
        let allowedBy: Int?
        switch verdict {
        case .allow(let rule): allowedBy = rule
        case .deny(let denial): return deny(denial.withoutCredentials, first)
        case .needsAddress, .needsServerName: preconditionFailure("name and address are known")
        }
        let terms: TunnelTerms
        switch TunnelChoice(request, allowedBy: allowedBy, snapshot, worker) {
        case .remain: terms = TunnelChoice.terms(request, allowedBy: allowedBy, snapshot)
        // Too late to open it: the origin is connected, and may have spoken.
        case .open(let target):
            guard target.use == .open(mayRemain: true) else { return refuse(.protocolNotOpened, nil) }
            terms = target.terms
        case .deny(let denial): return deny(denial, first)
        }
        switch TunnelTarget(host: host, terms: terms, use: .pass).step(after: first) {
        case .tunnel: stage = .passed
        case .refuse(let reason, let alert): refuse(reason, alert)
        case .wait, .plain, .secure: preconditionFailure("a tunnel that is passed on is passed on or refused")
        }
    }

    private func deny(_ denial: Denial, _ first: FirstBytes) {
        worker.counters.count(denial, in: &account)
        if case .tls = first { return refuse(Refusal(denial), .unrecognisedName) }
        refuse(Refusal(denial), nil)
    }

    private func refuse(_ refusal: Refusal, _ alert: TLSAlert?) {
        account.refusal = refusal
        worker.counters.refusals.add(Int(refusal.rawValue), 1)
        refuse(.tunnelRefused, alert)
    }

    private func refuse(_ reason: CloseReason, _ alert: TLSAlert?) {
        stopWaiting()
        stage = .refused(reason, alert: alert)
    }

    // MARK: the end

    /// Completes the record of a tunnel that has ended.
    func conclude(_ account: inout Account) {
        account.reported = self.account.reported
        guard case .refused(let reason, _) = stage else { return }
        account.refusal = self.account.refusal
        account.denial = self.account.denial
        account.denialRule = self.account.denialRule
        account.outcome = account.refusal?.isOfOrigin == true ? .failed : .refused
        account.closeReason = reason
        account.isBroken = true
        worker.counters.add(account.outcome == .failed ? .failed : .refused)
        // The connection was counted as a tunnel, so it is counted anew.
        worker.counters.add(.clientConnectionsAccepted)
        worker.counters.closes.add(Int(reason.rawValue), 1)
        worker.counters.add(.clientConnectionsClosed)
    }
}
