import EventLoop
import Framing
import Glibc
package import Settings
import Message
import Synchronization
import Transaction

/// Where the lines of all workers go: a thread of its own writes them, since a disk or a pipe may block.
package final class AccessLogSink: Sendable {
    private struct State {
        var queue: [[UInt8]] = []
        var bytes = 0
        var isStopping = false
        var reopen = false
    }
    private let state = Mutex(State())
    private let signal: Semaphore
    private let target: AccessLogTarget
    private let thread = Mutex<OwnedThread?>(nil)
    /// Held for a writer that does not keep up; beyond, lines are dropped and counted.
    private static let backlogBytesMax = 16 << 20

    package init(_ target: AccessLogTarget) {
        self.target = target
        signal = Semaphore()
    }

    package var isOn: Bool { target != .off }

    package enum Failure: Error { case cannotOpen(path: String, errno: CInt) }

    package func start() throws {
        guard isOn else { return }
        let fd = try open()
        let handle = OwnedThread(try startThread(name: "larder-log") { [self] in write(to: fd) })
        thread.withLock { $0 = handle }
    }

    private func open() throws(Failure) -> CInt {
        guard case .file(let path) = target else { return STDOUT_FILENO }
        let fd = unsafe Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o640)
        guard fd >= 0 else { throw .cannotOpen(path: path, errno: errno) }
        return fd
    }

    /// The file is closed and opened again by its name (log rotation).
    package func reopen() {
        state.withLock { $0.reopen = true }
        signal.signal()
    }

    /// - Returns: false where the backlog is full and the lines are lost.
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
                } catch { Diagnostics.warning("the access log could not be opened again; the old file goes on") }
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

    /// Writes what is there and ends the thread.
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

/// A POSIX semaphore.
@safe final class Semaphore: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<sem_t>
    init() {
        unsafe raw = .allocate(capacity: 1)
        _ = unsafe sem_init(raw, 0, 0)
    }
    deinit {
        _ = unsafe sem_destroy(raw)
        unsafe raw.deallocate()
    }
    func signal() { _ = unsafe sem_post(raw) }
    func wait() { while unsafe sem_wait(raw) != 0 && errno == EINTR {} }
}

