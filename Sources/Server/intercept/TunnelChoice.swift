import Access
import Interception
import Rules

/// What becomes of a tunnel that the rules allow.
enum TunnelChoice {
    /// Its bytes are passed on unread, if the first ones keep to the terms (`terms`).
    case remain
    /// It can neither be opened nor remain one.
    case deny(Denial)
    case open(TunnelTarget)

    /// - Parameter number: the access rule that allowed the CONNECT. Nil if no rule matched.
    init(_ request: OwnedRequest, allowedBy number: Int?, _ snapshot: Snapshot, _ worker: Worker) {
        self = .remain
        guard let interceptor = snapshot.interceptor, let host = request.destination?.host else { return }
        // With it, doctor tests whether clients trust the authority.
        if snapshot.isBuiltIn(request) {
            if interceptor.certifies(host) {
                self = .open(TunnelTarget(host: host, terms: .anything, use: .open(mayRemain: true)))
            }
            return
        }
        let rule = snapshot.access.intercept(byRule: number)
        guard snapshot.interception.concerns(host, rule: rule) else { return }
        let isRefused = worker.shared.leafRefusals.withLock {
            !$0.isEmpty && $0.contains(request.leafRefusalKey, now: worker.moment)
        }
        let question = InterceptionPolicy.Question(
            host: host, rule: rule, mayRemainTunnel: snapshot.access.mayRemainTunnel(request.access),
            terms: TunnelChoice.terms(request, allowedBy: number, snapshot), isCertifiable: interceptor.certifies(host),
            isRefused: isRefused)
        switch snapshot.interception.decide(question) {
        case .remain: break
        case .deny:
            self = .deny(
                Denial(
                    rule: number, reason: .notOpened,
                    text:
                        "the rules need to see the requests to \(request.host), but the authority of intercept.ca may not certify that host"
                ))
        case .open(let target): self = .open(target)
        }
    }

    /// What the client must send first if the tunnel is not opened. The origin inside this process is no way around a rule.
    static func terms(_ request: OwnedRequest, allowedBy number: Int?, _ snapshot: Snapshot) -> TunnelTerms {
        snapshot.isBuiltIn(request) ? .anything : snapshot.access.tunnelTerms(request.access, allowedBy: number)
    }
}
