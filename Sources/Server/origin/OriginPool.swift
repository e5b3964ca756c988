import Routing

/// The links with one key: how many there are, which of them are idle, and who waits for one.
final class OriginPool {
    let key: LinkKey
    /// The one that was used last is at the end.
    private(set) var idle: [OriginLink] = []
    /// Links that are idle, in use or being opened.
    private(set) var openCount = 0
    /// First come, first served; bounded by `Limits.originQueueMax`.
    private(set) var queue: [StreamRequest] = []

    init(key: LinkKey) { self.key = key }

    /// Nothing is known of it that a new pool would not know.
    var isUnused: Bool { openCount == 0 && queue.isEmpty }

    func countOpen() { openCount += 1 }

    func discountOpen() {
        openCount -= 1
        precondition(openCount >= idle.count, "every idle link is open, and none is closed twice")
    }

    // MARK: idle links

    func addIdle(_ link: OriginLink) {
        idle.append(link)
        precondition(idle.count <= openCount, "every idle link is open")
    }

    func popIdle() -> OriginLink? { idle.popLast() }

    /// Returns false if the link is not idle.
    func removeIdle(_ link: OriginLink) -> Bool {
        guard let index = idle.firstIndex(where: { $0 === link }) else { return false }
        idle.remove(at: index)
        return true
    }

    // MARK: the queue

    func enqueue(_ request: StreamRequest) { queue.append(request) }

    func dequeue() -> StreamRequest? { queue.isEmpty ? nil : queue.removeFirst() }

    /// The first in the queue that satisfies the condition.
    func dequeue(where isSuitable: (StreamRequest) -> Bool) -> StreamRequest? {
        guard let index = queue.firstIndex(where: isSuitable) else { return nil }
        return queue.remove(at: index)
    }

    func leaveQueue(_ request: StreamRequest) { queue.removeAll { $0 === request } }
}
