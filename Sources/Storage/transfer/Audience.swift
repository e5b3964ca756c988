/// The readers of a body that is not complete: who is attached, who waits, and, for a window, how far the writer may be ahead.
/// Protected by the lock of the body (`Body.locked`).
final class Audience {
    private struct Wait {
        let ticket: WaitTicket
        let offset: Int
        let wake: Wake
    }
    private struct Reader {
        let id: ReaderID
        var offset: Int
    }

    private var waits: [Wait] = []
    private var readers: [Reader] = []
    private var roomWake: Wake?

    /// How many bytes the writer may be ahead of the slowest reader. Nil if the body is not a window.
    var window: Int?
    /// Pages that end at or before this offset are freed.
    var freedEnd = 0
    /// The offset below which the bytes of a window are on the back store, and are read there.
    var elsewhereEnd = 0

    /// Nobody reads or waits, and no page was freed: the body does not need this object.
    var isIdle: Bool { waits.isEmpty && readers.isEmpty && roomWake == nil && window == nil }

    var readerCount: Int { readers.count }

    // MARK: Waits

    func addWait(_ ticket: WaitTicket, beyond offset: Int, _ wake: Wake) {
        waits.append(Wait(ticket: ticket, offset: offset, wake: wake))
    }

    /// Returns the wake, which the caller releases without the lock. Returns nil if it was called already.
    @discardableResult
    func removeWait(_ ticket: WaitTicket) -> Wake? {
        guard let index = waits.firstIndex(where: { $0.ticket == ticket }) else { return nil }
        return waits.remove(at: index).wake
    }

    func takeDue(where isDue: (Int) -> Bool) -> [Wake] {
        let due = waits.filter { isDue($0.offset) }
        if !due.isEmpty { waits.removeAll { isDue($0.offset) } }
        return due.map(\.wake)
    }

    // MARK: Readers

    func addReader(_ id: ReaderID, at offset: Int) {
        precondition(offset >= freedEnd, "a reader begins behind the freed pages")
        readers.append(Reader(id: id, offset: offset))
    }

    func moveReader(_ id: ReaderID, to offset: Int) {
        guard let index = readers.firstIndex(where: { $0.id == id }) else { return }
        readers[index].offset = max(offset, readers[index].offset)
    }

    func removeReader(_ id: ReaderID) { readers.removeAll { $0.id == id } }

    /// Returns nil if nobody reads.
    var slowest: Int? { readers.map(\.offset).min() }

    // MARK: The writer's pause

    /// - Parameter others: the offset at which the readers of another body will continue with this one. Nil if there are none.
    func hasRoom(length: Int, others: Int?) -> Bool {
        guard let window, let slowest = [slowest, others].compactMap(\.self).min() else { return true }
        return length - max(slowest, elsewhereEnd) < window
    }

    func waitForRoom(_ wake: Wake) { roomWake = wake }

    func takeRoomWake(length: Int, others: Int?) -> Wake? {
        guard hasRoom(length: length, others: others) else { return nil }
        defer { roomWake = nil }
        return roomWake
    }
}
