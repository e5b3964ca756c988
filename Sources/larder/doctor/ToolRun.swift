import CLarder
import ClientSetup
import Glibc
import Provisioning

/// The end of a program that was run with a time limit.
struct ToolOutcome {
    var output: String
    var timedOut: Bool
}

/// Runs a probe to its end, in a directory of its own, which is removed afterwards. Blocks.
///
/// Returns nil if the program cannot be started. A script whose interpreter is missing cannot.
///
/// The program has the environment of doctor, since that is what is tested, and a process group, so that what it starts ends with it.
func runTool(_ probe: ToolProbe, in directory: String) -> ToolOutcome? {
    for (name, text) in probe.files {
        guard case .some = writeText(text, to: "\(directory)/\(name)") else {
            return ToolOutcome(output: "\(directory)/\(name) cannot be written", timedOut: false)
        }
    }
    let log = "\(directory)/.output"
    guard let pid = spawn(probe, in: directory, log: log) else { return nil }
    let timedOut = !waitForEnd(of: pid, seconds: 60)
    return ToolOutcome(output: text(of: log), timedOut: timedOut)
}

private func writeText(_ text: String, to path: String) -> Void? {
    do throws(FileError) {
        return try replaceFile(path, with: Array(text.utf8))
    } catch { return nil }
}

private func text(of path: String) -> String {
    do throws(FileError) {
        return String(decoding: try readFile(path), as: UTF8.self)
    } catch { return "" }
}

private func spawn(_ probe: ToolProbe, in directory: String, log: String) -> pid_t? {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
    unsafe clarder_spawn_in_directory(&actions, directory)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    // SIGPIPE is ignored in this process, and would be in the tool.
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe sigaddset(&signals, SIGPIPE)
    unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))

    let variables = processEnvironment().merging(probe.environment) { $1 }.map { "\($0.key)=\($0.value)" }
    var argv: [UnsafeMutablePointer<CChar>?] = unsafe probe.words.map { unsafe strdup($0) } + [nil]
    var envp: [UnsafeMutablePointer<CChar>?] = unsafe variables.map { unsafe strdup($0) } + [nil]
    defer { unsafe (argv + envp).forEach { unsafe free($0) } }
    var pid: pid_t = 0
    guard unsafe posix_spawnp(&pid, probe.words[0], &actions, &attributes, &argv, &envp) == 0 else { return nil }
    return pid
}

/// Waits for the end of a process. If it does not end in time, ends it and its group, and returns false.
private func waitForEnd(of pid: pid_t, seconds: Int) -> Bool {
    let deadline = ContinuousClock.now + .seconds(seconds)
    var status: CInt = 0
    while unsafe waitpid(pid, &status, WNOHANG) == 0 {
        guard ContinuousClock.now < deadline else {
            _ = kill(-pid, SIGKILL)
            while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
            return false
        }
        usleep(5000)
    }
    // What it left behind, such as a daemon, must not write into a directory that is removed.
    _ = kill(-pid, SIGKILL)
    return true
}

/// The variables of this process.
func processEnvironment() -> [String: String] {
    var result: [String: String] = [:]
    var entry = unsafe environ
    while let line = unsafe entry.pointee {
        let text = unsafe String(cString: line)
        if let equals = text.firstIndex(of: "=") {
            result[String(text[..<equals])] = String(text[text.index(after: equals)...])
        }
        unsafe entry += 1
    }
    return result
}

/// Where a program is, by PATH. Nil if it is not installed.
func findProgram(_ name: String, path: String) -> String? {
    for directory in path.split(separator: ":") {
        let place = "\(directory)/\(name)"
        var status = stat()
        guard unsafe stat(place, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
        if unsafe access(place, X_OK) == 0 { return place }
    }
    return nil
}
