package import Message

/// Choices that RFC 9111 leaves to the operator of a shared cache.
package struct CachePolicy: Sendable, Equatable {
    /// The longest lifetime that the heuristic of RFC 9111 §4.2.2 may give.
    package var heuristicLifetimeMax = Seconds(86_400)
    /// The share of `Date` − `Last-Modified` that the heuristic gives as a lifetime, in percent.
    package var heuristicPercent: Int64 = 10
    /// How long after its lifetime a response may be served if the origin fails (§4.2.4) and does not say so itself with
    /// `stale-if-error`. Zero if not at all. A week outlasts most failures, and does not hide for ever that a resource is gone.
    package var staleOnErrorMax = Seconds(7 * 86_400)

    package init() {}
}
