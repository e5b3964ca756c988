import Access
import Authentication
import Credentials
import LogIns
import Message
import Rules
import TLS

/// Who a client proved to be for its whole connection: with its certificate, with SOCKS, or, in a tunnel, with the CONNECT.
///
/// Each request, and each second of a tunnel that is not opened, asks whether that still holds. As long as nothing has changed, the answer costs
/// two comparisons.
final class ConnectionProof {
    private var kept: KeptProof
    /// `Worker.proofsNumber` for which `kept` holds. Nil: it was not asked yet.
    private var number: UInt64?
    private var shown: Shown?
    /// Helper threads examine the credentials, for a tunnel that is not opened.
    private var isExamined = false

    /// A certificate, and what the listener verifies it with.
    private struct Shown {
        let certificate: ShownCertificate
        let tls: ListenerTLS
        /// By which it was accepted last.
        var context: TLSServerContext

        /// Verifies it once more if the listener has read its authorities and revocation lists again.
        mutating func isAccepted() -> Bool {
            let present = tls.context
            guard present !== context else { return true }
            guard present.accepts(certificate) else { return false }
            context = present
            return true
        }
    }

    /// What was in force when a client began to prove who it is. The proof is for that, whatever has changed when the answer is there.
    final class Basis {
        let number: UInt64
        let settings: AuthenticationSettings
        let material: AuthenticationMaterial

        init(_ worker: Worker) {
            number = worker.proofsNumber
            settings = worker.snapshot.configuration.access.authentication
            material = worker.snapshot.authentication.material
        }
    }

    init(_ identity: Identity, by credentials: Secret?, on basis: Basis) {
        kept = KeptProof(identity, by: credentials, basis.settings, basis.material, using: OpenSSLHashing())
        number = basis.number
    }

    /// Returns nil if nobody knows the owner of the certificate.
    ///
    /// - Parameters:
    ///   - tls: what the listener shows and asks for.
    ///   - context: the same, as it was in the handshake.
    init?(
        _ certificate: ShownCertificate, to tls: ListenerTLS, accepted context: TLSServerContext, on worker: Worker
    ) {
        let names = certificate.names
        // However far away: the clock may be wrong now, and be set right while the connection lasts.
        let end = Expiry(at: WallTime(secondsSinceEpoch: names.notAfter), seen: worker.moment)
        let settings = worker.snapshot.configuration.access.authentication
        guard let kept = KeptProof(ClientCertificate(names), until: end, settings) else { return nil }
        self.kept = kept
        number = nil
        shown = Shown(certificate: certificate, tls: tls, context: context)
    }

    /// Of a program that has the proxy in its own process.
    init(given identity: Identity) {
        kept = KeptProof(given: identity)
        number = nil
    }

    func standing(on worker: Worker) -> KeptProof.Standing {
        let present = worker.proofsNumber
        if present != number, shown?.isAccepted() == false { return .ended }
        let standing = kept.standing(
            worker.snapshot.configuration.access.authentication, worker.snapshot.authentication.material,
            hasChanged: present != number, now: worker.uptime, wallTime: worker.wallTime)
        if case .holds = standing { number = present }
        return standing
    }

    /// Takes what examining the credentials has shown.
    func renew(_ identity: Identity, on basis: Basis) {
        kept.renew(identity)
        number = basis.number
    }

    /// Asks whether a tunnel that is not opened may go on.
    ///
    /// - Parameter end: called if not, once, now or later.
    func review(on worker: Worker, of client: IPAddress?, _ end: @escaping () -> Void) {
        guard !isExamined else { return }
        switch standing(on: worker) {
        case .holds: return
        case .ended: return end()
        case .unknown(let credentials):
            isExamined = true
            let basis = Basis(worker)
            let result = Authentication.check(again: credentials, client: client, worker: worker) { [weak self] in
                self?.reviewed($0, basis, end)
            }
            reviewed(result, basis, end)
        }
    }

    private func reviewed(_ result: Authentication.Result, _ basis: Basis, _ end: () -> Void) {
        switch result {
        case .waiting: return
        case .known(let identity, _): renew(identity, on: basis)
        case .refused(.authenticationRequired): end()
        // Nobody can tell now. It is asked again.
        case .refused: break
        }
        isExamined = false
    }
}

extension ClientCertificate {
    fileprivate init(_ names: CertificateNames) {
        self.init(
            subject: names.subject, commonName: names.commonName, dnsNames: names.dnsNames,
            mailboxes: names.mailboxes, uris: names.uris)
    }
}
