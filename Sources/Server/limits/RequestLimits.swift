import EventLoop
import Limiting

/// The buckets of one request, or of all like it on a connection. It belongs to one worker; the buckets are shared.
final class RequestLimits {
    /// A bucket, and what the rule says of it.
    private struct Share {
        let account: LimitAccount
        let terms: LimitTerms
        let pace: PacedRate?
    }
    private let shares: [Share]
    /// Whether bytes are held to a rate.
    let isPaced: Bool

    init(_ uses: [LimitUse], _ table: LimitTable, now: UInt64) {
        shares = uses.map { use in
            Share(
                account: table.account(of: use.bucket, now: now), terms: use.terms,
                pace: use.terms.bandwidth.map { PacedRate($0) })
        }
        isPaced = shares.contains { $0.pace != nil }
    }

    // MARK: a request that is decided about

    /// Counts a request and gives it its places.
    ///
    /// - Returns: the limit that it has met. Nothing is counted then.
    func admit(now: UInt64) -> Result<HeldLimits, LimitRefusal> {
        for (index, share) in shares.enumerated() {
            guard let figure = met(share, now: now) else { continue }
            for earlier in shares[..<index] { giveBack(earlier) }
            share.account.noteRefusal()
            return .failure(LimitRefusal(excess: LimitExcess(share.account.bucket, figure.figure, wait: figure.wait)))
        }
        return .success(HeldLimits(self))
    }

    /// Takes token and place of one bucket. Returns what stands in the way; nothing is taken then.
    private func met(_ share: Share, now: UInt64) -> (figure: LimitExcess.Figure, wait: UInt64)? {
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
    func countBrief(bytes: Int, now: UInt64) -> Bool {
        if isPaced, bytes > RequestLimits.briefBytesMax { return false }
        for index in shares.indices {
            let share = shares[index]
            let isFree =
                (share.terms.concurrent.map { share.account.hasRoom(limit: $0) } ?? true)
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
    func uncountBrief() { for share in shares { if let rate = share.terms.requests { share.account.giveBack(rate) } } }

    /// A hit was answered with so many bytes of a body.
    func payBrief(bytes: Int, now: UInt64) {
        for share in shares {
            if let pace = share.pace { share.account.pay(pace, count: bytes, now: now) }
            share.account.note(moved: bytes)
        }
    }

    /// Gives places to a hit that is not over with its callback. It has been counted already, and is let through in any case.
    func enterAnyway() -> HeldLimits {
        for share in shares where share.terms.concurrent != nil { _ = share.account.enter(limit: .max) }
        return HeldLimits(self)
    }

    // MARK: for `HeldLimits`

    fileprivate func leave() { for share in shares where share.terms.concurrent != nil { share.account.leave() } }

    fileprivate func note(moved count: Int) { for share in shares { share.account.note(moved: count) } }

    /// Those with a rate, for a flow.
    fileprivate var paces: [(account: LimitAccount, rate: PacedRate)] {
        shares.compactMap { share in share.pace.map { (share.account, $0) } }
    }
}

/// Why a request is refused.
struct LimitRefusal: Error { let excess: LimitExcess }

/// The places that one request has in its buckets, until the last reference is released.
final class HeldLimits {
    private let limits: RequestLimits
    private var brake: FlowBrake?

    fileprivate init(_ limits: RequestLimits) { self.limits = limits }

    deinit {
        brake?.stop()
        limits.leave()
    }

    // MARK: bytes of an answer

    /// How many bytes may be sent to the client now. If it is zero, `released` is called when there is room.
    func room(on loop: EventLoop, released: @escaping () -> Void) -> Int {
        guard limits.isPaced else { return .max }
        if brake == nil {
            let made = FlowBrake(loop, LimitFlow(limits.paces))
            made.start(released: released)
            brake = made
        }
        return brake?.room() ?? .max
    }

    /// Bytes of the answer were sent.
    func note(_ count: Int) {
        brake?.note(count)
        limits.note(moved: count)
    }

    // MARK: a tunnel

    /// Decides when a tunnel may move bytes to the client, beside `other`. It notes them as well.
    func pacer(beside other: (any FlowPacer)?) -> (any FlowPacer)? {
        limits.isPaced ? LimitFlow(limits.paces, beside: other) : other
    }

    /// Bytes of a tunnel went to the client.
    func note(tunnelled count: Int) { limits.note(moved: count) }
}

/// One flow of bytes towards a client under the rates of `limits.rules`.
private final class LimitFlow: FlowPacer {
    private let shares: [(account: LimitAccount, rate: PacedRate)]
    /// Another pacer, whose limits hold as well.
    private let other: (any FlowPacer)?

    init(_ shares: [(account: LimitAccount, rate: PacedRate)], beside other: (any FlowPacer)? = nil) {
        precondition(!shares.isEmpty, "a flow without a rate has no pacer")
        self.shares = shares
        self.other = other
        for share in shares { share.account.beginFlow() }
    }

    func reserve(moved: Int, overdrawn: Int, now: MonotonicTime) -> (count: Int, from: MonotonicTime) {
        let before = other?.reserve(moved: moved, overdrawn: overdrawn, now: now)
        let count = before?.count ?? shares.map { $0.account.quantity($0.rate) }.min() ?? 1
        var from = before?.from ?? now
        for share in shares {
            let start = share.account.pay(share.rate, count: count, overdrawn: overdrawn, now: now.nanoseconds)
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
