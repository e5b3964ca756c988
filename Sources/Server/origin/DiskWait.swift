import EventLoop

/// How long one fetch waits for the disk, in all its pauses together. After that it goes on, and what it fetches waits in memory to be written.
struct DiskWait {
    /// A medium that takes a few MiB a second has written what may wait by then.
    static let most: Duration = .seconds(10)

    private var used = Duration.zero
    private var since: MonotonicTime?

    var isUnderWay: Bool { since != nil }

    /// Begins a pause.
    /// - Returns: how long it may last. Nil if the time is used up, or a pause is under way.
    mutating func begin(_ now: MonotonicTime) -> Duration? {
        let left = Self.most - used
        guard since == nil, left > .zero else { return nil }
        since = now
        return left
    }

    /// Ends the pause. Returns false if none is under way.
    mutating func end(_ now: MonotonicTime) -> Bool {
        guard let begin = since else { return false }
        since = nil
        used += max(.zero, now.duration(since: begin))
        return true
    }
}
