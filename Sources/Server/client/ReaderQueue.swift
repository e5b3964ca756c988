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
    private var postponed = PostponedReaders()
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
        if postponed.add(id) { resumeAfterTurn() }
    }

    private func resumeAfterTurn() { loop.afterTurn { [unowned self] in resume() } }

    /// Lets those go on that wait for longest, until a budget of their own is spent: what is ready in each turn cannot hold them up.
    private func resume() {
        budget.renew(inTurn: loop.turnNumber)
        postponed.beginTurn()
        while !isTurnOver, let id = postponed.next() { clients[id]?.goOn() }
        if postponed.endTurn() { resumeAfterTurn() }
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

/// The connections that go on in a later turn of the loop, those that came first first. They go on once in each turn, however often they are postponed
/// again meanwhile.
struct PostponedReaders {
    private var ids: [ConnectionID] = []
    /// Of those in `ids`, the first that has not gone on.
    private var start = 0
    /// One past the last that goes on in this turn.
    private var end = 0
    private var isTurnDue = false

    /// Returns whether a turn has to be arranged. False if one is due, or under way: `endTurn` says then whether another one follows.
    mutating func add(_ id: ConnectionID) -> Bool {
        ids.append(id)
        defer { isTurnDue = true }
        return !isTurnDue
    }

    mutating func beginTurn() {
        precondition(isTurnDue, "turns are arranged")
        end = ids.count
    }

    /// The next one that goes on in this turn. Nil if there are none left: what was added meanwhile waits for the next turn.
    mutating func next() -> ConnectionID? {
        guard start < end else { return nil }
        defer { start += 1 }
        return ids[start]
    }

    /// Returns whether another turn has to be arranged.
    mutating func endTurn() -> Bool {
        if start == ids.count || start >= PostponedReaders.goneMax {
            ids.removeFirst(start)
            start = 0
        }
        isTurnDue = !ids.isEmpty
        return isTurnDue
    }

    /// How many that have gone on are kept, so that not each turn moves all that wait.
    private static let goneMax = 1024
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
