internal import Disk

/// The bodies over large objects that somebody holds.
final class LargeBodies: @unchecked Sendable {
    private struct Entry { weak var body: Body? }
    private let lock = LockBank(count: 1)
    private var bodies: [ObjectID: Entry] = [:]
    private var sweepAt = 64

    func add(_ body: Body, _ id: ObjectID) { lock.withLock(0) { put(body, id) } }

    /// The one that is held, or a new one.
    func body(_ id: ObjectID, make: () throws(DiskReadError) -> Body?) throws(DiskReadError) -> Body? {
        if let known = lock.withLock(0, { bodies[id]?.body }) { return known }
        guard let made = try make() else { return nil }
        return lock.withLock(0) {
            // Of two that open it at once, the first has it.
            if let known = bodies[id]?.body { return known }
            put(made, id)
            return made
        }
    }

    private func put(_ body: Body, _ id: ObjectID) {
        if bodies.count >= sweepAt {
            bodies = bodies.filter { $0.value.body != nil }
            sweepAt = max(64, bodies.count * 2)
        }
        bodies[id] = Entry(body: body)
    }
}
