import EventLoop

/// The client connections of one worker that have something to send: a body that grew, or a queued head; and those that have to wait for their
/// next turn, because clients were sent enough in this one.
///
/// The writer of a body does not send to clients from within its own work. It adds the readers here, and they send when the writer's turn
/// is over, or, if bytes are only lent to the body, before the loan ends. So a client that fails cannot end a fetch in the
/// middle of its work, and one system call carries everything that arrived in a turn.
final class ReaderQueue {
    // Nothing is called while one of the two arrays changes, so the unchecked access is exclusive.
    @exclusivity(unchecked) private var waiting: [ConnectionID] = []
    /// An empty array whose capacity is used for connections that are added while others send.
    @exclusivity(unchecked) private var spare: [ConnectionID] = []
    private var turns = 0
    /// Those that go on in a later turn of the loop, from `postponedStart` on.
    private var postponed: [ConnectionID] = []
    private var postponedStart = 0
    private var budget = TurnBudget()
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

    // MARK: turns of the loop

    /// Whether clients were sent enough in this turn, and others have theirs first.
    var isTurnOver: Bool { budget.isSpent(inTurn: loop.turnNumber) }

    /// Whether a hit with a long body may begin to send in this turn.
    var hasRoomForHit: Bool { budget.hasRoomForHit(inTurn: loop.turnNumber) }

    func noteSent(_ bytes: Int) { budget.note(bytes, inTurn: loop.turnNumber) }

    /// Lets a connection go on in a later turn. Those that came first go first.
    func postpone(_ id: ConnectionID) {
        postponed.append(id)
        if postponed.count - postponedStart == 1 { loop.afterTurn { [unowned self] in resume() } }
    }

    /// Lets those go on that wait for longest, until a budget of their own is spent: what is ready in each turn cannot hold them up.
    private func resume() {
        budget.renew(inTurn: loop.turnNumber)
        let end = postponed.count
        while postponedStart < end, !isTurnOver {
            let id = postponed[postponedStart]
            postponedStart += 1
            clients[id]?.goOn()
        }
        if postponedStart == postponed.count {
            postponed.removeAll(keepingCapacity: true)
            postponedStart = 0
        } else {
            if postponedStart >= 1024 {
                postponed.removeFirst(postponedStart)
                postponedStart = 0
            }
            loop.afterTurn { [unowned self] in resume() }
        }
    }

    // MARK: turns of writers

    /// Lets all connections in the queue send, those included that are added meanwhile.
    func flush() {
        guard !isFlushing, unsafe !waiting.isEmpty else { return }
        isFlushing = true
        repeat {
            unsafe precondition(spare.isEmpty, "connections in the spare queue would never send")
            var due: [ConnectionID] = []
            unsafe swap(&due, &waiting)
            unsafe swap(&waiting, &spare)
            for id in due { clients[id]?.bodyGrew() }
            due.removeAll(keepingCapacity: true)
            unsafe spare = due
        } while unsafe !waiting.isEmpty
        isFlushing = false
    }
}

/// How many bytes the clients of a worker are sent in one turn of its loop. Without a bound, a hit would wait until hundreds of clients that read a long
/// body have what their sockets accept.
struct TurnBudget {
    /// One or two milliseconds of a processor.
    static let bytesMax = 2 << 20

    /// What hits with long bodies may take of a turn that they begin in. A connection that has to wait for its next turn costs more than one that
    /// sends at once, so the turns of a busy worker are longer.
    static let hitBytesMax = 8 << 20

    private var turn: UInt64 = 0
    private var bytes = 0

    func isSpent(inTurn number: UInt64) -> Bool { number == turn && bytes >= TurnBudget.bytesMax }

    func hasRoomForHit(inTurn number: UInt64) -> Bool { number != turn || bytes < TurnBudget.hitBytesMax }

    mutating func note(_ count: Int, inTurn number: UInt64) {
        if number != turn { renew(inTurn: number) }
        bytes += count
    }

    mutating func renew(inTurn number: UInt64) {
        turn = number
        bytes = 0
    }
}
