/// How far a purge has come on one node.
package struct NodeStanding: Equatable, Sendable {
    package enum State: Equatable, Sendable {
        case applied
        /// The node cannot apply it.
        case refused(Refusal)
        /// The node may have applied it, and cannot show that.
        case unproven(Doubt)
        /// The node has not said that it has applied it.
        ///
        /// - seconds: since it said something. Nil: it has never been heard.
        case silent(seconds: UInt64?)
    }

    package enum Refusal: String, Sendable { case otherSecret = "another secret" }
    package enum Doubt: String, Sendable {
        case release = "its release does not say so in a form that can be verified"
        case namesake = "two nodes have this name"
    }

    package let name: String
    package let state: State

    package init(_ name: String, _ state: State) {
        self.name = name
        self.state = state
    }
}
