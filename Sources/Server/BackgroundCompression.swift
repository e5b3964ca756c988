import Compression
import EventLoop
import Storage

/// Compresses a complete stored body into a new one, once for all clients, on threads that may be held up.
enum BackgroundCompression {
    /// - Parameter then: called on the loop of `inbox` with the gzip copy, complete; nil where there is no room, the queue
    ///   was full, or it did not get smaller by a tenth at least.
    /// - Returns: false: the queue is full; `then` is not called.
    static func begin(
        _ body: Body, in tier: MemoryTier, level: Int = 6, on pool: BlockingPool, inbox: Inbox,
        then: @escaping @Sendable (Body?) -> Void
    ) -> Bool {
        false
    }
}
