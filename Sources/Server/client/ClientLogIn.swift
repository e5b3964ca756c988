import Access
import Authentication
import Framing
import Kerberos
import LogIns
import Message
import Rules

/// A log-in of a client that holds for its connection (Negotiate, RFC 4559): the tokens under way, and then the identity.
///
/// A reload ends it, and so does the ticket. A request with other credentials is authenticated by itself.
final class ClientLogIn {
    /// Waits for the next token of the client. Whoever continues takes it: what comes in between begins anew.
    var negotiation: AcceptorContext?
    private var proof: ProvenCredentials?
    private var shelf: AuthenticationShelf?

    func begin(_ identity: Identity, _ credentials: [UInt8], _ hash: SipHash, _ shelf: AuthenticationShelf) {
        proof = ProvenCredentials(credentials[...], of: identity, hash)
        self.shelf = shelf
    }

    /// Who sends a request on this connection. Nil if that has to be found out.
    func identity(of fields: FieldSection, _ bytes: borrowing Span<UInt8>, on worker: Worker) -> Identity? {
        guard let proof, shelf === worker.snapshot.authentication, let end = proof.identity.expiry,
            worker.uptime < end
        else { return nil }
        guard fields.present.contains(.proxyAuthorization) else { return proof.identity }
        // Some clients repeat the token. The replay cache would refuse it.
        return proof.areIn(fields, bytes, now: worker.uptime) ? proof.identity : nil
    }
}
