import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Transaction

/// The lines of one worker, gathered: one JSON object per request and line, handed on when there are many or after a
/// moment.
package final class AccessLogBuffer {
    private let sink: AccessLogSink
    let isOn: Bool
    private var lines: [UInt8] = []
    private var loop: EventLoop?
    private var timer: Timer?
    private var isScheduled = false
    private let counters: Counters
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
                client: request.client, user: request.identity?.name)
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
