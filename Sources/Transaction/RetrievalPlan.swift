package import Caching

/// How the origin is asked, as `RequestMachine` decided it.
package struct RetrievalPlan: Equatable, Sendable {
    /// Why the store did not answer (RFC 9211 §2.2).
    package var reason: CacheStatus.ForwardReason
    /// The validators of what is stored go along (RFC 9111 §4.3.1).
    package var isConditional: Bool
    /// Other requests follow the transfer and wait for its outcome.
    package var isLeading: Bool

    package init(reason: CacheStatus.ForwardReason, isConditional: Bool = false, isLeading: Bool = false) {
        self.reason = reason
        self.isConditional = isConditional
        self.isLeading = isLeading
    }
}