/// The lines of one worker, gathered: one JSON object per request and line, handed on when there are many or after a
/// moment.
package final class AccessLogBuffer {
    private let sink: AccessLogSink
    let isOn: Bool
    private var lines: [UInt8] = []
    private weak var loop: EventLoop?
    private var timer: Timer?
    private var isScheduled = false
    private unowned let counters: Counters
    private static let flushBytes = 64 << 10

    init(sink: AccessLogSink, counters: Counters) {
        self.sink = sink
        self.counters = counters
        isOn = sink.isOn
        if isOn { lines.reserveCapacity(AccessLogBuffer.flushBytes * 2) }
    }

    func start(on loop: EventLoop) {
        self.loop = loop
        timer = Timer { [unowned self] in
            isScheduled = false
            flush()
        }
    }

    func stop() {
        if let timer { loop?.timers.cancel(timer) }
        timer = nil
        flush()
    }

    func flush() {
        guard !lines.isEmpty else { return }
        if !sink.submit(lines) { counters.add(.accessLogLinesDropped, lines.count { $0 == 0x0A }) }
        lines.removeAll(keepingCapacity: true)
    }

    static func microseconds() -> Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    // MARK: one line

    func append(_ account: Account, request: OwnedRequest) {
        unsafe request.bytes.withUnsafeBufferPointer {
            unsafe append(
                account, method: $0[request.head.methodRange], target: $0[request.head.targetRange],
                client: request.client, user: request.user)
        }
    }

    func append(_ account: Account, head: RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, client: IPAddress?) {
        unsafe append(
            account, method: bytes[head.methodRange], target: bytes[head.targetRange], client: client, user: nil)
    }

    /// A message that was no request.
    func append(_ account: Account, violation: FramingError, client: IPAddress?) {
        var account = account
        account.violation = violation
        let none = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        unsafe append(account, method: none[...], target: none[...], client: client, user: nil)
    }

    private func append(
        _ account: Account, method: Slice<UnsafeBufferPointer<UInt8>>, target: Slice<UnsafeBufferPointer<UInt8>>,
        client: IPAddress?, user: String?
    ) {
        let now = AccessLogBuffer.microseconds()
        text("{\"time\":\"")
        time(account.startedAt)
        text("\",\"client\":\"")
        if let client { lines.append(contentsOf: client.description.utf8) } else { text("unix") }
        if let user {
            text("\",\"user\":\"")
            escaped(user.utf8)
        }
        text("\",\"method\":\"")
        unsafe escaped(method)
        text("\",\"uri\":\"")
        unsafe LogScrubbing.append(target) { byte in escape(byte) }
        text("\",\"status\":")
        number(Int64(account.status))
        text(",\"bytes\":")
        number(Int64(account.bodyBytes))
        text(",\"duration_us\":")
        number(max(0, now - account.startedAt))
        text(",\"outcome\":\"")
        text(account.outcome.text)
        text("\"")
        if let violation = account.violation {
            text(",\"reason\":\"")
            lines.append(contentsOf: violation.reason.utf8)
            text("\"")
        } else if let refusal = account.refusal {
            text(",\"reason\":\"")
            lines.append(contentsOf: refusal.name.utf8)
            text("\"")
        }
        if account.isBroken { text(",\"broken\":true") }
        text("}\n")
        counters.add(.accessLogLines)
        if lines.count >= AccessLogBuffer.flushBytes { return flush() }
        guard !isScheduled, let timer, let loop else { return }
        isScheduled = true
        loop.timers.schedule(timer, after: .milliseconds(200))
    }

    private func text(_ text: StaticString) { HeadWriter.append(text, to: &lines) }
    private func number(_ value: Int64) { HeadWriter.append(decimal: Int(value), to: &lines) }
    private func escaped(_ bytes: some Sequence<UInt8>) { for byte in bytes { escape(byte) } }

    private func escape(_ byte: UInt8) {
        switch byte {
        case 0x22: text("\\\"")
        case 0x5C: text("\\\\")
        case 0x20...0x7E: lines.append(byte)
        default:
            text("\\u00")
            lines.append(HeadWriter.hexDigit(byte >> 4))
            lines.append(HeadWriter.hexDigit(byte & 15))
        }
    }

    /// RFC 3339, UTC, milliseconds; the second is rendered once.
    private func time(_ microseconds: Int64) {
        let second = microseconds / 1_000_000
        if second != renderedSecond {
            renderedSecond = second
            rendered = AccessLogBuffer.render(second)
        }
        lines.append(contentsOf: rendered)
        let milliseconds = UInt8((microseconds / 1000) % 1000 / 100)
        lines.append(0x2E)
        lines.append(0x30 + milliseconds)
        lines.append(0x30 + UInt8((microseconds / 1000) % 100 / 10))
        lines.append(0x30 + UInt8((microseconds / 1000) % 10))
        lines.append(0x5A)
    }
    private var renderedSecond: Int64 = -1
    private var rendered: [UInt8] = []

    private static func render(_ second: Int64) -> [UInt8] {
        var seconds = time_t(second)
        var parts = unsafe tm()
        _ = unsafe gmtime_r(&seconds, &parts)
        func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let date = unsafe "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return unsafe Array("\(date)T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))".utf8)
    }
}

/// Keeps secrets that travel in URIs out of the log: the values of query parameters that are credentials by name.
enum LogScrubbing {
    /// Compared without regard to case.
    private static let secretNames = [
        "access_token", "api_key", "apikey", "auth", "code", "key", "passwd", "password", "secret", "sig", "signature",
        "token", "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-goog-signature",
    ].map { Array($0.utf8) }

    static func append(_ target: Slice<UnsafeBufferPointer<UInt8>>, _ put: (UInt8) -> Void) {
        guard let question = unsafe target.firstIndex(of: 0x3F) else { return unsafe target.forEach(put) }
        unsafe target[...question].forEach(put)
        var isFirst = true
        for unsafe parameter in unsafe target[target.index(after: question)...].split(
            separator: 0x26, omittingEmptySubsequences: false)
        {
            if !isFirst { put(0x26) }
            isFirst = false
            guard let equals = unsafe parameter.firstIndex(of: 0x3D), unsafe isSecret(parameter[..<equals]) else {
                unsafe parameter.forEach(put)
                continue
            }
            unsafe parameter[...equals].forEach(put)
            for byte in "***".utf8 { put(byte) }
        }
    }

    private static func isSecret(_ name: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        secretNames.contains { secret in
            unsafe secret.count == name.count && zip(secret, name).allSatisfy { $0 == $1 | 0x20 || $0 == $1 }
        }
    }
}
