import Access
import EventLoop
import Transaction

/// Who uses a stream. An owner that waits for a stream cancels its `StreamRequest` before it goes away.
protocol OriginStreamOwner: AnyObject {
    func opened(_ stream: OriginStream, isReused: Bool)
    /// - Parameter denial: what the rules of access say, where they are the reason.
    func openingFailed(_ refusal: Refusal, _ denial: Denial?)
    /// There is something to read, or the end of it.
    func readable()
    /// Everything that was sent is out.
    func drained()
    /// The origin takes nothing more. What it has sent can still be read.
    func writeFailed()
}

/// One exchange of a request and its response on a link to an origin, lent by the pools.
///
/// Whoever holds a stream ends it with `finish` or `surrender`, once; nothing may be done with it afterwards. The
/// number tells this loan of the link from later ones, so that a stream that was kept too long is noticed.
struct OriginStream {
    private let link: OriginLink
    private let number: Int

    /// - Parameter number: which of the link's streams this is, counted from 1.
    init(on link: OriginLink, number: Int) {
        self.link = link
        self.number = number
    }

    enum Ending: Equatable {
        /// The response is complete and the connection persists (RFC 9112 §9.3); it may be idle for this long.
        case keep(for: Duration)
        case close
    }

    enum WriteOutcome { case sent, kept, failed }

    /// The connection has carried another request before.
    var isReused: Bool { number > 1 }

    /// Bytes of the request that the socket has not taken yet.
    var unsentBytes: Int { lent.unsentBytes }

    /// Sends now what the socket takes and keeps the rest, in order; `drained` tells when it is out.
    func send(_ bytes: UnsafeRawBufferPointer) -> WriteOutcome { unsafe lent.send(bytes) }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { unsafe lent.read(into: buffer) }

    /// Bytes are there that `readable` will not announce: read until they are gone.
    var mustBeDrained: Bool { lent.mustBeDrained }

    func pause() { lent.pauseReading() }
    func resume() { lent.resumeReading() }

    /// Gives the stream back.
    func finish(_ ending: Ending) { lent.finish(ending) }

    /// Gives the socket away, for a tunnel after 101, which ends the stream. Returns nil with TLS; the stream goes on
    /// then.
    func surrender() -> Descriptor? { lent.surrender() }

    private var lent: OriginLink {
        precondition(link.isLending(number), "a stream ends once")
        return link
    }
}
