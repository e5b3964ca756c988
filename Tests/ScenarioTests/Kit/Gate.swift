import Foundation

/// A gate that is opened once and lets all waiting threads pass. Scenarios use it in place of sleeping.
final class Gate: Sendable {
    private let name: String
    nonisolated(unsafe) private var isOpen = false
    private let condition = NSCondition()

    init(_ name: String = "gate") { self.name = name }

    func open() {
        condition.withLock {
            unsafe isOpen = true
            condition.broadcast()
        }
    }

    func wait() throws {
        let deadline = Date(timeIntervalSinceNow: Double(patience) / 1000)
        try condition.withLock {
            while unsafe !isOpen {
                guard condition.wait(until: deadline) else { throw WireError("\(name) was not opened in time") }
            }
        }
    }
}
