import EventLoop
import LogIns
import Routing
import Transaction
import Transport

/// The loan of a link to an origin for one request and its response.
///
/// The holder ends a stream exactly once, with `finish` or `surrender`, and must not use it afterwards. The number tells this loan
/// from later ones of the same link: a use after the end traps. A connection that is being logged in carries several requests during one loan.
struct OriginStream {
    private let link: OriginLink
    private let number: Int

    /// - Parameter number: counts the loans of the link, from 1.
    init(on link: OriginLink, number: Int) {
        self.link = link
        self.number = number
    }

    enum Ending: Equatable {
        /// The pool keeps the connection if it can carry another request: both messages are complete and both sides agreed to it (RFC 9112 §9.3).
        case keep
        case close
        /// Like `close`, but the origin sees that it has not got the whole request.
        case reset
    }

    /// Whether the connection has carried another request before.
    var isReused: Bool { number > 1 }

    /// How the connection reaches the origin.
    var route: Route { lent.pool.key.route }

    /// The request and its response.
    var conversation: HTTP1Conversation { lent.conversation }

    /// The log-in of the connection. The holder begins it and carries it out.
    var logIn: LinkLogIn? {
        get { lent.logIn }
        nonmutating set { lent.logIn = newValue }
    }

    /// Ends the loan.
    func finish(_ ending: Ending) { lent.finish(ending) }

    /// Ends the loan and gives the transport to a tunnel, after a 101.
    func surrender() -> Transport { lent.surrender() }

    private var lent: OriginLink {
        precondition(link.isLending(number), "a stream is used after its end")
        return link
    }
}
