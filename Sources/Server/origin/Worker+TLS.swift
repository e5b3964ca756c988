import Access
import Accounts
import Forwarding
import Routing
import TLS

/// What the log and the statistics learn of TLS with origins and next proxies, and of log-ins there.
extension Worker {
    /// - Parameters:
    ///   - name: the name by which the server was asked for.
    ///   - id: that of the request for which the connection is opened.
    func noteHandshake(with name: String, version: String, isResumed: Bool, for id: RequestID?) {
        counters.add(.originHandshakes)
        if isResumed { counters.add(.originHandshakesResumed) }
        debug(.tls, id, "\(name): \(version)\(isResumed ? ", resumed" : "")")
    }

    /// The client learns the kind of failure alone, so the log says what it was: once a minute for each server.
    func noteHandshakeFailure(with name: String, _ failure: TLSFailure, for id: RequestID?) {
        let text = "tls: \(name): \(failure.details)"
        if isNews(text) { Diagnostics.info(text) } else { debug(.tls, id, "\(name): \(failure.details)") }
    }

    /// Likewise for a log-in with NTLM or Negotiate that did not come to its end. No client can make it different, so it is a warning.
    func noteLogInFailure(_ text: String) {
        if isNews(text) { Diagnostics.warning(text) } else { Diagnostics.debug(.authentication, text) }
    }

    /// Whether the log has not said this within the last minute.
    private func isNews(_ text: String) -> Bool {
        let now = loop.now.sinceStart
        return shared.connectionNews.withLock { news in
            guard news.value(text, now: now) == nil else { return false }
            news.set(text, (), now: now)
            return true
        }
    }

    /// A connection was opened to an origin that did not prove who it is.
    func noteUnverified(_ origin: Endpoint) {
        counters.add(.originConnectionsUnverified)
        guard shared.unverifiedOrigins.withLock({ $0.insert(origin).inserted }) else { return }
        Diagnostics.warning("tls: the certificate of \(origin) is NOT VERIFIED, as its rule of origins says")
    }

    /// An origin has asked for a certificate of the client.
    func noteCertificateRequest(by host: String) {
        shared.certificateRequests.withLock { $0.noteRequest(by: host, now: moment) }
    }

    /// It ended the connection because it got none.
    func noteCertificateRefusal(by host: String) {
        guard shared.certificateRequests.withLock({ $0.noteRefusal(by: host, now: moment) }) else { return }
        Diagnostics.warning(
            "\(host) wants a certificate of the client: Larder has none to show, and the client's own does not pass an opened tunnel. Name one in tls of a rule of origins, or leave the host out of intercept.hosts, or say intercept: no in its access rule"
        )
    }
}
