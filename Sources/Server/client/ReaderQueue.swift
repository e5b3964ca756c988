import EventLoop

/// The client connections of one worker that have something to send: a body that grew, or a queued head.
///
/// The writer of a body does not send to clients from within its own work. It adds the readers here, and they send when the writer's turn
/// is over, or, if bytes are only lent to the body, before the loan ends. So a client that fails cannot end a fetch in the
/// middle of its work, and one system call carries everything that arrived in a turn.
final class ReaderQueue {
    /// Nothing is called while the array changes, so the unchecked access is exclusive.
    @exclusivity(unchecked) private var waiting: [ConnectionID] = []
    /// An empty array whose capacity is used for connections that are added while others send.
    private var spare: [ConnectionID] = []
    private var turns = 0
    private var isFlushing = false
    private let loop: EventLoop
    private let clients: Slab<ClientConnection>

    /// - Parameter clients: those of the worker.
    init(loop: EventLoop, clients: Slab<ClientConnection>) {
        self.loop = loop
        self.clients = clients
    }

    /// Begins a writer's turn. Turns may be nested.
    func hold() { turns += 1 }

    /// Ends a writer's turn. At the end of the outermost turn the readers send.
    func release() {
        precondition(turns > 0, "a turn ends once")
        turns -= 1
        if turns == 0 { flush() }
    }

    /// Adds a connection. It sends at the end of the writer's turn, or of the loop's turn if no writer has one.
    func add(_ id: ConnectionID) {
        unsafe waiting.append(id)
        if turns == 0, !isFlushing, unsafe waiting.count == 1 { loop.afterTurn { [unowned self] in flush() } }
    }

    /// Lets all connections in the queue send, those included that are added meanwhile.
    func flush() {
        guard !isFlushing else { return }
        isFlushing = true
        while true {
            var due = unsafe waiting
            guard !due.isEmpty else { break }
            precondition(spare.isEmpty, "connections in the spare queue would never send")
            unsafe waiting = spare
            spare = []
            for id in due { clients[id]?.bodyGrew() }
            due.removeAll(keepingCapacity: true)
            spare = due
        }
        isFlushing = false
    }
}
