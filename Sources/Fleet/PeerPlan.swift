/// Whom a node asks for a response before it asks the origin, and whether the response is its own to keep.
package struct PeerPlan: Equatable, Sendable {
    package struct Ask: Equatable, Sendable {
        /// Of `Ownership.members`.
        package let member: Int
        /// The other node answers from its store or not at all.
        package let isForStoreOnly: Bool

        package init(_ member: Int, isForStoreOnly: Bool = false) {
            self.member = member
            self.isForStoreOnly = isForStoreOnly
        }
    }

    /// Whether the response goes to the disk of this node. In memory, every node keeps what it serves.
    package enum Keeping: Equatable, Sendable {
        /// This node owns it.
        case always
        /// This node is the stand-in: only if the owner did not answer.
        case ifUnanswered
        case never
    }

    /// In the order in which they are asked.
    package let asks: [Ask]
    package let keeping: Keeping

    private init(_ asks: [Ask], _ keeping: Keeping) {
        self.asks = asks
        self.keeping = keeping
    }

    /// What a request of another node may cause: it is answered here, and goes no further than the origin. Only a node that has joined lately looks
    /// into the store of the owner before it.
    ///
    /// - Parameters:
    ///   - ranking: the owner, its stand-in and the one behind that, as far as there are so many.
    ///   - own: the index of this node. Nil: it is not among the members.
    ///   - isNew: this node has become a member lately, and what it owns now is with others.
    package init(ranking: [Int], own: Int?, isNew: Bool, isForPeer: Bool) {
        let isOwner = own != nil && ranking.first == own
        if isOwner || isForPeer {
            let previous = isOwner && isNew ? ranking.dropFirst().first : nil
            self.init(previous.map { [Ask($0, isForStoreOnly: true)] } ?? [], .always)
            return
        }
        let isStandIn = own != nil && ranking.dropFirst().first == own
        self.init(
            ranking.prefix(2).filter { $0 != own }.map { Ask($0) }, isStandIn ? .ifUnanswered : .never)
    }
}
