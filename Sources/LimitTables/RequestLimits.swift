package import EventLoop
package import Limiting

/// The buckets of one request, or of all like it on a connection. It belongs to one worker; the buckets are shared.
package final class RequestLimits {
    /// A bucket, and what the rule says of it.
    private struct Share {
        let account: LimitAccount
        let terms: LimitTerms
        let pace: PacedRate?
    }
    private let shares: [Share]
    /// Whether bytes are held to a rate.
    let isPaced: Bool
    /// Whether bytes of a tunnel may end it.
    let hasBudget: Bool
    /// The longest body of a response, in bytes. Nil: there is no limit.
    let responseBodyMax: UInt64?

    package init(_ uses: [LimitUse], _ table: LimitTable, now: UInt64) {
        shares = uses.map { use in
            Share(
                account: table.account(of: use.bucket, now: now), terms: use.terms,
                pace: use.terms.bandwidth.map { PacedRate($0) })
        }
        isPaced = shares.contains { $0.pace != nil }
        hasBudget = shares.contains { $0.terms.budget != nil }
        responseBodyMax = shares.compactMap(\.terms.responseBody).min()
    }

    // MARK: a request that is decided about

    /// Counts a request and gives it its places.
    ///
    /// - Returns: the limit that it has met. Nothing is counted then.
    ///
    /// - Parameter wall: seconds since 1970.
    package func admit(now: UInt64, wall: Int64) -> Result<HeldLimits, LimitRefusal> {
        for (index, share) in shares.enumerated() {
            guard let figure = met(share, now: now, wall: wall) else { continue }
            for earlier in shares[..<index] { giveBack(earlier) }
            share.account.noteRefusal(by: figure.figure)
            return .failure(LimitRefusal(excess: LimitExcess(share.account.bucket, figure.figure, wait: figure.wait)))
        }
        return .success(HeldLimits(self))
    }

    /// Takes token and place of one bucket. Returns what stands in the way; nothing is taken then.
    private func met(_ share: Share, now: UInt64, wall: Int64) -> (figure: LimitExcess.Figure, wait: UInt64?)? {
        if let budget = share.terms.budget, share.account.isSpent(budget, wall: wall) {
            return (.budget(budget), share.account.windowLeft(wall: wall))
        }
        if let rate = share.terms.requests, !share.account.take(rate, now: now) {
            return (.requests(rate), share.account.wait(rate, now: now))
        }
        if let count = share.terms.concurrent, !share.account.enter(limit: count) {
            if let rate = share.terms.requests { share.account.giveBack(rate) }
            return (.concurrent(count), 0)
        }
        return nil
    }

    private func giveBack(_ share: Share) {
        if let rate = share.terms.requests { share.account.giveBack(rate) }
        if share.terms.concurrent != nil { share.account.leave() }
    }

    // MARK: a hit that is answered within one callback

    /// The most bytes of a hit under a rate that go out at once.
    static let briefBytesMax = 64 << 10

    /// Counts a request that is answered at once. Returns false if it has to be decided about in full; nothing is counted then.
    package func countBrief(bytes: Int, now: UInt64, wall: Int64) -> Bool {
        if isPaced, bytes > RequestLimits.briefBytesMax { return false }
        if let responseBodyMax, UInt64(bytes) > responseBodyMax { return false }
        for index in shares.indices {
            let share = shares[index]
            let isFree =
                (share.terms.concurrent.map { share.account.hasRoom(limit: $0) } ?? true)
                && !(share.terms.budget.map { share.account.isSpent($0, wall: wall) } ?? false)
                && (share.pace.map { share.account.mayMove($0, now: now) } ?? true)
                && (share.terms.requests.map { share.account.take($0, now: now) } ?? true)
            guard isFree else {
                for earlier in shares[..<index] {
                    if let rate = earlier.terms.requests { earlier.account.giveBack(rate) }
                }
                return false
            }
        }
        return true
    }

    /// The hit goes another way, where it is counted again.
    package func uncountBrief() {
        for share in shares { if let rate = share.terms.requests { share.account.giveBack(rate) } }
    }

    /// A hit was answered with so many bytes of a body.
    package func payBrief(bytes: Int, now: UInt64, wall: Int64) {
        for share in shares {
            if let pace = share.pace { share.account.pay(pace, count: bytes, now: now) }
            RequestLimits.note(moved: bytes, share, wall: wall)
        }
    }

    /// Gives places to a hit that is not over with its callback. It has been counted already, and is let through in any case.
    package func enterAnyway() -> HeldLimits {
        for share in shares where share.terms.concurrent != nil { _ = share.account.enter(limit: .max) }
        return HeldLimits(self)
    }

    // MARK: for `HeldLimits`

    fileprivate func leave() { for share in shares where share.terms.concurrent != nil { share.account.leave() } }

    fileprivate func note(moved count: Int, wall: Int64) {
        for share in shares { RequestLimits.note(moved: count, share, wall: wall) }
    }

    private static func note(moved count: Int, _ share: Share, wall: Int64) {
        share.account.note(moved: count)
        if let budget = share.terms.budget, budget.countsDownloads { share.account.spend(budget, count, wall: wall) }
    }

    fileprivate func note(received count: Int, wall: Int64) {
        for share in shares {
            if let budget = share.terms.budget, budget.countsUploads { share.account.spend(budget, count, wall: wall) }
        }
    }

    fileprivate func isSpent(wall: Int64) -> Bool {
        shares.contains { share in share.terms.budget.map { share.account.isSpent($0, wall: wall) } ?? false }
    }

    /// The limit that a request of this size meets.
    fileprivate func excess(ofRequest head: Int, body: UInt64) -> LimitExcess? {
        for share in shares {
            if let bytes = share.terms.requestBody, body > bytes { return excess(.requestBody(bytes), share) }
            if let bytes = share.terms.requestSize,
                body.addingReportingOverflow(UInt64(head)).partialValue > bytes || body > bytes
            {
                return excess(.requestSize(bytes), share)
            }
        }
        return nil
    }

    fileprivate func excess(ofResponseBody body: UInt64) -> LimitExcess? {
        for share in shares {
            if let bytes = share.terms.responseBody, body > bytes { return excess(.responseBody(bytes), share) }
        }
        return nil
    }

    private func excess(_ figure: LimitExcess.Figure, _ share: Share) -> LimitExcess {
        share.account.noteRefusal(by: figure)
        return LimitExcess(share.account.bucket, figure, wait: nil)
    }

    /// Those with a rate, for a flow.
    fileprivate var paces: [(account: LimitAccount, rate: PacedRate)] {
        shares.compactMap { share in share.pace.map { (share.account, $0) } }
    }
}

