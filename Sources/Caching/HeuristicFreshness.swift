package import Message

/// A lifetime where the origin gave none: a share of the time since the last change (RFC 9111 §4.2.2).
///
/// - Returns: nil where no heuristic applies: the status is not one of those and nothing says `public`, or it is not known
///   when the response last changed. A `Last-Modified` after `Date` gives zero.
package func heuristicLifetime(
    status: UInt16, isPublic: Bool, lastModified: WallTime?, date: WallTime, policy: CachePolicy
) -> Seconds? {
    guard let lastModified, isPublic || isHeuristicallyCacheable(status) else { return nil }
    let sinceModified = max((date - lastModified).count, 0)
    let percent = min(max(policy.heuristicPercent, 0), 100)
    // Divided first where the product would overflow: a date can lie far away.
    let share = sinceModified > .max / 100 ? sinceModified / 100 * percent : sinceModified * percent / 100
    return min(Seconds(share), policy.heuristicLifetimeMax)
}

/// The statuses that may be reused by heuristics (RFC 9110 §15.1).
package func isHeuristicallyCacheable(_ status: UInt16) -> Bool {
    switch status {
    case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
    default: false
    }
}
