package import Caching

/// How the origin is asked. `RequestMachine` decides it.
package struct RetrievalPlan: Equatable, Sendable {
    /// Why the store did not answer (RFC 9211 §2.2).
    package var reason: CacheStatus.ForwardReason
    /// The request carries the validators of stored responses (RFC 9111 §4.3.1).
    package var isConditional: Bool
    /// The request leads a transfer, whose outcome other requests may wait for.
    package var isLeading: Bool
    /// The whole is asked for without conditions, although the client wants a part.
    package var asksForWhole: Bool

    package init(
        reason: CacheStatus.ForwardReason, isConditional: Bool = false, isLeading: Bool = false,
        asksForWhole: Bool = false
    ) {
        precondition(!isConditional || !asksForWhole, "the whole is asked for without conditions")
        self.reason = reason
        self.isConditional = isConditional
        self.isLeading = isLeading
        self.asksForWhole = asksForWhole
    }
}
