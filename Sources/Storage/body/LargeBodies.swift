/// The large bodies in use. All requests for one response share its body and its holes.
final class LargeBodies: @unchecked Sendable {
    private struct Entry { weak var body: Body? }
    private let lock = LockBank(count: 1)
    private var bodies: [StoredID: Entry] = [:]
    private var sweepAt = 64

    func add(_ body: Body, _ id: StoredID) { lock.withLock(0) { put(body, id) } }

    /// Returns the body in use, or the one that `make` makes.
    func body(_ id: StoredID, make: () throws(BackStoreReadError) -> Body) throws(BackStoreReadError) -> Body {
        if let known = lock.withLock(0, { bodies[id]?.body }) { return known }
        let made = try make()
        return lock.withLock(0) {
            // If two threads open the body at once, both use the first.
            if let known = bodies[id]?.body { return known }
            put(made, id)
            return made
        }
    }

    private func put(_ body: Body, _ id: StoredID) {
        if bodies.count >= sweepAt {
            bodies = bodies.filter { $0.value.body != nil }
            sweepAt = max(64, bodies.count * 2)
        }
        bodies[id] = Entry(body: body)
    }
}
