package import Access
package import EventLoop
public import Forwarding
package import Framing
package import Transaction

/// What the access log and the counters are told about one request when it is over.
///
/// Every request has one, so it has nothing that is counted or freed: a hit would pay for that.
@usableFromInline
package struct Account {
    /// Microseconds of the wall clock; 0 if nobody logs it.
    @usableFromInline package var startedAt: Int64 = 0
    /// When its exchange began. Nil for a request without one, which is answered in the turn in which it came, and where nobody logs it.
    package var begunAt: MonotonicTime?
    /// What everybody calls the request who speaks of it. That of no request as long as there has been none.
    @usableFromInline package var id = RequestID(number: 0)
    package var bodyBytes = 0
    /// The ID of the CONNECT in whose tunnel the request came. Nil outside of opened tunnels.
    package var tunnel: RequestID?
    package var status: UInt16 = 0
    package var outcome: RequestOutcome = .none
    package var refusal: Refusal?
    package var violation: FramingError?
    /// Why the rules denied the request, as exactly as its client may know it.
    package var denial: DenialReason?
    /// The number of the access rule that denied the request. 0: none, or one of more than 65,535.
    package var denialRule: UInt16 = 0
    /// The numbers of report-only rules that matched, those up to 65,535; 0: none.
    package var reported = SIMD4<UInt16>()
    /// An origin was asked over TLS that did not prove who it is.
    package var isUnverified = false
    /// The client asked for a tunnel with SOCKS.
    package var isSocks = false
    /// The client did not get the whole answer.
    package var isBroken = false
    /// Why the connection closed, if it closed within the request.
    package var closeReason: CloseReason?
    /// Which side of a tunnel broke it off.
    package var tunnelBreak: TunnelBreak?
    package var isLogged = false

    @inlinable
    package init() {}

    /// Whether the log says more than what it says of each request.
    var hasParticulars: Bool {
        refusal != nil || violation != nil || denial != nil || denialRule != 0 || isUnverified || isBroken
            || status == 0 || reported != SIMD4()
    }

    /// `AccessLogBuffer.opened` makes it.
    @inlinable
    init(_ id: RequestID) { self.id = id }
}
