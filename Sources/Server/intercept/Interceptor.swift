import Glibc
import Rules
package import TLS

/// What opening tunnels takes: the authority, the leaves that it has issued, and the settings of TLS with clients. All workers share one.
///
/// A reload keeps it if the authority is the same, and with it leaves and resumable sessions.
package final class Interceptor: Sendable {
    package let authority: CertificateAuthority
    package let leaves: LeafCache
    let context: TLSServerContext

    package init(_ authority: CertificateAuthority) throws(TLSContextError) {
        self.authority = authority
        leaves = LeafCache(authority)
        context = try TLSServerContext()
    }

    /// The name of a leaf for this host.
    static func leafName(_ host: DestinationHost) -> LeafName? {
        switch host {
        // In lower case, and checked: `LeafName` promises no more.
        case .name(let name): .dns(name)
        case .address(let address): LeafName(host: "\(address)")
        }
    }

    /// Whether clients accept a leaf for this host from this authority.
    func certifies(_ host: DestinationHost) -> Bool {
        Interceptor.leafName(host).map { authority.permits($0) } ?? false
    }
}
