import CLarder
import Glibc
import Processes

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
    var start = ProgramStart()
    start.nullify(0)
    start.pass(ends[1], as: 1)
    let started = start.start(words, .inherited)
    _ = close(ends[1])
    guard started.error == 0 else { throw .system(started.error) }
    let deadline = ContinuousClock.now + timeout
    let output = collect(ends[0], bytesMax: bytesMax, until: deadline)
    let status = waitForEnd(of: started.pid, until: deadline)
    guard let output, let status else { throw .timedOut }
    switch ProgramEnd(status) {
    case .killed(let signal): throw .killed(signal)
    case .exited(0): break
    case .exited(let code): throw .exited(code)
    }
    let line = output.prefix { $0 != UInt8(ascii: "\n") }
    guard line.count <= bytesMax else { throw .tooLong }
    return Array(line)
}

/// What can be read up to the end, or a little more than `bytesMax`: the rest is read and forgotten, so that the program does not wait for a
/// reader. Returns nil if the time is over.
private func collect(_ fd: CInt, bytesMax: Int, until deadline: ContinuousClock.Instant) -> [UInt8]? {
    var output: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
        guard let time = pollTime(until: deadline) else { return nil }
        var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&entry, 1, time) > 0 else { continue }
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
