package import Access
package import Caching
package import Message
package import Settings
package import TLS

/// One whole configuration, ready to be used: what a reload swaps and what a transaction keeps to its end.
package final class Snapshot: Sendable {
    package let configuration: Configuration
    package let access: AccessPolicy
    package let cachePolicy: CachePolicy
    package let limits: Limits
    package let tls: TLSClientContext
    /// The users of `access.authentication`; nil where clients need not say who they are.
    package let users: HtpasswdFile?
    /// Any address may be dialled for anybody: nothing to ask before a pooled connection is used.
    package let dialsAnything: Bool

    package init(configuration: Configuration, users: HtpasswdFile?) throws(TLSFailure) {
        self.configuration = configuration
        access = AccessPolicy(configuration.access)
        var policy = CachePolicy()
        policy.heuristicLifetimeMax = Seconds(configuration.cache.heuristicLifetimeMax.components.seconds)
        cachePolicy = policy
        limits = configuration.limits
        tls = try TLSClientContext(
            caFile: configuration.tls.caFile, minimumVersion: configuration.tls.minimumVersion == .v1_3 ? .v1_3 : .v1_2)
        self.users = users
        dialsAnything = access.isOpen && configuration.access.privateDestinations == .allow
    }
}
