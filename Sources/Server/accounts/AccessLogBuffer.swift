import EventLoop
import Forwarding
import Framing
import Glibc
import Message
import Transaction

/// Collects the access log lines of one worker, one JSON object for each request. Passes them to the sink when there are 64 KiB of
/// them, or after 200 ms.
package final class AccessLogBuffer {
    private let sink: AccessLogSink
    let isOn: Bool
    private var lines: [UInt8] = []
    private var line = AccessLogLine()
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
        precondition(timer == nil, "a log starts once")
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
        precondition(lines.last == 0x0A, "lines of two workers would run together")
        if !sink.submit(lines) { counters.add(.accessLogLinesDropped, lines.count { $0 == 0x0A }) }
        lines.removeAll(keepingCapacity: true)
    }

    static func microseconds() -> Int64 {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    // MARK: one line

    /// - Parameter redirectedTo: the URI where redirects led that Larder followed. Nil if it followed none.
    func append(_ account: Account, request: OwnedRequest, redirectedTo: [UInt8]? = nil) {
        unsafe request.bytes.withUnsafeBufferPointer {
            unsafe append(
                account, head: request.head, $0, client: request.client, user: request.identity?.name,
                redirectedTo: redirectedTo)
        }
    }

    func append(
        _ account: Account, head: RequestHead, _ bytes: UnsafeBufferPointer<UInt8>, client: IPAddress?, user: String?,
        redirectedTo: [UInt8]? = nil
    ) {
        let method = unsafe UnsafeBufferPointer(rebasing: bytes[head.methodRange])
        guard let target = unsafe AccessLogBuffer.targetWithCanonicalHost(head, bytes) else {
            return unsafe append(
                account, method: method, target: UnsafeBufferPointer(rebasing: bytes[head.targetRange]),
                client: client, user: user, redirectedTo: redirectedTo)
        }
        unsafe target.withUnsafeBufferPointer {
            unsafe append(
                account, method: method, target: $0, client: client, user: user, redirectedTo: redirectedTo)
        }
    }

    /// The target with the host as rules and keys have it: in lower case, without a dot at its end. Nil if it is so already, as nearly always.
    private static func targetWithCanonicalHost(
        _ head: RequestHead, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> [UInt8]? {
        let (target, host) = (head.targetRange, head.target.hostRange)
        // In origin-form the host is that of the Host field.
        guard !host.isEmpty, target.lowerBound <= host.lowerBound, host.upperBound <= target.upperBound else {
            return nil
        }
        var isCanonical = unsafe bytes[host.upperBound - 1] != 0x2E
        for index in host where unsafe bytes[index] &- 0x41 < 26 { isCanonical = false }
        if isCanonical { return nil }
        var result = unsafe Array(bytes[target.lowerBound..<host.lowerBound])
        unsafe appendNormalisedHost(bytes.span, host, to: &result)
        unsafe result.append(contentsOf: bytes[host.upperBound..<target.upperBound])
        return result
    }

    /// For a message that broke the rules of HTTP/1.1.
    func append(_ account: Account, violation: FramingError, client: IPAddress?) {
        var account = account
        account.violation = violation
        let none = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        unsafe append(account, method: none, target: none, client: client, user: nil)
    }

    /// For a connection that ended before it had carried a request.
    func append(_ account: Account, client: IPAddress?) {
        let none = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        unsafe append(account, method: none, target: none, client: client, user: nil)
    }

    private func append(
        _ account: Account, method: UnsafeBufferPointer<UInt8>, target: UnsafeBufferPointer<UInt8>,
        client: IPAddress?, user: String?, redirectedTo: [UInt8]? = nil
    ) {
        var facts = AccessLogLine.Facts()
        facts.startedAt = account.startedAt
        facts.endedAt = AccessLogBuffer.microseconds()
        facts.client = client
        facts.user = user
        facts.status = account.status
        facts.bodyBytes = account.bodyBytes
        facts.outcome = account.outcome.name
        facts.reason = account.violation?.reason ?? account.refusal?.name
        facts.denial = account.denial?.rawValue
        facts.denialRule = Int(account.denialRule)
        facts.redirectedTo = redirectedTo
        facts.isUnverified = account.isUnverified
        facts.isBroken = account.isBroken
        if account.isBroken || account.status == 0 { facts.closeReason = account.closeReason?.name }
        unsafe line.append(facts, method: method.span, target: target.span, to: &lines)
        counters.add(.accessLogLines)
        if lines.count >= AccessLogBuffer.flushBytes { return flush() }
        guard !isScheduled, let timer, let loop else { return }
        isScheduled = true
        loop.timers.schedule(timer, after: .milliseconds(200))
    }
}
