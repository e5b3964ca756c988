import Framing

/// Permission to send the heads that answer one request: any number of interim heads, then one final head (RFC 9110 §15.2).
///
/// Each request has exactly one. It cannot be copied, and `begin` consumes it, so no interim head can follow a final one: no value is
/// left to send it with. Heads are only queued here; `ClientConnection.flush` sends them.
@safe struct ResponseOpening: ~Copyable {
    /// The stream that holds this value holds the session.
    private unowned(unsafe) let session: ClientConnection

    init(_ session: ClientConnection) { unsafe self.session = session }

    /// Queues an interim head.
    borrowing func interim(_ head: (inout [UInt8]) -> Void) { unsafe session.queue(head) }

    /// Queues the final head. Interim heads may still be queued before it.
    consuming func begin(_ head: (inout [UInt8]) -> Void) -> BegunResponse {
        let session = unsafe session
        let interimBytes = session.unsentBytes
        session.answerBytesSent = 0
        session.queue(head)
        return BegunResponse(session, interimBytesUnsent: interimBytes)
    }
}

/// A response whose final head is queued or sent. Only its body may follow.
@safe struct BegunResponse: ~Copyable {
    /// The stream that holds this value holds the session.
    private unowned(unsafe) let session: ClientConnection
    /// Bytes of interim heads that were queued but not sent when the final head was queued behind them.
    private let interimBytesUnsent: Int

    fileprivate init(_ session: ClientConnection, interimBytesUnsent: Int) {
        precondition(interimBytesUnsent >= 0)
        unsafe self.session = session
        self.interimBytesUnsent = interimBytesUnsent
    }

    /// Whether no byte of the final head has been sent. `answerBytesSent` counts from the moment it was queued, interim heads included.
    var isUnsent: Bool { unsafe session.answerBytesSent <= interimBytesUnsent }

    /// Removes the final head and everything behind it from the queue, so that another answer can take its place. Interim heads stay.
    consuming func takeBack() -> ResponseOpening {
        precondition(isUnsent, "bytes that the client has cannot be taken back")
        let session = unsafe session
        session.output.truncate(to: interimBytesUnsent - session.answerBytesSent)
        return ResponseOpening(session)
    }
}

/// The state of the answer to one request.
///
/// ```
/// awaiting ─takeOpening─▶ beginning ─begin─▶ begun ─end─▶ ended
///     ▲                                        │
///     └────────────────takeBack────────────────┘  while no byte of the final head has been sent
/// ```
enum AnswerState: ~Copyable {
    case awaiting(ResponseOpening)
    /// The final head is being written.
    case beginning
    case begun(BegunResponse)
    /// The connection is no longer HTTP.
    case ended

    mutating func takeOpening() -> ResponseOpening {
        switch consume self {
        case .awaiting(let opening):
            self = .beginning
            return opening
        case .beginning: preconditionFailure("a request gets one final response")
        case .begun: preconditionFailure("a request gets one final response")
        case .ended: preconditionFailure("a request gets one final response")
        }
    }

    mutating func begin(_ response: consuming BegunResponse) {
        switch consume self {
        case .beginning: self = .begun(response)
        case .awaiting: preconditionFailure("a response begins with the opening that was taken for it")
        case .begun: preconditionFailure("a request gets one final response")
        case .ended: preconditionFailure("a request gets one final response")
        }
    }

    /// Makes room for another final head. Returns false if bytes of the present one have been sent, or if the answer has ended.
    mutating func takeBack() -> Bool {
        switch consume self {
        case .awaiting(let opening):
            self = .awaiting(opening)
            return true
        case .begun(let response):
            guard response.isUnsent else {
                self = .begun(response)
                return false
            }
            self = .awaiting(response.takeBack())
            return true
        case .beginning: preconditionFailure("a head that is being written is not taken back")
        case .ended:
            self = .ended
            return false
        }
    }
}
