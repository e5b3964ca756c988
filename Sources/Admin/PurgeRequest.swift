/// Which stored responses are to go, and how.
package struct PurgeRequest: Sendable, Equatable {
    package var selection: Selection
    package var kind: Kind
    /// Count, but change nothing.
    package var dryRun: Bool

    package enum Kind: Sendable, Equatable {
        /// Taken out of the store.
        case hard
        /// Marked stale: served after validation, or where something stale may be served. What is still arriving is
        /// taken out.
        case soft
    }

    package init(_ selection: Selection, kind: Kind = .hard, dryRun: Bool = false) {
        self.selection = selection
        self.kind = kind
        self.dryRun = dryRun
    }
}
