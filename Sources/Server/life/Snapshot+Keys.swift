import Access
import Caching
package import Message
package import Rules

extension Snapshot {
    /// Under what a GET of the URI is stored: the URI, or what the rules of the cache make of it.
    ///
    /// - Parameter asker: a request of the same origin by the one who would ask; nil: nobody in particular, so that rules for some
    ///   clients or users alone do not hold.
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
