import EventLoop

/// The large objects in the index, by the number of their file, and those that are open. For each file there is one
/// `LargeObject` at a time, because it owns the table of blocks: with two tables, blocks that one of them got would be missing in the
/// other.
///
/// `known` follows the index, under the lock of the ledger (`DiskStoreParts`). `opened` does not keep objects alive. `idle` does, so
/// that a response that is requested again soon needs no second look at its table.
final class LargeObjects: Sendable {
    private struct Known {
        var hash: UInt64
        var id: ObjectID
    }
    private struct WeakObject {
        weak var object: LargeObject?
    }
    private struct State {
        var known: [UInt32: Known] = [:]
        var opened: [UInt32: WeakObject] = [:]
        /// Objects that nobody may be using, kept open for the next reader, oldest first.
        var idle: [LargeObject] = []
    }
    private let state = Locked(State())
    /// Held while a file is opened, by threads that may block, so that it is opened once.
    /// Taken before `state`, never while that is held.
    private let opening = Locked(())

    /// Adds an object that is in the index.
    func add(_ number: UInt32, _ hash: UInt64, _ id: ObjectID) {
        state.withLock { $0.known[number] = Known(hash: hash, id: id) }
    }

    /// Removes an object that is no longer in the index. Whoever holds it can still read.
    func forget(_ number: UInt32) {
        let idle = state.withLock { state -> LargeObject? in
            state.known[number] = nil
            state.opened[number] = nil
            guard let at = state.idle.firstIndex(where: { $0.number == number }) else { return nil }
            return state.idle.remove(at: at)
        }
        _ = idle  // released outside of the lock: this may close the file
    }

    /// Releases the idle objects when the store has ended. They hold the parts of the store, which would never be freed.
    func releaseIdle() {
        let idle = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        _ = idle
    }

    func known(_ number: UInt32) -> (hash: UInt64, id: ObjectID)? {
        state.withLock { $0.known[number].map { ($0.hash, $0.id) } }
    }

    func opened(_ number: UInt32) -> LargeObject? { state.withLock { $0.opened[number]?.object } }

    /// Adds an object that is open now.
    func add(_ object: LargeObject, idleMax: Int) {
        let number = object.number
        let gone = state.withLock { state -> LargeObject? in
            let before = state.opened[number]?.object
            precondition(before == nil || before === object, "a file is open once, because its object owns the table")
            state.opened[number] = WeakObject(object: object)
            if state.opened.count > 4 * (idleMax + 16) {
                state.opened = state.opened.filter { $0.value.object != nil }
            }
            state.idle.append(object)
            return state.idle.count > idleMax ? state.idle.removeFirst() : nil
        }
        _ = gone
    }

    /// The open object, or else the one that `open` returns. Blocks.
    func opened<Failure: Error>(
        _ number: UInt32, idleMax: Int, open: () throws(Failure) -> LargeObject
    ) throws(Failure) -> LargeObject {
        if let object = opened(number) { return object }
        return try opening.withLock { _ throws(Failure) in
            if let object = opened(number) { return object }
            let object = try open()
            add(object, idleMax: idleMax)
            return object
        }
    }
}
