/// How far a node has come with the purges of the stream, as far as the other nodes are concerned: whether it asks them, what it says then, and whom it answers.
///
/// A node that asks says up to which purge it knows of them, and which data of the server that is (`StreamPosition`). It gets nothing but from a node that has applied all of
/// them. So what one node has purged does not come back to it from another one that has missed the purge:
///
/// | the node that is asked | answers |
/// |---|---|
/// | has reached the position in the same data | yes |
/// | is behind it, or is marking everything as stale | no: it may have what was purged |
/// | has come to other data, older or newer | no: ids of different data say nothing of each other, and what was purged with the older data is in nobody's stream any more |
/// | has never followed the stream | no, unless the one that asks has not either |
///
/// The last column holds only if `known` never leaves anything out. It is that of the log, which takes other data when the server first says so, and goes back in none.
package struct PurgeProgress: Equatable, Sendable {
    /// Up to where everything is applied here, or marked as stale. Nil: the node has not followed the stream.
    package let applied: StreamPosition?
    /// Up to where purges are known here, applied or not.
    package let known: StreamPosition?
    /// Everything is being marked as stale, so what is stored may be from before a purge that `applied` covers.
    package let isMarking: Bool
    /// The node knows of all purges that an earlier run of it may have applied.
    package let hasCaughtUp: Bool

    /// Of a node that has not followed the stream.
    package static let none = PurgeProgress(applied: nil, known: nil, isMarking: false, hasCaughtUp: false)

    package init(applied: StreamPosition?, known: StreamPosition?, isMarking: Bool, hasCaughtUp: Bool) {
        self.applied = applied
        self.known = known
        self.isMarking = isMarking
        self.hasCaughtUp = hasCaughtUp
    }

    package init<Matcher>(_ follower: StreamFollower, _ log: PurgeLog<Matcher>, isMarking: Bool) {
        self.init(
            applied: follower.position, known: log.latest(follower.position), isMarking: isMarking,
            hasCaughtUp: follower.hasCaughtUp)
    }

    /// Whether other nodes are asked.
    ///
    /// - Parameter hasOwnUnderWay: there are purges of this node that its position does not count yet (`PurgesUnderWay`).
    package func asks(hasOwnUnderWay: Bool) -> Bool { hasCaughtUp && !hasOwnUnderWay }

    /// Whether a node that says this position gets an answer. Nil: it has not followed the stream.
    package func answers(_ position: StreamPosition?) -> Bool {
        guard let position else { return true }
        guard let applied, !isMarking else { return false }
        return applied.epoch == position.epoch && applied.id >= position.id
    }
}
