import CLarder
import Glibc

/// Why a helper did not do what it was asked.
package enum HelperFailure: Error, Equatable, Sendable {
    /// The kernel's error number.
    case system(CInt)
    /// It closed its end, which it does when it ends.
    case ended
    case timedOut
}

/// A program that works for this process, over a socket that is its standard input. It has nothing else of this process: no environment and no
/// other descriptor. When the object goes, the program and what it started are killed.
///
/// Its calls block, at most until the moment that they are given. One thread makes them; any may interrupt.
package final class HelperProcess: Sendable {
    package let pid: CInt
    private let socket: CInt

    /// - Parameter words: the program and its arguments.
    package init(_ words: [String]) throws(HelperFailure) {
        var ends: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw .system(errno) }
        defer { _ = close(ends[1]) }
        var start = ProgramStart()
        start.pass(ends[1], as: 0)
        start.nullify(1)
        start.nullify(2)
        var started: (pid: CInt, error: CInt) = (0, start.closeAll(from: 3))
        if started.error == 0 { started = start.start(words, .empty) }
        guard started.error == 0 else {
            _ = close(ends[0])
            throw .system(started.error)
        }
        pid = started.pid
        socket = ends[0]
    }

    deinit {
        _ = close(socket)
        _ = kill(-pid, SIGKILL)
        var status: CInt = 0
        while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
    }

    package func send(_ bytes: [UInt8], until deadline: ContinuousClock.Instant) throws(HelperFailure) {
        var sent = 0
        while sent < bytes.count {
            try waitFor(POLLOUT, until: deadline)
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.send(
                    socket, $0.baseAddress! + sent, $0.count - sent,
                    CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
            }
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count >= 0 else { throw errno == EPIPE || errno == ECONNRESET ? .ended : .system(errno) }
            sent += count
        }
    }

    /// Some bytes, at least one.
    package func receive(until deadline: ContinuousClock.Instant) throws(HelperFailure) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            try waitFor(POLLIN, until: deadline)
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(socket, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw count == 0 || errno == ECONNRESET ? .ended : .system(errno) }
            return Array(buffer[..<count])
        }
    }

    /// Ends what is going on: whoever waits for the helper finds that it has ended.
    package func interrupt() { _ = shutdown(socket, CInt(SHUT_RDWR)) }

    private func waitFor(_ events: CInt, until deadline: ContinuousClock.Instant) throws(HelperFailure) {
        while true {
            guard let time = pollTime(until: deadline) else { throw .timedOut }
            var entry = pollfd(fd: socket, events: Int16(events), revents: 0)
            let count = unsafe poll(&entry, 1, time)
            if count > 0 { return }
            guard count == 0 || errno == EINTR else { throw .system(errno) }
        }
    }
}
