import EventLoop
import Framing
import Message
import Transaction

/// What the access log and the counters are told about one request when it is over.
struct Account {
    /// Microseconds of the wall clock.
    var startedAt: Int64 = 0
    var bodyBytes = 0
    var status: UInt16 = 0
    var outcome: RequestOutcome = .none
    var refusal: Refusal?
    var violation: FramingError?
    /// The URI where redirects that Larder followed led. Nil if it followed none.
    var redirectedTo: [UInt8]?
    /// An origin was asked over TLS that did not prove who it is.
    var isUnverified = false
    /// The client did not get the whole answer.
    var isBroken = false
    /// Why the connection closed, if it closed within the request.
    var closeReason: CloseReason?
    var isLogged = false

    init() {}

    /// For a request that begins now.
    init(_ log: AccessLogBuffer) {
        if log.isOn { startedAt = AccessLogBuffer.microseconds() }
    }
}
