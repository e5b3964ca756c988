import Accounts
import Authentication
import EventLoop
import Fleet
import Forwarding
import Framing
import LimitTables
import Message
import Storage
import Transaction
import Transport

/// The path from one request's answer back to its client. An exchange knows nothing else of the connection.
///
/// With HTTP/1 a connection has one stream at a time, and `ClientConnection` is its session. Another protocol would bring a
/// session of its own with as many streams as it allows, and exchanges would not change.
///
/// Ownership: the exchange owns the stream, the stream refers to its session, and the session owns the exchange. The session breaks
/// this cycle when the answer ends and when the connection closes.
final class ClientStream {
    private let session: ClientConnection
    private var number: UInt32
    /// False if `limits.exchanges_max` exchanges are under way already, so that this one must be refused.
    let hasPlace: Bool
    /// A head is written between two accesses and not within one, so no two overlap: the unchecked access is exclusive.
    @exclusivity(unchecked) private var answer: AnswerState
    /// The request's body; nil if the request has none.
    let body: InboundBody?
    /// What the final head says of the client's authentication. Nil: nothing, as with most schemes.
    var authenticationReply: AuthenticationReply?
    /// What the final head tells the node of the fleet that asks. Nil: the client is no node.
    var peerVerdict: PeerVerdict?

    init(_ session: ClientConnection, number: UInt32, body: InboundBody?) {
        self.body = body
        self.session = session
        self.number = number
        hasPlace = session.worker.shared.exchanges.enter(limit: session.worker.snapshot.limits.exchangesMax)
        unsafe answer = .awaiting(ResponseOpening(session))
    }

    deinit { if hasPlace { session.worker.shared.exchanges.leave() } }

    var worker: Worker { session.worker }

    /// Identifies the exchange in a job that another thread posts. It resolves only while the exchange is under way.
    var address: Address { Address(connection: session.id, number: number) }

    /// The connection (slot and generation) and the number of the exchange on it. Both must match, so a job for an earlier exchange
    /// of the same connection does nothing.
    struct Address: Sendable {
        let connection: ConnectionID
        let number: UInt32
    }

    /// False if this client may not use the proxy at all. Every request of it is refused with 403.
    var isAdmitted: Bool { session.context.isAdmitted }

    /// Whether the client asked with SOCKS.
    var isSocks: Bool { session.context.isSocks }
    /// Whether the request came in a tunnel that Larder has opened.
    var isInTunnel: Bool { session.context.fixedOrigin != nil }
    /// The listener by which the client came.
    var listener: ListenerTerms? { session.context.listener }

    /// Whether these bytes of a body can be sent from their file.
    func canSend(_ range: Range<Int>, of body: Body) -> Bool {
        session.fileRange(of: body, from: range.lowerBound, limit: range.count)?.count == range.count
    }

    /// What tells the client that its tunnel is open.
    ///
    /// - Parameter head: what a client of HTTP gets.
    func tunnelGreeting(_ head: [UInt8]) -> [UInt8] { isSocks ? SocksReply.succeeded.bytes : head }

    /// Where this process itself is the client. Nil for all others.
    var program: ProgramLink? { session.context.program }

    /// The place of the connection among those that `limits.clients_max` bounds.
    var clientPlace: Occupancy.Place { session.place }

    /// The places of the request in the buckets of `limits.rules`, until its answer ends. Nil: no limit concerns it.
    var limits: HeldLimits? {
        get { session.limits }
        set { session.limits = newValue }
    }

    /// The access record of the request: what the log and the counters say about it.
    var account: Account {
        get { session.account }
        _modify { yield &session.account }
    }

    /// True if the connection stays open after this response.
    var persists: Bool { session.persists }

    /// Closes the connection after this response. If a reason was given before, that one stays.
    func closeAfterwards(_ reason: CloseReason) { session.closing = session.closing ?? reason }

    // MARK: heads

    /// True until a final head has been queued.
    var isAwaiting: Bool {
        switch unsafe answer {
        case .awaiting: true
        case .beginning: false
        case .begun: false
        case .ended: false
        }
    }

