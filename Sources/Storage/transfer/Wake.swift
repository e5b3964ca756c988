/// Wakes one connection on one worker. It is called on any thread, never while a lock of this module is held. It must not block.
package struct Wake: Sendable {
    private let call: @Sendable () -> Void

    package init(_ call: @escaping @Sendable () -> Void) { self.call = call }

    package func callAsFunction() { call() }
}

/// Identifies one wait of a reader, so that it can be cancelled.
package struct WaitTicket: Hashable, Sendable { let id: UInt64 }

/// Identifies one reader of a growing body (`Body.attach`).
package struct ReaderID: Hashable, Sendable { let id: UInt64 }

/// Identifies one follower of a transfer, so that it can be cancelled.
package struct FollowTicket: Hashable, Sendable { let id: UInt64 }
