import EventLoop

/// Client connections of one worker for which there is something to send: a body that grew, a head that was queued.
///
/// Whoever writes a body does not send it from within its own work. It tells the readers, and they send when the writer's turn is
/// over, or, where bytes are only lent to the body, before the loan ends. So the writer never meets the consequences of a client that
/// fails while it is in the middle of something, and one system call carries all that came in a turn.
final class ReaderQueue {
    private var waiting: [ConnectionID] = []
    /// Room for those that are added while others send.
    private var spare: [ConnectionID] = []
    private var turns = 0
    private var isFlushing = false
    private let loop: EventLoop
    private let send: (ConnectionID) -> Void

    /// - Parameter send: lets one connection send what it has.
    init(loop: EventLoop, send: @escaping (ConnectionID) -> Void) {
        self.loop = loop
        self.send = send
    }

    /// Begins a turn of a writer; turns may be nested.
    func hold() { turns += 1 }

    /// Ends it: at the end of the outermost turn the readers send.
    func release() {
        precondition(turns > 0, "a turn ends once")
        turns -= 1
        if turns == 0 { flush() }
    }

    func add(_ id: ConnectionID) {
        waiting.append(id)
        if turns == 0, !isFlushing, waiting.count == 1 { loop.afterTurn { [unowned self] in flush() } }
    }

    /// Lets all that wait send. Those that are added meanwhile have their turn as well.
    func flush() {
        guard !isFlushing else { return }
        isFlushing = true
        while true {
            var due = waiting
            guard !due.isEmpty else { break }
            waiting = spare
            spare = []
            for id in due { send(id) }
            due.removeAll(keepingCapacity: true)
            spare = due
        }
        isFlushing = false
    }
}