    /// Sends an interim head. Does nothing if the final head has been queued: an interim response that an origin sends before
    /// the rest of a body must not reach the client inside that body.
    func interim(_ head: (inout [UInt8]) -> Void) {
        switch unsafe answer {
        case .awaiting(let opening): opening.interim(head)
        case .beginning: return
        case .begun: return
        case .ended: return
        }
        session.flush()
    }

    /// Queues the final head. It is sent with the first bytes of the body, or by `flush`.
    ///
    /// - Parameter delivery: the body. The session sends it after the head without further calls. Nil if there is no body.
    func begin(delivery: Delivery? = nil, _ head: (inout [UInt8]) -> Void) {
        precondition(session.delivery == nil, "the answer before this one has not ended")
        if let peerVerdict {
            return begin(delivery) { bytes in
                let start = bytes.count
                head(&bytes)
                peerVerdict.insert(intoHeadAt: start, of: &bytes)
            }
        }
        guard let authenticationReply else { return begin(delivery, head) }
        begin(delivery) { bytes in
            let start = bytes.count
            head(&bytes)
            authenticationReply.insert(intoHeadAt: start, of: &bytes)
        }
    }

    private func begin(_ delivery: Delivery?, _ head: (inout [UInt8]) -> Void) {
        let response = unsafe answer.takeOpening().begin(head)
        unsafe answer.begin(response)
        session.delivery = delivery
    }

    /// Removes the queued final head and its delivery, so that another answer can take their place.
    ///
    /// - Returns: false if a byte of the final head has been sent; nothing changes then.
    func takeBack() -> Bool {
        guard unsafe answer.takeBack() else { return false }
        // The client has no byte of the answer, so the log counts none.
        session.endDelivery()
        session.account.bodyBytes = 0
        return true
    }

    // MARK: the body

    /// Queued bytes that the socket has not accepted yet.
    var unsentBytes: Int { session.unsentBytes }

    func flush() { session.flush() }

    /// The offset in `body` up to which this client has been sent bytes. Returns nil if the client is not being sent that body.
    func offsetTaken(of body: Body) -> Int? {
        guard let delivery = session.delivery, delivery.body === body else { return nil }
        return delivery.offset
    }

    // MARK: another request in place of the client's

    /// Another exchange goes on for the client, which waits for its final head. Jobs for the exchange before find nothing from now on.
    func handOver(to next: Exchange) {
        precondition(isAwaiting && session.exchange?.stream === self, "who has answered has nothing to hand over")
        session.exchangeNumber &+= 1
        number = session.exchangeNumber
        session.exchange = next
    }

    // MARK: the end

    /// Closes the connection in the middle of the answer, so that the client sees that the answer is incomplete (RFC 9112 §8).
    func reset(_ reason: CloseReason) { session.abort(reason) }

    /// Gives the client's connection to a tunnel, and its access record to the tunnel's owner.
    func surrender(_ account: inout Account) -> SurrenderedConnection {
        precondition(isAwaiting, "the socket of a client that has a final head becomes no tunnel")
        unsafe answer = .ended
        // The owner of the tunnel writes the log line when the tunnel ends. The connection, which ends now, must not.
        account = session.account
        session.account.isLogged = true
        return session.surrender()
    }

    // MARK: the request

    /// True if the client has sent bytes beyond the head and body of this request.
    var hasUnreadBytes: Bool { session.hasUnreadBytes }

    /// Gives the client the whole of `timeouts.client_idle` for its next bytes: only now does it know that it is to send its body.
    func restartIdleLimit() {
        worker.timers.schedule(session, after: worker.snapshot.configuration.timeouts.clientIdle)
        session.noteContentAwaited()
    }

    /// The request is being served from memory: what was decided about it holds for others on its connection.
    func keepShortWay(after request: OwnedRequest, by snapshot: Snapshot) {
        session.keepShortWay(after: request, by: snapshot)
    }

    func pauseReading() { session.pauseReading() }
    func resumeReading() { session.resumeReading() }
    func uploadSoon() { session.uploadSoon() }

    /// So much of a body can arrive without anybody taking it.
    var heldBodyBytesMax: UInt64 { UInt64(session.inboundBytesMax) }
}

extension Worker {
    /// The exchange at `address`. Returns nil if it has ended, or if its connection has closed.
    func exchange(at address: ClientStream.Address) -> Exchange? {
        clients[address.connection]?.exchange(address.number)
    }
}
