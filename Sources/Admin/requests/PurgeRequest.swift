/// Which stored responses to purge, and how.
package struct PurgeRequest: Sendable, Equatable {
    package var selection: Selection
    package var kind: Kind
    /// Only count; change nothing.
    package var dryRun: Bool

    package enum Kind: Sendable, Equatable {
        /// Remove them from the store.
        case hard
        /// Mark them stale, so that they are validated before they are served, except where stale responses may be served. Responses that
        /// are still arriving are removed.
        case soft
        /// Purges may have been missed: only their origins can make the responses of use again. Nobody asks for this; a node of a fleet finds out.
        case doubt
    }

    package init(_ selection: Selection, kind: Kind = .hard, dryRun: Bool = false) {
        self.selection = selection
        self.kind = kind
        self.dryRun = dryRun
    }
}
