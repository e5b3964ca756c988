import EventLoop
import Framing
import Glibc
package import Settings
import Message
import Synchronization
import Transaction

/// Writes the access log lines of all workers, on a thread of its own, because a write to a disk or a pipe can block.
package final class AccessLogSink: Sendable {
    private struct State {
        var queue: [[UInt8]] = []
        var bytes = 0
        var isStopping = false
        var reopen = false
    }
    private let state = Locked(State())
    private let signal: CountingSemaphore
    private let target: AccessLogTarget
    private let thread = Locked<OwnedThread?>(nil)
    /// Bytes that wait while the thread cannot keep up. Further lines are dropped and counted.
    private static let backlogBytesMax = 16 << 20

    package init(_ target: AccessLogTarget) {
        self.target = target
        signal = CountingSemaphore()
    }

    package var isOn: Bool { target != .off }

    package enum Failure: Error { case cannotOpen(path: String, errno: CInt) }

    package func start() throws {
        guard isOn else { return }
        let fd = try open()
        let handle = OwnedThread(try startThread(name: "larder-log") { [self] in write(to: fd) })
        thread.withLock { $0 = handle }
    }

    /// Throws what `start` would throw, without making the file.
    package static func check(_ target: AccessLogTarget) throws(Failure) {
        guard case .file(let path) = target, let code = obstacle(path, links: 0) else { return }
        throw .cannotOpen(path: path, errno: code)
    }

    /// The error with which a file cannot be opened for writing, or made.
    private static func obstacle(_ path: String, links: Int) -> CInt? {
        var status = stat()
        if unsafe stat(path, &status) == 0 {
            switch status.st_mode & S_IFMT {
            case S_IFDIR: return EISDIR
            case S_IFSOCK: return ENXIO
            default: return unsafe access(path, W_OK) == 0 ? nil : errno
            }
        }
        guard errno == ENOENT else { return errno }
        guard !path.hasSuffix("/") else { return EISDIR }
        // The file to which a link leads is made in its own directory.
        guard links < 40 else { return ELOOP }
        if let target = linkTarget(path) {
            let isWhole = target.hasPrefix("/")
            return obstacle(isWhole ? target : "\(FileCreation.directory(of: path))/\(target)", links: links + 1)
        }
        return FileCreation.obstacle(path)
    }

    /// Nil if the path is no symbolic link.
    private static func linkTarget(_ path: String) -> String? {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe target.withUnsafeMutableBytes { bytes in
            unsafe readlink(path, bytes.baseAddress!.assumingMemoryBound(to: CChar.self), bytes.count)
        }
        return count > 0 ? String(decoding: target.prefix(count), as: UTF8.self) : nil
    }

    private func open() throws(Failure) -> CInt {
        guard case .file(let path) = target else { return STDOUT_FILENO }
        let fd = unsafe Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
        guard fd >= 0 else { throw .cannotOpen(path: path, errno: errno) }
        return fd
    }

    /// Closes the file and opens it again by its name, for log rotation.
    package func reopen() {
        state.withLock { $0.reopen = true }
        signal.signal()
    }

    /// - Returns: false if the backlog is full; the lines are lost then.
    func submit(_ lines: [UInt8]) -> Bool {
        let accepted = state.withLock { state in
            guard state.bytes + lines.count <= AccessLogSink.backlogBytesMax else { return false }
            state.queue.append(lines)
            state.bytes += lines.count
            return true
        }
        signal.signal()
        return accepted
    }

    private func write(to first: CInt) {
        var fd = first
        while true {
            signal.wait()
            let (work, reopen, isStopping) = state.withLock { state in
                defer {
                    state.queue = []
                    state.bytes = 0
                    state.reopen = false
                }
                return (state.queue, state.reopen, state.isStopping)
            }
            for lines in work { AccessLogSink.writeAll(lines, to: fd) }
            if reopen, case .file = target {
                do {
                    let renewed = try open()
                    close(fd)
                    fd = renewed
                } catch { Diagnostics.warning("cannot open the access log again; writing to the old file") }
            }
            if isStopping && work.isEmpty { return }
        }
    }

    private static func writeAll(_ lines: [UInt8], to fd: CInt) {
        var rest = lines[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(fd, $0.baseAddress!, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                return
            }
        }
    }

    /// Writes the lines that wait, and ends the thread.
    package func stop() {
        state.withLock { $0.isStopping = true }
        signal.signal()
        signal.signal()
        thread.withLock { handle in
            handle?.join()
            handle = nil
        }
    }
}
