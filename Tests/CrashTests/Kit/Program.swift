import Foundation
import Glibc
import Synchronization

/// What a test could not do, or waited for in vain.
struct Failure: Error, CustomStringConvertible {
    var description: String
}

/// A program that a test started. It dies with the test program, however that ends.
final class Program: Sendable {
    let pid: pid_t
    let outPath: String
    let errPath: String
    private let status: Mutex<Int32?>

    /// Starts a program; its standard output and error are appended to `LOGS.out` and `LOGS.err`; nil: they are lost.
    init(_ words: [String], logs: String?) throws {
        let outcome = Outcome()
        let isStarted = DispatchSemaphore(value: 0)
        let outPath = logs.map { "\($0).out" } ?? "/dev/null"
        let errPath = logs.map { "\($0).err" } ?? "/dev/null"
        self.outPath = outPath
        self.errPath = errPath
        // The kernel ties a child's death signal to the thread that started it, so that thread stays and waits.
        Thread.detachNewThread {
            let pid = spawn(["setpriv", "--pdeathsig", "KILL", "--"] + words, out: outPath, err: errPath)
            outcome.pid.withLock { $0 = pid }
            isStarted.signal()
            guard pid > 0 else { return }
            let status = waitForEnd(pid)
            outcome.status.withLock { $0 = status }
            outcome.ended.signal()
        }
        isStarted.wait()
        pid = outcome.pid.withLock { $0 }
        status = Mutex(nil)
        self.outcome = outcome
        guard pid > 0 else { throw Failure(description: "\(words): errno \(-pid)") }
    }

    private let outcome: Outcome
    private final class Outcome: Sendable {
        let pid = Mutex<pid_t>(0)
        let status = Mutex<Int32?>(nil)
        let ended = DispatchSemaphore(value: 0)
    }

    /// As a shell tells it: 128 + signal for who was killed; nil while it runs.
    var exitStatus: Int32? { outcome.status.withLock { $0 } }

    func signal(_ number: CInt) {
        // Once it was waited for, the number may be somebody else's.
        outcome.status.withLock { if $0 == nil { _ = kill(pid, number) } }
    }

    /// - Returns: its exit status; nil where it did not end in time.
    func end(within seconds: Double) -> Int32? {
        guard outcome.ended.wait(timeout: .now() + seconds) == .success else { return nil }
        outcome.ended.signal()
        return exitStatus
    }

    var output: String { textOfFile(outPath) }
    var errors: String { textOfFile(errPath) }
}

/// Empty where there is none.
func textOfFile(_ path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
}

/// - Returns: the process, or −errno.
private func spawn(_ words: [String], out: String, err: String) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    unsafe posix_spawn_file_actions_addopen(&actions, 2, err, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var argv: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe argv.forEach { unsafe free($0) } }
    var pid: pid_t = 0
    let code = unsafe posix_spawnp(&pid, words[0], &actions, &attributes, &argv, environ)
    return code == 0 ? pid : -code
}

private func waitForEnd(_ pid: pid_t) -> Int32 {
    var status: Int32 = 0
    while unsafe waitpid(pid, &status, 0) < 0 {
        if errno != EINTR { return -1 }
    }
    let signal = status & 0x7F
    return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
}

/// Runs bodies on threads of their own, and waits for all.
func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
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

/// Runs what blocks on a thread of its own, not on one of those that all tests share.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

/// Asks each few milliseconds until there is an answer. Blocks.
func eventually<Value>(
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

/// A directory of the test's own below /tmp, which it removes itself.
func makeTemporaryDirectory(_ name: String) throws -> String {
    var template = Array("/tmp/\(name)-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Failure(description: "mkdtemp: errno \(errno)") }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
