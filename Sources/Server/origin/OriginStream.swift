import Access
import EventLoop
import Routing
import Transaction

/// The user of a stream. An owner that waits for a stream must cancel its `StreamRequest` before it is released.
protocol OriginStreamOwner: AnyObject {
    /// A stream was lent. `isReused`: its connection has carried other requests.
    func opened(_ stream: OriginStream, isReused: Bool)
    /// No stream can be lent. `denial`: the access rule that forbids it, if one does.
    func openingFailed(_ refusal: Refusal, _ denial: Denial?)
    /// There are bytes to read, or the connection has ended.
    func readable()
    /// The socket has accepted all bytes that were sent.
    func drained()
    /// The origin accepts no more bytes. What it has sent can still be read.
    func writeFailed()
}

/// The loan of a link to an origin for one request and its response.
///
/// The holder ends a stream exactly once, with `finish` or `surrender`, and must not use it afterwards. The number tells this loan
/// from later ones of the same link: a use after the end traps.
struct OriginStream {
    private let link: OriginLink
    private let number: Int

    /// - Parameter number: counts the loans of the link, from 1.
    init(on link: OriginLink, number: Int) {
        self.link = link
        self.number = number
    }

    enum Ending: Equatable {
        /// The response is complete and the connection persists (RFC 9112 §9.3). The pool keeps it for this long.
        case keep(for: Duration)
        case close
        /// Like `close`, but the origin sees that it has not got the whole request.
        case reset
    }

    enum WriteOutcome {
        /// The socket accepted all bytes.
        case sent
        /// The link has queued the bytes that the socket did not accept.
        case kept
        /// The connection accepts no more bytes.
        case failed
    }

    /// Whether the connection has carried another request before.
    var isReused: Bool { number > 1 }

    /// How the connection reaches the origin.
    var route: Route { lent.pool.key.route }

    /// Bytes of the request that the socket has not accepted yet.
    var unsentBytes: Int { lent.unsentBytes }

    /// Sends what the socket accepts and queues the rest. `drained` is called when the queue is empty.
    func send(_ bytes: UnsafeRawBufferPointer) -> WriteOutcome { unsafe lent.send(bytes) }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { unsafe lent.read(into: buffer) }

    /// Whether bytes have been decrypted that `readable` will not announce: read until there are none.
    var mustBeDrained: Bool { lent.mustBeDrained }

    /// Whether the origin has asked for a certificate when the connection was made, and got none.
    var isAskedForCertificate: Bool { lent.isAskedForCertificate }
    /// Whether the origin ended the connection because of the certificate that it was shown.
    var isCertificateRefused: Bool { lent.isCertificateRefused }

    /// See `Transport.endPointHash`.
    var endPointHash: [UInt8]? { lent.endPointHash }

    /// The log-in of the connection. The holder begins it and carries it out.
    var logIn: LinkLogIn? {
        get { lent.logIn }
        nonmutating set { lent.logIn = newValue }
    }

    func pause() { lent.pauseReading() }
    func resume() { lent.resumeReading() }

    /// Has another one get the events. The loan goes on.
    func pass(to owner: any OriginStreamOwner) { lent.pass(to: owner) }

    /// Ends the loan.
    func finish(_ ending: Ending) { lent.finish(ending) }

    /// Ends the loan and gives the transport to a tunnel, after a 101.
    func surrender() -> Transport { lent.surrender() }

    private var lent: OriginLink {
        precondition(link.isLending(number), "a stream is used after its end")
        return link
    }
}
