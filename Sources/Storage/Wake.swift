/// Wakes one connection on one worker. Called on any thread, never under a lock of this module. It must not block.
package struct Wake: Sendable {
    private let call: @Sendable () -> Void

    package init(_ call: @escaping @Sendable () -> Void) { self.call = call }

    package func callAsFunction() { call() }
}

/// Names one wait of one reader, to cancel it.
package struct WaitTicket: Hashable, Sendable { let id: UInt64 }

/// Names one reader of a growing body (`Body.attach`).
package struct ReaderID: Hashable, Sendable { let id: UInt64 }

/// Names one follower of a transfer, to cancel it.
package struct FollowTicket: Hashable, Sendable { let id: UInt64 }
