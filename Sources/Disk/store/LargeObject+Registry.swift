import EventLoop

/// The large objects that are there, by the number of their file, and those of them that are open: of one file there
/// is one `LargeObject` at a time, because it has the table of blocks.
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
        /// Held open for the next who reads: a ring.
        var idle: [LargeObject] = []
    }
    private let state = Locked(State())
    /// Held while a file is opened, by threads that may block: so that it is opened once.
    private let opening = Locked(())

    /// It is in the index.
    func add(_ number: UInt32, _ hash: UInt64, _ id: ObjectID) {
        state.withLock { $0.known[number] = Known(hash: hash, id: id) }
    }

    /// It is not in the index any more. Who holds it reads on.
    func forget(_ number: UInt32) {
        let idle = state.withLock { state -> LargeObject? in
            state.known[number] = nil
            state.opened[number] = nil
            guard let at = state.idle.firstIndex(where: { $0.place.segment == number }) else { return nil }
            return state.idle.remove(at: at)
        }
        _ = idle  // let go outside of the lock
    }

    /// The store has ended: lets go of those that nobody reads. They hold what the store was made of, and their files.
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

    /// It is open from now on.
    func add(_ object: LargeObject, idleMax: Int) {
        let number = object.place.segment
        let gone = state.withLock { state -> LargeObject? in
            state.opened[number] = WeakObject(object: object)
            if state.opened.count > 4 * (idleMax + 16) {
                state.opened = state.opened.filter { $0.value.object != nil }
            }
            state.idle.append(object)
            return state.idle.count > idleMax ? state.idle.removeFirst() : nil
        }
        _ = gone
    }

    /// The one that is open, or what `open` gives. Blocks.
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
