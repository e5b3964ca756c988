import Foundation

/// What a test waited for did not come in time.
struct Missing: Error, CustomStringConvertible {
    var description: String
}

/// Asks until there is an answer.
func eventually<Value>(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(10), _ answer: () async throws -> Value?
) async throws -> Value {
    let deadline = ContinuousClock.now + limit
    while true {
        if let value = try await answer() { return value }
        guard ContinuousClock.now < deadline else { throw Missing(description: "waited \(limit) for: \(what())") }
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// Asks until it is so.
func eventually(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(10), _ holds: () async throws -> Bool
) async throws {
    _ = try await eventually(what(), within: limit) { try await holds() ? true : nil }
}

/// Lets a few in at a time.
actor Turnstile {
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) { free = count }

    func enter() async {
        if free > 0 {
            free -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty { free += 1 } else { waiting.removeFirst().resume() }
    }
}
