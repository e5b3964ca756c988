import EventLoop
import Framing
import Message
import Rules
import Settings
package import TLS

/// What a listener offers, as long as it exists.
final class ListenerTerms: Sendable {
    let name: String
    /// The name where one is written. Nil: the log does not say by which listener a request came.
    let nameInLog: String?
    let doorstep: DoorstepTerms
    /// Who has to send a PROXY header.
    private let trusted: [AddressRange]
    let tls: ListenerTLS?
    /// The clients are other nodes of the fleet, which ask for what this one owns.
    let isForPeers: Bool

    init(_ settings: ListenerSettings, tls: ListenerTLS?, isForPeers: Bool = false) {
        self.isForPeers = isForPeers
        precondition((settings.tls == nil) == (tls == nil), "a listener with TLS has a certificate")
        name = settings.name
        nameInLog = settings.writtenName
        let use: DoorstepTerms.TLSUse =
            switch settings.tls {
            case nil: .none
            case let tls?: tls.isRequired || tls.demandsClientCertificate ? .required : .offered
            }
        doorstep = DoorstepTerms(
            http1: settings.protocols.contains(.http1), socks5: settings.protocols.contains(.socks5), tls: use)
        trusted = settings.proxyProtocol
        self.tls = tls
    }

    /// Whether a peer speaks for others, and has to say for whom.
    func trusts(_ peer: IPAddress?) -> Bool {
        guard !trusted.isEmpty, let peer else { return false }
        return trusted.contains { $0.contains(peer) }
    }
}

/// What a listener shows to clients that speak TLS. It is replaced when its files change; connections that exist go on, and
/// whoever has an identity by its certificate is verified again (`ConnectionProof`).
package final class ListenerTLS: Sendable {
    private let present: Locked<TLSServerContext>

    package init(_ context: TLSServerContext) { present = Locked(context) }

    package var context: TLSServerContext { present.withLock { $0 } }

    /// No session that was begun with the context before can be resumed: its client may have been shut out.
    package func replace(by context: TLSServerContext) { present.withLock { $0 = context } }
}
