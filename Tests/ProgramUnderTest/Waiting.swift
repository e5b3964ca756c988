import Foundation
import Glibc

/// Runs bodies on threads of their own, and waits for all of them.
package func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for number in 0..<count {
        group.enter()
        Thread.detachNewThread {
            body(number)
            group.leave()
        }
    }
    group.wait()
}

/// Runs a body that blocks on a thread of its own, and not on one of those that all tests share.
package func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

/// Asks every few milliseconds until there is an answer. Blocks.
package func eventually<Value>(
    _ what: @autoclosure () -> String, within seconds: Double = 20, _ answer: () throws -> Value?
) throws -> Value {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
        if let value = try answer() { return value }
        guard ContinuousClock.now < deadline else {
            throw Failure(description: "waited \(seconds) s for: \(what())")
        }
        usleep(2000)
    }
}

/// Makes a directory of the test's own below /tmp. The test removes it.
package func makeTemporaryDirectory(_ name: String) throws -> String {
    var template = Array("/tmp/\(name)-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Failure(description: "mkdtemp: errno \(errno)") }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
