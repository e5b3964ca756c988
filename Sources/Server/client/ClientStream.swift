import EventLoop
import Forwarding
import Framing
import Message
import Storage
import Transaction

/// One request's way back to its client, and the only thing that an exchange knows of the connection.
///
/// With HTTP/1 a connection has one stream at a time and `ClientConnection` is its session. Another protocol brings a session of its own
/// and as many streams as it allows; exchanges do not change for it.
final class ClientStream {
    private let session: ClientConnection
    private let number: UInt32
    /// One of the exchanges that `limits.exchanges_max` bounds; nil where there are too many.
    private let place: Occupancy.Place?
    private var answer: AnswerState
    /// The request's body; nil where it has none.
    let body: InboundBody?

    init(_ session: ClientConnection, number: UInt32, body: InboundBody?) {
        self.body = body
        self.session = session
        self.number = number
        place = session.worker.shared.exchanges.take(limit: session.worker.snapshot.limits.exchangesMax)
        answer = .awaiting(ResponseOpening(session))
    }

    var worker: Worker { session.worker }

    /// False: so many exchanges are under way that this one can only be refused.
    var hasPlace: Bool { place != nil }

    /// Finds the exchange again from another thread's message, as long as it is under way.
    var address: Address { Address(connection: session.id, number: number) }

    struct Address: Sendable {
        let connection: ConnectionID
        let number: UInt32
    }

    /// False: the client is not among those who may use the proxy at all. It is told so, and gets nothing else.
    var isAdmitted: Bool { session.context.isAdmitted }

    /// What is to be told of the request when it is over.
    var account: Account {
        get { session.account }
        _modify { yield &session.account }
    }

    /// The connection stays open after this response.
    var persists: Bool { session.persists }

    /// The connection closes after this response; the first reason stays.
    func closeAfterwards(_ reason: CloseReason) { session.closing = session.closing ?? reason }

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
    /// - Parameter delivery: the body, which follows by itself; nil where there is none.
    func begin(delivery: Delivery? = nil, _ head: (inout [UInt8]) -> Void) {
        precondition(session.delivery == nil, "the answer before this one has not ended")
        answer.begin(head)
        session.delivery = delivery
    }

    /// Takes back a final head of which nothing has been sent, so that another can take its place.
    ///
    /// - Returns: false where the client has begun to get its answer.
    func takeBack() -> Bool {
        guard answer.takeBack() else { return false }
        session.endDelivery()
        session.account.bodyBytes = 0
        return true
    }

    // MARK: the body

    /// Bytes that the client has not taken yet.
    var unsentBytes: Int { session.unsentBytes }

    func flush() { session.flush() }

    /// How far the client is in a body that is being fetched for it; nil where it gets another, or none.
    func offsetTaken(of body: Body) -> Int? {
        guard let delivery = session.delivery, delivery.body === body else { return nil }
        return delivery.offset
    }

    // MARK: the end

    /// The client does not get its whole answer, and must be able to tell (RFC 9112 §8).
    func reset(_ reason: CloseReason) { session.abort(reason) }

    /// Gives the connection away, to be a tunnel; the access record goes along.
    ///
    /// - Returns: nil with TLS on the connection: then it is closed.
    func surrender(_ account: inout Account) -> SurrenderedSocket? {
        answer = .ended
        account = session.account
        session.account.isLogged = true
        return session.surrender()
    }

    // MARK: the request

    /// The client has sent more than the request under way.
    var hasUnreadBytes: Bool { session.hasUnreadBytes }

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
