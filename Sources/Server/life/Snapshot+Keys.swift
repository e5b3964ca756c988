import Access
import Caching
package import Message
package import Rules

extension Snapshot {
    /// The cache key of a GET of the URI: the URI, or what the key rules make of it.
    ///
    /// - Parameter asker: a request to the same origin by the client that would ask. Nil for no particular client, to which rules for
    ///   clients or users do not apply.
    package func keyBytes(toGet uri: TargetURI, asker: RuleRequest? = nil) -> [UInt8] {
        var bytes = uri.normalised
        guard !cacheRulesAreTrivial, var get = asker ?? RuleRequest(toGet: uri) else { return bytes }
        get.method = .get
        get.methodText = "GET"
        get = get.with(pathAndQuery: uri.pathAndQuery[...])
        cacheRules.keyRules(for: cacheRules.handling(of: get))?.apply(to: &bytes)
        return bytes
    }
}

extension RuleRequest {
    fileprivate init?(toGet uri: TargetURI) {
        guard let destination = DestinationHost(uri.host.utf8) else { return nil }
        self.init(
            client: nil, method: .get, scheme: uri.scheme, destination: destination, port: uri.port, isTunnel: false,
            pathAndQuery: uri.pathAndQuery[...])
    }
}
