package import Message

/// A lifetime for a response without one from the origin: a share of the time since its last change (RFC 9111 §4.2.2).
///
/// - Returns: nil if no heuristic applies, because neither the status nor `public` allows it, or it is not known when the response last
///   changed. A `Last-Modified` after `Date` gives zero.
package func heuristicLifetime(
    status: UInt16, isPublic: Bool, lastModified: WallTime?, date: WallTime, policy: CachePolicy
) -> Seconds? {
    guard let lastModified, isPublic || isHeuristicallyCacheable(status) else { return nil }
    let sinceModified = max((date - lastModified).count, 0)
    let percent = min(max(policy.heuristicPercent, 0), 100)
    // Divide first if the product would overflow: a date can be far away.
    let share = sinceModified > .max / 100 ? sinceModified / 100 * percent : sinceModified * percent / 100
    return min(Seconds(share), policy.heuristicLifetimeMax)
}

/// Whether responses with this status may be reused by heuristics (RFC 9110 §15.1).
package func isHeuristicallyCacheable(_ status: UInt16) -> Bool {
    switch status {
    case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
    default: false
    }
}
