import CLarder
import Glibc

/// The first line that a program writes to its standard output. Blocks until the program has ended.
///
/// The program is found by PATH and has the environment and the standard error of this process, and no input. It is in a process group of its
/// own, which ends with it. A program that fails has no secret, whatever it wrote.
///
/// - Parameters:
///   - words: the program and its arguments. Not empty.
///   - timeout: beyond it, the program and what it started are ended.
package func readOutput(of words: [String], bytesMax: Int, timeout: Duration) throws(ReadFailure) -> [UInt8] {
    precondition(!words.isEmpty, "a command names its program")
    var ends: [CInt] = [-1, -1]
    let error = unsafe clarder_pipe_for_program(&ends)
    guard error == 0 else { throw .system(error) }
    defer { _ = close(ends[0]) }
    let started = spawn(words, output: ends[1])
    _ = close(ends[1])
    guard started.error == 0 else { throw .system(started.error) }
    let deadline = ContinuousClock.now + timeout
    let output = collect(ends[0], bytesMax: bytesMax, until: deadline)
    let status = waitForEnd(of: started.pid, until: deadline)
    guard let output, let status else { throw .timedOut }
    // The low seven bits are the signal that ended it (wait(2)).
    guard status & 0x7F == 0 else { throw .killed(status & 0x7F) }
    guard status >> 8 & 0xFF == 0 else { throw .exited(status >> 8 & 0xFF) }
    let line = output.prefix { $0 != UInt8(ascii: "\n") }
    guard line.count <= bytesMax else { throw .tooLong }
    return Array(line)
}

private func spawn(_ words: [String], output: CInt) -> (pid: pid_t, error: CInt) {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, output, 1)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // SIGPIPE is ignored in this process, and would be in the program. Signals that a thread blocks would stay blocked.
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe posix_spawnattr_setsigmask(&attributes, &signals)
    unsafe sigaddset(&signals, SIGPIPE)
    unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
    var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe arguments.forEach { unsafe free($0) } }
    var pid: pid_t = 0
    let error = unsafe posix_spawnp(&pid, words[0], &actions, &attributes, &arguments, environ)
    return (pid, error)
}

/// What can be read up to the end, or a little more than `bytesMax`: the rest is read and forgotten, so that the program does not wait for a
/// reader. Returns nil if the time is over.
private func collect(_ fd: CInt, bytesMax: Int, until deadline: ContinuousClock.Instant) -> [UInt8]? {
    var output: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
        let rest = deadline - ContinuousClock.now
        guard rest > .zero else { return nil }
        var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        let milliseconds = min(
            rest.components.seconds * 1000 + rest.components.attoseconds / 1_000_000_000_000_000 + 1, 60_000)
        guard unsafe poll(&entry, 1, CInt(milliseconds)) > 0 else { continue }
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(fd, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        if count <= 0 { return output }
        if output.count <= bytesMax { output += buffer[..<count] }
    }
}

/// The status of the process (wait(2)). Returns nil if the process did not end in time. Ends it and what it started.
private func waitForEnd(of pid: pid_t, until deadline: ContinuousClock.Instant) -> CInt? {
    var status: CInt = 0
    while true {
        let found = unsafe waitpid(pid, &status, WNOHANG)
        if found == pid { break }
        if ContinuousClock.now >= deadline {
            _ = kill(-pid, SIGKILL)
            while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
            return nil
        }
        usleep(1000)
    }
    _ = kill(-pid, SIGKILL)
    return status
}