/// Why a request is refused.
package struct LimitRefusal: Error { package let excess: LimitExcess }

/// The places that one request has in its buckets, until the last reference is released.
package final class HeldLimits {
    private let limits: RequestLimits
    private var brake: FlowBrake?

    fileprivate init(_ limits: RequestLimits) { self.limits = limits }

    deinit {
        brake?.stop()
        limits.leave()
    }

    // MARK: bytes of an answer

    /// How many bytes may be sent to the client now. If it is zero, `released` is called when there is room.
    package func room(on loop: EventLoop, released: @escaping () -> Void) -> Int {
        guard limits.isPaced else { return .max }
        if brake == nil {
            let made = FlowBrake(loop, LimitFlow(limits.paces))
            made.start(released: released)
            brake = made
        }
        return brake?.room() ?? .max
    }

    /// Bytes of the answer were sent.
    ///
    /// - Parameter wall: seconds since 1970.
    package func note(_ count: Int, at wall: Int64) {
        brake?.note(count)
        limits.note(moved: count, wall: wall)
    }

    /// The longest body of a response, in bytes.
    package var responseBodyMax: UInt64? { limits.responseBodyMax }

    /// The limit that a body of this length meets.
    package func excess(ofResponseBody body: UInt64) -> LimitExcess? { limits.excess(ofResponseBody: body) }

    // MARK: bytes of a request

    /// Bytes of the body of the request, or of a tunnel, came from the client.
    package func note(received count: Int, at wall: Int64) { limits.note(received: count, wall: wall) }

    /// The limit that a request of this size meets.
    package func excess(ofRequest head: Int, body: UInt64) -> LimitExcess? {
        limits.excess(ofRequest: head, body: body)
    }

    // MARK: a tunnel

    /// Decides when a tunnel may move bytes to the client, beside `other`. It notes them as well.
    package func pacer(beside other: (any FlowPacer)?) -> (any FlowPacer)? {
        limits.isPaced ? LimitFlow(limits.paces, beside: other) : other
    }

    /// Bytes of a tunnel went to the client.
    package func note(tunnelled count: Int, at wall: Int64) { limits.note(moved: count, wall: wall) }

    /// Whether a budget is spent. A response under way goes on, a tunnel ends.
    package func isSpent(at wall: Int64) -> Bool { limits.isSpent(wall: wall) }

    package var hasBudget: Bool { limits.hasBudget }
}

/// One flow of bytes towards a client under the rates of `limits.rules`.
private final class LimitFlow: FlowPacer {
    private let shares: [(account: LimitAccount, rate: PacedRate)]
    /// Another pacer, whose limits hold as well.
    private let other: (any FlowPacer)?
    /// Whether the flow has had to wait for each of them.
    private var hasWaited: [Bool]

    init(_ shares: [(account: LimitAccount, rate: PacedRate)], beside other: (any FlowPacer)? = nil) {
        precondition(!shares.isEmpty, "a flow without a rate has no pacer")
        self.shares = shares
        self.other = other
        hasWaited = shares.map { _ in false }
        for share in shares { share.account.beginFlow() }
    }

    func reserve(moved: Int, overdrawn: Int, now: MonotonicTime) -> (count: Int, from: MonotonicTime) {
        let before = other?.reserve(moved: moved, overdrawn: overdrawn, now: now)
        let count = before?.count ?? shares.map { $0.account.quantity($0.rate) }.min() ?? 1
        var from = before?.from ?? now
        for (index, share) in shares.enumerated() {
            let start = share.account.pay(share.rate, count: count, overdrawn: overdrawn, now: now.nanoseconds)
            if start > now.nanoseconds, !hasWaited[index] {
                hasWaited[index] = true
                share.account.noteDelay()
            }
            from = max(from, MonotonicTime(nanoseconds: start))
        }
        return (count, from)
    }

    func end(moved: Int, unused: Int, now: MonotonicTime) {
        other?.end(moved: moved, unused: unused, now: now)
        for share in shares {
            share.account.pay(share.rate, count: 0, overdrawn: -unused, now: now.nanoseconds)
            share.account.endFlow()
        }
    }
}
