import Access
import Accounts
import EventLoop
import Learning
import Message
import Rules
import Transaction

extension Worker {
    /// What the access rules say, or learning in their place.
    ///
    /// - Parameter address: the address of the host; nil if it is not known yet.
    func decide(_ request: AccessRequest, address: IPAddress?, _ snapshot: Snapshot) -> Verdict {
        let verdict = snapshot.access.decide(request, address: address)
        guard case .deny(let denial) = verdict, let learner else { return verdict }
        guard let job = learner.active.allowing(request, at: moment) else { return verdict }
        let lenient = snapshot.lenientAccess.decide(request, address: address)
        if case .deny = lenient { return verdict }
        warn(of: request, denial, letThroughFor: job)
        return lenient
    }

    /// Says it once in a minute for each job, method and host.
    private func warn(of request: AccessRequest, _ denial: Denial, letThroughFor job: ActiveJob) {
        let text =
            "learning: job \(job.job): \(request.methodText) to \(request.host):\(request.port) is let through, which "
            + (denial.rule.map { "rule \($0) denies" } ?? "no rule allows")
        let isNews = shared.connectionNews.withLock { news in
            guard news.value(text, now: uptime) == nil else { return false }
            news.set(text, (), now: uptime)
            return true
        }
        if isNews { Diagnostics.warning(text) }
    }

    /// Notes a request that is over, for the jobs that learn.
    func observe(_ account: Account, _ request: OwnedRequest, _ snapshot: Snapshot, requestBytes: Int = 0) {
        guard let learner, request.destination != nil, !snapshot.isBuiltIn(request),
            let verdict = verdict(of: account, request, snapshot)
        else { return }
        learner.note(
            Observation(
                request.access, verdict, isOpened: account.outcome == .opened, requestBytes: UInt64(requestBytes),
                responseBytes: UInt64(account.bodyBytes), credential: request.credential?.rule.name,
                addresses: addressesToName(request)), at: moment)
    }

    /// Notes a request whose redirect Larder follows in place of its client.
    func observeRedirect(of request: OwnedRequest, _ snapshot: Snapshot) {
        var account = Account()
        account.outcome = .passed
        observe(account, request, snapshot)
    }

    /// Notes the bytes of a tunnel that has ended.
    func observeEnd(ofTunnelOf request: OwnedRequest, _ snapshot: Snapshot, toOrigin: Int, toClient: Int) {
        guard let learner, request.destination != nil, !snapshot.isBuiltIn(request) else { return }
        learner.note(
            Observation(
                request.access, .allowed, isEndOfTunnel: true, requestBytes: UInt64(toOrigin),
                responseBytes: UInt64(toClient), addresses: addressesToName(request)), at: moment)
    }

    /// Nil if the access rules did not decide about the request: it was malformed, had to authenticate first, or found no room.
    private func verdict(
        of account: Account, _ request: OwnedRequest, _ snapshot: Snapshot
    ) -> Observation.Verdict? {
        if let denial = account.denial {
            return .denied(denial, rule: account.denialRule == 0 ? nil : Int(account.denialRule))
        }
        switch account.outcome {
        case .none, .local, .refused: return nil
        case .hit, .stale, .revalidated, .collapsed, .miss, .passed, .failed, .tunnel, .opened: break
        }
        guard learner?.active.allowing(request.access, at: moment) != nil,
            case .deny = snapshot.access.decide(request.access, address: nil)
        else { return .allowed }
        return .permitted
    }

    /// The addresses of a name that a rule has to name, because they are not public. Where private destinations are open as a whole, it names
    /// them as well, so that it holds elsewhere, too. Empty if the addresses are no longer known.
    private func addressesToName(_ request: OwnedRequest) -> [AddressRange] {
        guard request.access.destination.address == nil,
            case .success(let known)? = HostAddresses.known(of: request.host, worker: self)
        else { return [] }
        let closed = Set(known.compactMap(IPAddress.init).filter { !addressClass($0).isPublic })
        return closed.map { AddressRange($0) }.sorted { "\($0)" < "\($1)" }
    }

    // MARK: jobs

    /// Takes over which jobs learn now. While one does, no hit goes the short way, because its request would not be noted.
    func adoptLearning() {
        let (count, active) = (shared.learning.changeCount, shared.learning.active)
        learner?.flush()
        learner = active.isEmpty ? nil : WorkerLearner(active, shared.learning)
        learningChanges = count
        decideAboutShortWays()
    }

    /// Hands over what was observed. Called once a second, and where somebody wants to know.
    func tendLearning() {
        learner?.flush()
        if learningChanges != shared.learning.changeCount { adoptLearning() }
        if number == 0 { shared.learning.tend(on: shared.pool, now: moment) }
    }
}

extension Snapshot {
    /// Why a request must not get a connection to the address. Nil: it may, by the rules or for a job that learns with `--allow`.
    func denial(of address: IPAddress, for request: AccessRequest, learning: ActiveJobs?, now: Moment) -> Denial? {
        guard let denial = access.mayDial(request, address: address) else { return nil }
        guard learning?.allowing(request, at: now) != nil else { return denial }
        return lenientAccess.mayDial(request, address: address) == nil ? nil : denial
    }
}
