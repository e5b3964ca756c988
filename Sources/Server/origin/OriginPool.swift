import Routing
import Origins

/// The links with one `LinkKey`: how many there are, which of them are idle, and which requests wait for one.
final class OriginPool {
    let key: LinkKey
    /// The link that was used last is at the end.
    var idle: [OriginLink] { unsafe uncheckedIdle }
    /// Links that are idle, in use or being opened.
    private(set) var openCount = 0
    /// How many requests wait for a link. Bounded by `Limits.originQueueMax`.
    private(set) var waitingCount = 0

    // Nothing is called, and nothing is released, while one of the two changes: the unchecked access is exclusive.
    @exclusivity(unchecked) private var uncheckedIdle: [OriginLink] = []
    // Touched only if requests wait: the queue is another module's generic type, and every use of it is a call through its metadata.
    @exclusivity(unchecked) private var uncheckedQueue = FairQueue<StreamRequest>()

    init(key: LinkKey) { self.key = key }

    /// Whether the pool has neither links nor waiting requests.
    var isUnused: Bool { openCount == 0 && waitingCount == 0 }

    func countOpen() { openCount += 1 }

    func discountOpen() {
        openCount -= 1
        precondition(openCount >= idle.count, "a link is closed once, and an idle one is open")
    }

    // MARK: idle links

    func addIdle(_ link: OriginLink) {
        precondition(
            link.streamsInUse == 0 && link.pool === self, "an idle link is in its own pool, and nobody uses it")
        unsafe uncheckedIdle.append(link)
        precondition(idle.count <= openCount, "every idle link is open")
    }

    func popIdle() -> OriginLink? {
        guard let link = unsafe uncheckedIdle.popLast() else { return nil }
        precondition(link.streamsInUse == 0, "nobody uses an idle link")
        return link
    }

    /// Returns false if the link is not idle.
    func removeIdle(_ link: OriginLink) -> Bool {
        guard let index = idle.firstIndex(where: { $0 === link }) else { return false }
        _ = unsafe uncheckedIdle.remove(at: index)
        return true
    }

    // MARK: the queue

    /// - Returns: the request that has no place.
    func enqueue(_ request: StreamRequest, countMax: Int) -> StreamRequest? {
        let displaced = unsafe uncheckedQueue.append(
            request, from: request.request.access.client, countMax: countMax)
        if displaced == nil { waitingCount += 1 }
        return displaced
    }

    /// Removes and returns the next request in the queue that satisfies the condition.
    func dequeue(where isSuitable: (StreamRequest) -> Bool) -> StreamRequest? {
        guard waitingCount > 0, let next = unsafe uncheckedQueue.next(where: isSuitable) else { return nil }
        waitingCount -= 1
        return next
    }

    func leaveQueue(_ request: StreamRequest) { _ = dequeue { $0 === request } }
}

// For the log.
extension OriginPool: CustomStringConvertible {
    /// `http://a.example:80`, and the next proxy if there is one.
    var description: String {
        guard case .proxy(let proxy) = key.route else { return "\(key.origin)" }
        return "\(key.origin) through \(proxy)"
    }

    /// `2 open, 1 idle, 0 waiting`.
    var counts: String { "\(openCount) open, \(idle.count) idle, \(waitingCount) waiting" }
}
