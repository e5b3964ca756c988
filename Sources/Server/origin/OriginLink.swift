import EventLoop
import LogIns
import Message
import Transport

/// A connection to an origin as the pools see it: who counts it, and who has it.
///
/// While it is lent its owner gets the events. While it is idle any event means that the origin closes it.
///
/// ```
/// lent ──finish(.keep)──▶ idle in the pool ──lend──▶ lent
///   │                          │ origin closes, or too long
///   └─finish(.close), surrender┴──▶ closed
/// ```
final class OriginLink: TimedObject, ConversationKeeper {
    /// A link carries one stream at a time: responses come in the order of their requests (RFC 9112 §9.3.2), so a slow one
    /// would delay all behind it.
    static let streamsMax = 1

    /// The pool that counts the link, and that keeps it while it is idle.
    let pool: OriginPool
    let address: SocketAddress
    /// The configuration under whose rules the link was opened.
    let snapshot: Snapshot
    let conversation: HTTP1Conversation
    private var streamsLent = 0
    /// The log-in of the connection with NTLM or Negotiate. Nil if there is none, or if it held for one request.
    var logIn: LinkLogIn?
    private let worker: Worker
    private unowned let pools: OriginPools

    init(
        worker: Worker, pools: OriginPools, pool: OriginPool, address: SocketAddress,
        transport: consuming Transport, snapshot: Snapshot
    ) {
        self.worker = worker
        self.pools = pools
        self.pool = pool
        self.address = address
        self.snapshot = snapshot
        conversation = HTTP1Conversation(transport, worker.conversationMemory)
        super.init()
        conversation.start(on: worker.loop, keeper: self)
        worker.counters.add(.originConnectionsOpened)
    }

    // MARK: lending

    private var isLent: Bool { conversation.isInUse }
    var streamsInUse: Int { isLent ? 1 : 0 }

    func lend(to owner: any OriginStreamOwner) -> OriginStream {
        precondition(streamsInUse < OriginLink.streamsMax, "the link is lent already")
        conversation.begin(owner)
        streamsLent += 1
        return OriginStream(on: self, number: streamsLent)
    }

    /// Whether the stream of that number is in use.
    func isLending(_ number: Int) -> Bool { isLent && streamsLent == number }

    func finish(_ ending: OriginStream.Ending) {
        // Before the pool is told: it may lend the link to the next owner within that call.
        let time = conversation.end()
        switch ending {
        case .keep where time != nil: pools.takeBack(self, keepFor: time ?? .zero)
        case .keep, .close: pools.discard(self)
        case .reset:
            conversation.resetOnClose()
            pools.discard(self)
        }
    }

    // MARK: events

    func turn(_ work: () -> Void) {
        // The readers that `work` wakes send at its end, or where it flushes them on purpose.
        worker.readers.hold()
        work()
        worker.readers.release()
    }

    func readableWhileIdle() {
        // TLS has messages of its own, such as session tickets.
        if conversation.isQuiet() { return }
        // On an idle connection an origin can only close (RFC 9112 §9.5). If it sends anything else, it is not trusted.
        pools.drop(self)
    }

    func hasRead(_ count: Int) { worker.counters.add(.bytesFromOrigins, count) }
    func hasWritten(_ count: Int) { worker.counters.add(.bytesToOrigins, count) }

    override func timerFired() { if !isLent { pools.drop(self) } }

    // MARK: the end

    /// Gives the transport to a tunnel, and ends the loan.
    func surrender() -> Transport {
        let surrendered = conversation.surrender()
        worker.timers.cancel(self)
        logIn = nil
        worker.counters.add(.originConnectionsClosed)
        pools.discard(self)
        return surrendered
    }

    /// Closes the socket. Called by the pools only, which count the links.
    func close() {
        precondition(!isLent, "a link that is lent is not closed")
        guard conversation.isOpen else { return }
        worker.timers.cancel(self)
        // What is being made for it calls nobody any more.
        logIn = nil
        conversation.close()
        worker.counters.add(.originConnectionsClosed)
    }
}
