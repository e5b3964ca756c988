import EventLoop
import Framing
import Message
import Transaction

/// What is to be told of one request when it is over: to the log, and in part to the counters.
struct Account {
    enum Outcome: UInt8, CaseIterable {
        case none
        case hit, stale, revalidated, collapsed, miss, passed, refused, failed, tunnel, local

        /// The bytes were stored, or on their way already.
        var isFromCache: Bool {
            switch self {
            case .hit, .stale, .revalidated, .collapsed: true
            case .none, .miss, .passed, .refused, .failed, .tunnel, .local: false
            }
        }

        var text: StaticString {
            switch self {
            case .none: "none"
            case .hit: "hit"
            case .stale: "stale"
            case .revalidated: "revalidated"
            case .collapsed: "collapsed"
            case .miss: "miss"
            case .passed: "pass"
            case .refused: "refused"
            case .failed: "error"
            case .tunnel: "tunnel"
            case .local: "local"
            }
        }
    }

    /// Microseconds of the wall clock.
    var startedAt: Int64 = 0
    var bodyBytes = 0
    var status: UInt16 = 0
    var outcome: Outcome = .none
    var refusal: Refusal?
    var violation: FramingError?
    /// The client did not get the whole answer.
    var isBroken = false
    /// Why the connection closed, where it did so within the request.
    var closeReason: CloseReason?
    var isLogged = false

    init() {}

    /// Of a request that begins now.
    init(_ log: AccessLogBuffer) {
        if log.isOn { startedAt = AccessLogBuffer.microseconds() }
    }
}
