import Access
import Caching
package import Message
import Rules

extension Snapshot {
    /// The keys under which responses to a GET of the URI may be stored, whoever asks: the URI, and what the key rules make of it that may hold; the keys
    /// without a signature; and the keys that it shares with all addresses that have its digest. What is stored for a credential, a cookie jar or a
    /// route has one of these keys and more behind it, which begins with "#".
    package func keys(toGet uri: TargetURI) -> [[UInt8]] {
        let normalised = uri.normalised
        var keys = [normalised]
        guard !cacheRulesAreTrivial, let get = RuleRequest(toGet: uri, asker: nil) else { return keys }
        for handling in cacheRules.handlings(whoeverSends: get) {
            guard let rules = cacheRules.keyRules(for: handling) else { continue }
            var bytes = normalised
            rules.apply(to: &bytes)
            let signed = rules.signature.map { SignedAddress.key(for: normalised, key: bytes, others: $0) }
            let shared = cacheRules.digestKey(of: normalised, handling)?.bytes
            for key in [bytes, signed, shared].compactMap(\.self) where !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    /// The end of the key of what a GET of the URI fetches with a cookie jar. Nil if it uses none.
    func cookieTag(toGet uri: TargetURI, asker: RuleRequest) -> [UInt8]? {
        guard usesCookies, let get = RuleRequest(toGet: uri, asker: asker) else { return nil }
        return origins.terms(for: get).cookies?.keyTag
    }

    /// Whether something may be stored for one credential, cookie jar or route alone.
    var storesSeparately: Bool {
        usesCookies || routesDependOnClient || !credentials.isEmpty || cacheRules.storeSeparately
    }

    /// How a GET of the URI is handled. Nil if there are no rules.
    ///
    /// - Parameter asker: a request by the client that would ask. Nil for no particular client, to which rules for clients or users do not
    ///   apply.
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
