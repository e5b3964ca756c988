import EventLoop
import Storage

/// The gzip copy of one stored body: made once, at the first request that would have it, and kept as long as the response.
///
/// Records with a freshened head share it, as they share the body.
package final class CompressedCopy: Sendable {
    enum State { case none, beingMade, made, givenUp }
    private let content = Locked<(state: State, body: Body?)>((.none, nil))

    var state: State { content.withLock { $0.state } }

    /// The copy; nil where there is none, or not yet: then making it has begun, unless it was tried before. Any thread.
    /// - Parameter source: the stored body; one that still grows is asked for again later.
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
            self?.content.withLock { $0 = (body == nil ? .givenUp : .made, body) }
        }
        if !isBegun { content.withLock { $0.state = .none } }
    }
}
