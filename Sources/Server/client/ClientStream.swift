import EventLoop
import Forwarding
import Framing
import Message
import Storage

/// One request's way back to its client, and the only thing that an exchange knows of the connection.
///
/// With HTTP/1 a connection has one stream at a time and `ClientConnection` is its session. Another protocol brings a session of its own
/// and as many streams as it allows; exchanges do not change for it.
final class ClientStream {
    private let session: ClientConnection
    private let number: UInt32
    private var answer: AnswerState
    /// How the body of a response that is passed on is framed.
    private(set) var framing: ForwardedHead.Framing = .none

    init(_ session: ClientConnection, number: UInt32) {
        self.session = session
        self.number = number
        answer = .awaiting(ResponseOpening(session))
    }

    var worker: Worker { session.worker }

    /// Finds the exchange again from another thread's message, as long as it is under way.
    var address: Address { Address(connection: session.id, number: number) }

    struct Address: Sendable {
        let connection: ConnectionID
        let number: UInt32
    }

    /// False: the client is not among those who may use the proxy at all. It is told so, and gets nothing else.
    var isAdmitted: Bool { session.isAdmitted }

    /// What is to be told of the request when it is over.
    var account: Account {
        get { session.account }
        _modify { yield &session.account }
    }

    /// The connection stays open after this response.
    var persists: Bool {
        get { session.persists }
        set { session.persists = newValue }
    }

    // MARK: heads

    /// A final head has not been queued.
    var isAwaiting: Bool {
        switch answer {
        case .awaiting: true
        case .begun: false
        case .ended: false
        }
    }

    /// Passes an interim head on. Behind a final head there is nowhere to pass it: an origin that says something before the rest of a
    /// body says it to Larder alone.
    func interim(_ head: (inout [UInt8]) -> Void) {
        switch answer {
        case .awaiting(let opening): opening.interim(head)
        case .begun: return
        case .ended: return
        }
        session.flush()
    }

    /// Queues the final head; it is sent with the first bytes of the body, or by `flush`.
    ///
    /// - Parameters:
    ///   - framing: of a body that follows by `send`.
    ///   - delivery: a stored body that follows by itself; nil where there is none.
    func begin(
        framing: ForwardedHead.Framing = .none, delivery: Delivery? = nil, _ head: (inout [UInt8]) -> Void
    ) {
        precondition(session.delivery == nil, "the answer before this one has not ended")
        answer.begin(head)
        self.framing = framing
        session.delivery = delivery
    }

    /// Takes back a final head of which nothing has been sent, so that another can take its place.
    ///
    /// - Returns: false where the client has begun to get its answer.
    func takeBack() -> Bool {
        guard answer.takeBack() else { return false }
        session.endDelivery()
        session.account.bodyBytes = 0
        framing = .none
        return true
    }

    // MARK: the body

    /// Sends a piece of a body that is passed on.
    func send(_ bytes: UnsafeRawBufferPointer) {
        precondition(!isAwaiting, "a body comes behind its head")
        session.account.bodyBytes += bytes.count
        guard framing == .chunked else { return unsafe session.send(bytes) }
        session.queue { appendChunkHeader(bytes.count, to: &$0) }
        unsafe session.queue(bytes)
        session.queue { HeadWriter.append("\r\n", to: &$0) }
    }

    /// The body that is passed on is complete.
    func end(trailers: Fields?) {
        precondition(!isAwaiting, "a body comes behind its head")
        if framing == .chunked { session.queue { appendLastChunk(trailers: trailers, to: &$0) } }
        answer = .ended
    }

    /// Bytes that the client has not taken yet.
    var unsentBytes: Int { session.unsentBytes }

    func flush() { session.flush() }

    /// How far the client is in a body that is being fetched for it; nil where it gets another, or none.
    func offsetTaken(of body: Body) -> Int? {
        guard let delivery = session.delivery, delivery.body === body else { return nil }
        return delivery.offset
    }

    /// Only the end of the connection tells the client where this body ends, and it has not ended.
    var isCutByClosing: Bool {
        guard framing == .untilClose else { return false }
        switch answer {
        case .awaiting: return true
        case .begun: return true
        case .ended: return session.unsentBytes > 0
        }
    }

    // MARK: the end

    /// The client does not get its whole answer, and must be able to tell (RFC 9112 §8).
    func reset() { session.abort() }

    /// Gives the connection away, to be a tunnel; the access record goes along.
    func surrender() -> (fd: CInt, early: [UInt8], account: Account) {
        answer = .ended
        var account = session.account
        account.isLogged = false
        session.account.isLogged = true
        let surrendered = session.surrender()
        return (surrendered.fd, surrendered.early, account)
    }

    // MARK: the request

    /// The client has sent more than the request under way.
    var hasUnreadBytes: Bool { session.hasUnreadBytes }

    /// What is received and not understood yet; what is left of it is put back before anything else is read.
    func takeInbound() -> [UInt8] { session.takeInbound() }
    func putBack(_ bytes: [UInt8]) { session.putBack(bytes) }
    func pauseReading() { session.pauseReading() }
    func resumeReading() { session.resumeReading() }
    func uploadSoon() { session.uploadSoon() }
}

extension Worker {
    /// The exchange under way on that stream, if there is one still.
    func exchange(at address: ClientStream.Address) -> Exchange? {
        clients[address.connection]?.exchange(address.number)
    }
}
