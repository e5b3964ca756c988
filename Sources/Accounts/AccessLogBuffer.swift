package import EventLoop
public import Forwarding
package import Framing
import Glibc
package import Message
import Transaction

/// Collects the access log lines of one worker, one JSON object for each request. Passes them to the sink when there are 64 KiB of
/// them, or after 200 ms.
@usableFromInline
package final class AccessLogBuffer {
    private let sink: AccessLogSink
    @usableFromInline package let isOn: Bool
    // A line is written by one call, which calls nothing of this class: the unchecked accesses are exclusive.
    @exclusivity(unchecked) private var lines: [UInt8] = []
    @exclusivity(unchecked) private var line: AccessLogLine
    @exclusivity(unchecked) @usableFromInline var lastID: RequestID
    /// Where scheme and authority of a request in a tunnel are put together.
    @exclusivity(unchecked) private var origin: [UInt8] = []
    private let loop: EventLoop
    private var timer: Timer?
    private var isScheduled = false
    private let counters: Counters
    private static let flushBytes = 64 << 10

    /// - Parameter worker: the number of the worker, from 0.
    package init(sink: AccessLogSink, counters: Counters, loop: EventLoop, worker: Int, ids: RequestIDText) {
        self.loop = loop
        unsafe lastID = RequestID(before: worker)
        unsafe line = AccessLogLine(ids)
        self.sink = sink
        self.counters = counters
        isOn = sink.isOn
        if isOn { unsafe lines.reserveCapacity(AccessLogBuffer.flushBytes * 2) }
    }

    package func start() {
        precondition(timer == nil, "a log starts once")
        timer = Timer { [unowned self] in
            isScheduled = false
            flush()
        }
    }

    package func stop() {
        if let timer { loop.timers.cancel(timer) }
        timer = nil
        flush()
    }

    package func flush() {
        guard unsafe !lines.isEmpty else { return }
        precondition(unsafe lines.last == 0x0A, "lines of two workers would run together")
        if unsafe !sink.submit(lines) { unsafe counters.add(.accessLogLinesDropped, lines.count { $0 == 0x0A }) }
        unsafe lines.removeAll(keepingCapacity: true)
    }

    /// The account of a request that begins now. The clock is not read if the log is off.
    @inlinable @inline(__always)
    package func opened() -> Account {
        unsafe lastID = lastID.next
        var account = unsafe Account(lastID)
        if isOn { account.startedAt = wallMicroseconds }
        return account
    }

    @usableFromInline var wallMicroseconds: Int64 { loop.wallMicroseconds }

    /// The time by which requests are measured. Nil if the log is off.
    package var now: MonotonicTime? { isOn ? loop.nowExactly : nil }

    // MARK: one line

    /// - Parameters:
    ///   - tunnel: the origin of the opened tunnel, for a request that may name no host.
    ///   - received: the target as received. Nil if it is that of the head.
    package func append(
        _ account: Account, head: LoggedHead, _ bytes: UnsafeBufferPointer<UInt8>, in tunnel: FixedOrigin? = nil,
        client: IPAddress?, listener: String?, user: String?, redirectedTo: [UInt8]? = nil, received: [UInt8]? = nil
    ) {
        let method = unsafe UnsafeBufferPointer(rebasing: bytes[head.methodRange])
        unsafe writeOrigin(of: head, bytes, tunnel)
        guard let target = unsafe AccessLogBuffer.targetWithCanonicalHost(head, bytes) else {
            // `*` behind an origin is the origin itself (RFC 9112 §3.2.4).
            let isBare = unsafe head.target.pathRange.isEmpty && !origin.isEmpty
            return unsafe append(
                account, method: method,
                target: UnsafeBufferPointer(rebasing: bytes[isBare ? 0..<0 : head.targetRange]),
                client: client, listener: listener, user: user, redirectedTo: redirectedTo, received: received)
        }
        unsafe target.withUnsafeBufferPointer {
            unsafe append(
                account, method: method, target: $0, client: client, listener: listener, user: user,
                redirectedTo: redirectedTo, received: received)
        }
    }

    /// Puts scheme and authority together for a request in an opened tunnel, whose target begins with the path or is `*`. Empty for all others.
    ///
    /// - Parameter tunnel: stands for a host that the request does not name.
    private func writeOrigin(
        of head: LoggedHead, _ bytes: UnsafeBufferPointer<UInt8>, _ tunnel: FixedOrigin?
    ) {
        unsafe origin.removeAll(keepingCapacity: true)
        var (target, host) = (head.target, head.target.hostRange)
        // `FixedOrigin` has completed the target with what the Host field names.
        guard target.form == .absolute else { return }
        if host.isEmpty {
            guard let tunnel else { return }
            (target.scheme, target.port) = (tunnel.scheme, tunnel.port)
        } else if head.targetRange.contains(host.lowerBound) {
            return
        }
        unsafe origin.append(target.scheme == .https ? "https://" : "http://")
        if host.isEmpty {
            unsafe origin.append(contentsOf: tunnel?.host ?? [])
        } else {
            unsafe appendNormalisedHost(bytes.span, host, to: &origin)
        }
        guard target.port != target.scheme.defaultPort else { return }
        unsafe origin.append(0x3A)
        unsafe appendDecimal(UInt64(target.port), to: &origin)
    }

    /// The target with the host as rules and keys have it: in lower case, without a dot at its end. Nil if it is so already, as nearly always.
    private static func targetWithCanonicalHost(
        _ head: LoggedHead, _ bytes: UnsafeBufferPointer<UInt8>
    ) -> [UInt8]? {
        let (target, host) = (head.targetRange, head.target.hostRange)
        // In origin-form the host is that of the Host field.
        guard !host.isEmpty, target.lowerBound <= host.lowerBound, host.upperBound <= target.upperBound else {
            return nil
        }
        // The parser leaves the dot out of the host.
        let hasDot = unsafe host.upperBound < target.upperBound && bytes[host.upperBound] == 0x2E
        var isCanonical = !hasDot
        for index in host where unsafe bytes[index] &- 0x41 < 26 { isCanonical = false }
        if isCanonical { return nil }
        var result = unsafe Array(bytes[target.lowerBound..<host.lowerBound])
        unsafe appendNormalisedHost(bytes.span, host, to: &result)
        unsafe result.append(contentsOf: bytes[(host.upperBound + (hasDot ? 1 : 0))..<target.upperBound])
        return result
    }

    /// For a message that broke the rules of HTTP/1.1.
    package func append(_ account: Account, violation: FramingError, client: IPAddress?, listener: String?) {
        var account = account
        account.violation = violation
        let none = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        unsafe append(account, method: none, target: none, client: client, listener: listener, user: nil)
    }

    /// For a connection that ended before it had carried a request.
    package func append(_ account: Account, client: IPAddress?, listener: String?) {
        let none = unsafe UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        unsafe append(account, method: none, target: none, client: client, listener: listener, user: nil)
    }

    private func append(
        _ account: Account, method: UnsafeBufferPointer<UInt8>, target: UnsafeBufferPointer<UInt8>,
        client: IPAddress?, listener: String?, user: String?, redirectedTo: [UInt8]? = nil, received: [UInt8]? = nil
    ) {
        var facts = AccessLogLine.Facts()
        facts.startedAt = account.startedAt
        if let begunAt = account.begunAt, let now, now > begunAt {
            facts.microseconds = (now.nanoseconds &- begunAt.nanoseconds) / 1000
        }
        facts.id = account.id
        facts.tunnel = account.tunnel
        facts.client = client
        facts.user = user
        facts.listener = listener
        facts.isSocks = account.isSocks
        facts.status = account.status
        facts.bodyBytes = account.bodyBytes
        facts.outcome = account.outcome.name
        if account.hasParticulars || redirectedTo != nil || received != nil {
            facts.particulars = AccessLogBuffer.particulars(of: account, redirectedTo: redirectedTo)
            facts.particulars?.received = received
        }
        unsafe line.append(facts, method: method.span, origin: origin.span, target: target.span, to: &lines)
        unsafe origin.removeAll(keepingCapacity: true)
        counters.add(.accessLogLines)
        if unsafe lines.count >= AccessLogBuffer.flushBytes { return flush() }
        guard !isScheduled, let timer else { return }
        isScheduled = true
        loop.timers.schedule(timer, after: .milliseconds(200))
    }

    private static func particulars(of account: Account, redirectedTo: [UInt8]?) -> AccessLogLine.Particulars {
        var result = AccessLogLine.Particulars()
        result.reason = account.violation?.reason ?? account.refusal?.name
        result.denial = account.denial?.rawValue
        result.denialRule = Int(account.denialRule)
        result.reported = account.reported.indices.map { Int(account.reported[$0]) }.filter { $0 > 0 }
        result.redirectedTo = redirectedTo
        result.isUnverified = account.isUnverified
        result.isBroken = account.isBroken
        if account.isBroken || account.status == 0 {
            result.closeReason = account.closeReason?.name ?? account.tunnelBreak?.rawValue
        }
        return result
    }
}
