import Access
import Routing
import TLS

/// What the log and the statistics learn of TLS with origins and next proxies.
extension Worker {
    /// - Parameter name: the name by which the server was asked for.
    func noteHandshake(with name: String, version: String, isResumed: Bool) {
        counters.add(.originHandshakes)
        if isResumed { counters.add(.originHandshakesResumed) }
        Diagnostics.debug(.tls, "\(name): \(version)\(isResumed ? ", resumed" : "")")
    }

    /// The client learns the kind of failure alone, so the log says what it was: once a minute for each server.
    func noteHandshakeFailure(with name: String, _ failure: TLSFailure) {
        let (text, now) = ("tls: \(name): \(failure.details)", loop.now.sinceStart)
        let isNews = shared.handshakeFailures.withLock { failures in
            guard failures.value(text, now: now) == nil else { return false }
            failures.set(text, (), now: now)
            return true
        }
        if isNews { Diagnostics.info(text) } else { Diagnostics.debug(.tls, "\(name): \(failure.details)") }
    }

    /// A connection was opened to an origin that did not prove who it is.
    func noteUnverified(_ origin: Endpoint) {
        counters.add(.originConnectionsUnverified)
        guard shared.unverifiedOrigins.withLock({ $0.insert(origin).inserted }) else { return }
        Diagnostics.warning("tls: the certificate of \(origin) is NOT VERIFIED, as its rule of origins says")
    }

    /// An origin has asked for a certificate of the client.
    func noteCertificateRequest(by host: String) {
        shared.certificateRequests.withLock { $0.noteRequest(by: host, now: wallTime) }
    }

    /// It ended the connection because it got none.
    func noteCertificateRefusal(by host: String) {
        guard shared.certificateRequests.withLock({ $0.noteRefusal(by: host, now: wallTime) }) else { return }
        Diagnostics.warning(
            "\(host) wants a certificate of the client: Larder has none to show, and the client's own does not pass an opened tunnel. Name one in tls of a rule of origins, or leave the host out of intercept.hosts, or say intercept: no in its access rule"
        )
    }
}
