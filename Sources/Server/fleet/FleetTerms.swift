package import Settings
import Fleet
package import TLS

/// What a node needs to take part in its fleet: `fleet` in the configuration, with the files that it names read.
package struct FleetTerms: Sendable {
    let url: RedisURL
    /// Nil: the server asks for none.
    let password: [UInt8]?
    /// Nil without TLS.
    let tls: TLSClientContext?
    /// The name of this node.
    let node: String
    let hash: FleetSecret
    /// Nil: the nodes do not ask each other.
    package let peers: PeerTerms?

    /// - Parameters:
    ///   - authorities: whom the certificate of the server may come from. Without effect on a URL without TLS.
    ///   - secret: what all nodes of the fleet have, and nobody else.
    package init(
        url: RedisURL, password: [UInt8]?, authorities: TLSClientOptions.Authorities, node: String, secret: [UInt8],
        peers: PeerTerms? = nil
    ) throws(TLSContextError) {
        self.url = url
        self.password = password
        self.node = node
        self.peers = peers
        hash = FleetSecret(secret)
        guard url.isSecured else {
            tls = nil
            return
        }
        var options = TLSClientOptions()
        options.authorities = authorities
        tls = try TLSClientContext(options)
    }
}

/// The secret of a fleet, which authenticates what its nodes share.
struct FleetSecret: FleetHash {
    private let key: HMACKey

    init(_ secret: [UInt8]) { key = HMACKey(secret) }

    func code(_ beginning: [UInt8], _ rest: borrowing Span<UInt8>) -> [UInt8] { key.code(beginning, rest) }
}
