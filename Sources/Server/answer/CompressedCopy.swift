import EventLoop
import Storage

/// The gzip copy of one stored body. The first request that can use it causes it to be made; it is kept as long as the stored response.
///
/// Stored responses with a freshened head share the copy, as they share the body. Any thread may use it.
package final class CompressedCopy: Sendable {
    enum State { case none, beingMade, made, givenUp }
    private let content = Locked<(state: State, body: Body?)>((.none, nil))

    var state: State { content.withLock { $0.state } }

    /// Returns the copy. Returns nil if there is none yet, and begins to make it unless that was tried before.
    ///
    /// - Parameter source: the stored body. Nothing is begun while it is incomplete.
    func body(of source: Body, in tier: MemoryTier, on pool: BlockingPool, inbox: Inbox) -> Body? {
        guard source.state == .complete else { return nil }
        let (mustMake, body) = content.withLock { content in
            let isFirst = content.state == .none
            if isFirst { content.state = .beingMade }
            return (isFirst, content.body)
        }
        if mustMake { make(source, tier, pool, inbox) }
        return body
    }

    private func make(_ source: Body, _ tier: MemoryTier, _ pool: BlockingPool, _ inbox: Inbox) {
        let isBegun = BackgroundCompression.begin(source, in: tier, on: pool, inbox: inbox) { [weak self] body in
            self?.content.withLock { content in
                precondition(content.state == .beingMade, "a copy is made once")
                content = (body == nil ? .givenUp : .made, body)
            }
        }
        if !isBegun { content.withLock { $0.state = .none } }
    }
}
