import Framing

/// The right to send heads in answer to one request: any number of interim heads, then one final head (RFC 9110 §15.2).
///
/// There is one for each request. It cannot be copied, and `begin` consumes it, so an interim head behind a final one is nothing that
/// has to be checked for: there is no value left to send it with. Heads are queued here; `ClientConnection.flush` sends them.
struct ResponseOpening: ~Copyable {
    private let session: ClientConnection

    init(_ session: ClientConnection) { self.session = session }

    borrowing func interim(_ head: (inout [UInt8]) -> Void) { session.queue(head) }

    consuming func begin(_ head: (inout [UInt8]) -> Void) -> BegunResponse {
        let interimBytes = session.unsentBytes
        session.answerBytesSent = 0
        session.queue(head)
        return BegunResponse(session, interimBytesUnsent: interimBytes)
    }
}

/// A response whose final head is queued or sent: from here on there is only its body.
struct BegunResponse: ~Copyable {
    private let session: ClientConnection
    /// Bytes of interim heads that were still queued when the final head joined them.
    private let interimBytesUnsent: Int

    fileprivate init(_ session: ClientConnection, interimBytesUnsent: Int) {
        precondition(interimBytesUnsent >= 0)
        self.session = session
        self.interimBytesUnsent = interimBytesUnsent
    }

    /// No byte of the final head has been sent.
    var isUnsent: Bool { session.answerBytesSent <= interimBytesUnsent }

    /// Drops the final head and whatever is queued behind it, so that another answer can take its place.
    consuming func takeBack() -> ResponseOpening {
        precondition(isUnsent, "bytes that the client has cannot be taken back")
        session.output.truncate(to: interimBytesUnsent - session.answerBytesSent)
        return ResponseOpening(session)
    }
}

/// How far the answer to one request is.
///
/// ```
/// awaiting ─begin─▶ begun ─end─▶ ended
///     ▲               │
///     └───takeBack────┘  while no byte of the final head has been sent
/// ```
enum AnswerState: ~Copyable {
    case awaiting(ResponseOpening)
    case begun(BegunResponse)
    /// The answer is complete, or the connection is no longer HTTP.
    case ended

    mutating func begin(_ head: (inout [UInt8]) -> Void) {
        switch consume self {
        case .awaiting(let opening): self = .begun(opening.begin(head))
        case .begun: preconditionFailure("a request gets one final response")
        case .ended: preconditionFailure("a request gets one final response")
        }
    }

    /// Returns false where bytes of the final head have been sent, or the answer has ended.
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
        case .ended:
            self = .ended
            return false
        }
    }
}
