import CLarder
import Glibc

/// The attributes and file actions of a program that is about to be started (posix_spawn(3)).
///
/// The program has its own process group, no blocked signals, and SIGPIPE as a program expects it: this process ignores it.
@safe package struct ProgramStart: ~Copyable {
    private var actions = unsafe posix_spawn_file_actions_t()
    private var attributes = posix_spawnattr_t()

    package init() {
        unsafe posix_spawn_file_actions_init(&actions)
        unsafe posix_spawnattr_init(&attributes)
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigaddset(&signals, SIGPIPE)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
    }

    deinit {
        var (actions, attributes) = unsafe (actions, attributes)
        unsafe posix_spawn_file_actions_destroy(&actions)
        unsafe posix_spawnattr_destroy(&attributes)
    }

    /// The program's descriptor `own` is this process's descriptor `given`.
    package mutating func pass(_ given: CInt, as own: CInt) {
        unsafe posix_spawn_file_actions_adddup2(&actions, given, own)
    }

    /// The program's descriptor is `/dev/null`.
    package mutating func nullify(_ own: CInt) {
        unsafe posix_spawn_file_actions_addopen(&actions, own, "/dev/null", own == 0 ? O_RDONLY : O_WRONLY, 0)
    }

    /// Whatever this process has open from this descriptor on, the program has not.
    ///
    /// - Returns: 0, or the kernel's error number.
    package mutating func closeAll(from first: CInt) -> CInt { unsafe clarder_spawn_close_from(&actions, first) }

    /// What the program sees of the environment of this process.
    package enum Environment { case inherited, empty }

    /// Starts the program, which is found by PATH if its name has no slash.
    ///
    /// - Parameter words: the program and its arguments. Not empty.
    /// - Returns: the number of the process, and 0 or the kernel's error number.
    package mutating func start(_ words: [String], _ environment: Environment) -> (pid: CInt, error: CInt) {
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { unsafe arguments.forEach { unsafe free($0) } }
        var none: [UnsafeMutablePointer<CChar>?] = unsafe [nil]
        var pid: pid_t = 0
        let error: CInt
        switch environment {
        case .inherited:
            error = unsafe posix_spawnp(&pid, words[0], &actions, &attributes, &arguments, environ)
        case .empty: error = unsafe posix_spawnp(&pid, words[0], &actions, &attributes, &arguments, &none)
        }
        return (pid, error)
    }
}

/// The status with which a process ended (wait(2)).
package enum ProgramEnd: Equatable, Sendable {
    case exited(CInt)
    case killed(CInt)

    package init(_ status: CInt) {
        // The low seven bits are the signal that ended it.
        self = status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .killed(status & 0x7F)
    }
}

/// The milliseconds for poll(2) until a moment, at least one; nil if it has come.
package func pollTime(until deadline: ContinuousClock.Instant) -> CInt? {
    let rest = deadline - ContinuousClock.now
    guard rest > .zero else { return nil }
    return CInt(
        min(rest.components.seconds * 1000 + rest.components.attoseconds / 1_000_000_000_000_000 + 1, 60_000))
}
