/// The writes to the fleet's store that wait for their turn, in order. A node that writes faster than the store takes drops writes: a response that
/// is not shared is only a miss elsewhere.
package struct WaitingWrites<Write> {
    private var writes: [(write: Write, bytes: Int)] = []
    package private(set) var bytes = 0
    /// How many were dropped because too many waited.
    package private(set) var droppedCount: UInt64 = 0
    private let countMax: Int
    private let bytesMax: Int

    package static var countMaxDefault: Int { 64 }
    package static var bytesMaxDefault: Int { 16 << 20 }

    /// - Parameters:
    ///   - countMax: the most writes that wait, up to 64.
    ///   - bytesMax: the most bytes that they have together.
    package init(countMax: Int = Self.countMaxDefault, bytesMax: Int = Self.bytesMaxDefault) {
        precondition((1...Self.countMaxDefault).contains(countMax) && bytesMax > 0, "a queue has room, and a bound")
        self.countMax = countMax
        self.bytesMax = bytesMax
    }

    package var count: Int { writes.count }

    /// Adds a write behind the others, or drops and counts it.
    ///
    /// - Parameter bytes: what the write holds in memory.
    /// - Returns: whether the write waits.
    package mutating func add(_ write: Write, bytes: Int) -> Bool {
        precondition(bytes >= 0, "a write holds memory")
        guard count < countMax, bytes <= bytesMax - self.bytes else {
            droppedCount += 1
            return false
        }
        writes.append((write, bytes))
        self.bytes += bytes
        return true
    }

    /// Takes the write that has waited for longest. Returns nil if none waits.
    package mutating func next() -> Write? {
        guard !writes.isEmpty else { return nil }
        let (write, bytes) = writes.removeFirst()
        self.bytes -= bytes
        return write
    }

    /// Drops all writes, and counts them: the connection that they waited for is gone.
    package mutating func dropAll() {
        droppedCount += UInt64(writes.count)
        writes = []
        bytes = 0
    }
}

extension WaitingWrites: Sendable where Write: Sendable {}
