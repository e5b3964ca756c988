package import Message

/// The knobs of a shared cache: what RFC 9111 leaves to the one who runs it.
package struct CachePolicy: Sendable, Equatable {
    /// Longest lifetime the heuristic of RFC 9111 §4.2.2 may give.
    package var heuristicLifetimeMax = Seconds(86_400)
    /// Share of `Date` − `Last-Modified` that the heuristic takes, in percent.
    package var heuristicPercent: Int64 = 10
    /// How long past its lifetime a response may still be served when the origin fails (§4.2.4), where the origin does
    /// not say so itself with `stale-if-error`; zero: not at all. A week bridges a failure without hiding that a thing is gone.
    package var staleOnErrorMax = Seconds(7 * 86_400)

    package init() {}
}
