import EventLoop
import Foundation
import Glibc
import ProgramUnderTest

/// A program that was started for a test. It runs in a process group of its own, writes to files, and dies with the
/// test program, however that ends.
final class Child: Sendable {
    let name: String
    let pid: pid_t
    let outPath: String
    let errPath: String
    private let status: Outcome

    /// The exit status as a shell tells it: 128 + signal for who was killed.
    private final class Outcome: Sendable {
        let value = Locked<Int32?>(nil)
    }

    private init(name: String, pid: pid_t, out: String, err: String, status: Outcome) {
        self.name = name
        self.pid = pid
        outPath = out
        errPath = err
        self.status = status
    }

    /// What is to be started, and how.
    struct Order: Sendable {
        var program: String
        var arguments: [String]
        var environment: [String: String] = [:]
        var directory: String
        /// A file for standard input.
        var input: String = "/dev/null"
        /// Handed to the program as descriptor 3.
        var inherited: CInt?
        /// What the kernel sends it when the test program dies.
        var lastSignal = "KILL"
        /// Where `NAME.out` and `NAME.err` are written.
        var logs: String
    }

    static func start(_ order: Order) async throws -> Child {
        let outcome = Outcome()
        let pid: pid_t = await withCheckedContinuation { continuation in
            // The kernel ties a child's death signal to the thread that started it, so that thread stays and waits.
            Thread.detachNewThread {
                let pid = spawn(order)
                continuation.resume(returning: pid)
                guard pid > 0 else { return }
                outcome.value.withLock { $0 = nil }
                let status = waitForEnd(pid)
                outcome.value.withLock { $0 = status }
            }
        }
        guard pid > 0 else { throw Failure(description: "\(order.program): errno \(-pid)") }
        let name = (order.program as NSString).lastPathComponent
        return Child(name: name, pid: pid, out: "\(order.logs).out", err: "\(order.logs).err", status: outcome)
    }

    // MARK: its end

    var exitStatus: Int32? { status.value.withLock { $0 } }
    var isRunning: Bool { exitStatus == nil }

    func signal(_ number: CInt) {
        guard isRunning else { return }
        _ = kill(pid, number)
    }

    /// - Returns: its exit status.
    func end(within limit: Duration) async throws -> Int32 {
        try await eventually("\(name) ends; it said: \(errors)", within: limit) { self.exitStatus }
    }

    /// Asks, waits, then does not ask again. Takes whatever it started with it.
    func stop() async {
        if isRunning {
            _ = kill(-pid, SIGTERM)
            _ = try? await end(within: .seconds(5))
        }
        _ = kill(-pid, SIGKILL)
        _ = try? await end(within: .seconds(5))
    }

    // MARK: what it said

    var output: String { textOfFile(outPath) }
    var errors: String { textOfFile(errPath) }
}

/// - Returns: the process, or −errno.
private func spawn(_ order: Child.Order) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, order.input, O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 1, "\(order.logs).out", O_WRONLY | O_CREAT | O_APPEND, 0o600)
    unsafe posix_spawn_file_actions_addopen(&actions, 2, "\(order.logs).err", O_WRONLY | O_CREAT | O_APPEND, 0o600)
    if let fd = order.inherited { unsafe posix_spawn_file_actions_adddup2(&actions, fd, 3) }
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))

    let words =
        ["setpriv", "--pdeathsig", order.lastSignal, "--", "env", "-C", order.directory, order.program]
        + order.arguments
    var argv: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
    var envp: [UnsafeMutablePointer<CChar>?] =
        unsafe order.environment.map { unsafe strdup("\($0.key)=\($0.value)") } + [nil]
    defer { unsafe (argv + envp).forEach { unsafe free($0) } }
    var pid: pid_t = 0
    let code = unsafe posix_spawnp(&pid, "setpriv", &actions, &attributes, &argv, &envp)
    return code == 0 ? pid : -code
}
