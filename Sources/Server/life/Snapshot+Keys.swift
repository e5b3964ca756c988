import Access
import Caching
package import Message
package import Rules

extension Snapshot {
    /// The keys under which responses to a GET of the URI may be stored: the URI, or what the key rules make of it; the key without a
    /// signature; and the key that it shares with all addresses that have its digest.
    ///
    /// - Parameter asker: a request by the client that would ask. Nil for no particular client, to which rules for clients or users do not
    ///   apply.
    package func keys(toGet uri: TargetURI, asker: RuleRequest? = nil) -> [[UInt8]] {
        var bytes = uri.normalised
        guard let handling = handling(toGet: uri, asker: asker), let rules = cacheRules.keyRules(for: handling) else {
            return [bytes]
        }
        rules.apply(to: &bytes)
        let signed = rules.signature.map { SignedAddress.key(for: uri.normalised, key: bytes, others: $0) }
        let shared = cacheRules.digestKey(of: uri.normalised, handling)?.bytes
        return [bytes, signed, shared].compactMap(\.self)
    }

    /// The end of the key of what a GET of the URI fetches with a cookie jar. Nil if it uses none.
    func cookieTag(toGet uri: TargetURI, asker: RuleRequest) -> [UInt8]? {
        guard usesCookies, let get = RuleRequest(toGet: uri, asker: asker) else { return nil }
        return origins.terms(for: get).cookies?.keyTag
    }

    /// How a GET of the URI is handled. Nil if there are no rules.
    ///
    /// - Parameter asker: see `keys`.
    func handling(toGet uri: TargetURI, asker: RuleRequest?) -> CacheHandling? {
        guard !cacheRulesAreTrivial, let get = RuleRequest(toGet: uri, asker: asker) else { return nil }
        return cacheRules.handling(of: get)
    }
}

extension RuleRequest {
    fileprivate init?(toGet uri: TargetURI, asker: RuleRequest?) {
        guard let destination = DestinationHost(uri.host.utf8) else { return nil }
        self.init(
            client: asker?.client, identity: asker?.identity, method: .get, scheme: uri.scheme,
            destination: destination, port: uri.port, isTunnel: false,
            pathAndQuery: uri.pathAndQuery[...])
        listener = asker?.listener
    }
}
