import Foundation
package import Glibc
import EventLoop

/// Something that a test could not do, or that did not happen in time.
package struct Failure: Error, CustomStringConvertible {
    package var description: String

    package init(description: String) { self.description = description }
}

/// A program that a test started. The kernel kills it when the test program ends, however that happens.
package final class Program: Sendable {
    package let pid: pid_t
    package let outPath: String
    package let errPath: String

    /// Starts a program.
    /// - Parameter logs: standard output and error are appended to `LOGS.out` and `LOGS.err`. Nil: they are dropped.
    package init(_ words: [String], logs: String?) throws {
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
        self.outcome = outcome
        guard pid > 0 else { throw Failure(description: "\(words): errno \(-pid)") }
    }

    private let outcome: Outcome
    private final class Outcome: Sendable {
        let pid = Locked<pid_t>(0)
        let status = Locked<Int32?>(nil)
        let ended = DispatchSemaphore(value: 0)
    }

    /// The exit status as a shell reports it: 128 + signal if a signal killed the program. Nil while it runs.
    package var exitStatus: Int32? { outcome.status.withLock { $0 } }

    package var isRunning: Bool { exitStatus == nil }

    package func signal(_ number: CInt) {
        // After the program was waited for, another process may have its number.
        outcome.status.withLock { if $0 == nil { _ = kill(pid, number) } }
    }

    /// Waits for the end of the program.
    /// - Returns: the exit status. Nil if the program did not end in time.
    package func end(within seconds: Double) -> Int32? {
        guard outcome.ended.wait(timeout: .now() + seconds) == .success else { return nil }
        outcome.ended.signal()
        return exitStatus
    }

    package var output: String { textOfFile(outPath) }
    package var errors: String { textOfFile(errPath) }
}

/// The text of a file. Empty if the file does not exist.
package func textOfFile(_ path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
}

/// - Returns: the number of the process, or −errno.
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

/// Waits for the end of a child process. Blocks.
/// - Returns: the exit status as a shell reports it, or −1 if there is no such child.
package func waitForEnd(_ pid: pid_t) -> Int32 {
    var status: Int32 = 0
    while unsafe waitpid(pid, &status, 0) < 0 {
        if errno != EINTR { return -1 }
    }
    let signal = status & 0x7F
    return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
}
