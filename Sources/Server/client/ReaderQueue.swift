import EventLoop

/// The client connections of one worker that have something to send: a body that grew, or a queued head; and those that have to wait for their
/// next turn, because clients were sent enough in this one.
///
/// The writer of a body does not send to clients from within its own work. It adds the readers here, and they send when the writer's turn
/// is over, or, if bytes are only lent to the body, before the loan ends. So a client that fails cannot end a fetch in the
/// middle of its work, and one system call carries everything that arrived in a turn.
final class ReaderQueue {
    // Nothing is called while one of the two arrays or the budget changes, so the unchecked access is exclusive.
    @exclusivity(unchecked) private var waiting: [ConnectionID] = []
    /// An empty array whose capacity is used for connections that are added while others send.
    @exclusivity(unchecked) private var spare: [ConnectionID] = []
    private var turns = 0
    private var postponed = PostponedReaders()
    @exclusivity(unchecked) private var budget = TurnBudget()
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
    var isTurnOver: Bool { unsafe budget.isSpent(inTurn: loop.turnNumber, waiting: postponed.count) }

    /// Whether a hit with a long body may begin to send in this turn.
    var hasRoomForHit: Bool { unsafe budget.hasRoomForHit(inTurn: loop.turnNumber) }

    func noteSent(_ bytes: Int) {
        if unsafe budget.note(bytes, inTurn: loop.turnNumber) { unsafe budget.note(MonotonicTime.readExactly()) }
    }

    /// Lets a connection go on in a later turn. Those that came first go first.
    func postpone(_ id: ConnectionID) {
        if postponed.add(id) { resumeAfterTurn() }
    }

    private func resumeAfterTurn() { loop.afterTurn { [unowned self] in resume() } }

    /// Lets those go on that wait for longest, until a budget of their own is spent: what is ready in each turn cannot hold them up.
    private func resume() {
        unsafe budget.renew(inTurn: loop.turnNumber)
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

    /// How many wait.
    var count: Int { ids.count - start }

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

/// What a worker sends to its clients in one turn of its loop. Without a bound, a hit would wait until hundreds of clients that read a long body
/// have what their sockets accept.
///
/// While many connections wait for their turn, the bound is a small number of bytes. While a few wait, it is a time: they fill their sockets
/// in one turn. With the small number of bytes each would get its answer in parts, and its client would be woken for every part, which
/// costs a quarter more processor time for bodies of 10 MiB.
struct TurnBudget {
    /// One or two milliseconds of a processor.
    static let bytesMaxInCrowd = 2 << 20
    static let nanosecondsMax: UInt64 = 1_000_000
    /// With more connections than this that wait for their next turn, the bound is in bytes.
    static let crowd = 16

    /// The clock is read when so many bytes were sent, and not before: a turn of short answers does not read it at all.
    static let bytesBetweenLooks = 512 << 10

    /// What hits with long bodies may take of a turn that they begin in. A connection that has to wait for its next turn costs more than one that
    /// sends at once, so the turns of a busy worker are longer.
    static let hitBytesMax = 8 << 20

    private var turn: UInt64 = 0
    private var bytes = 0
    private var nextLook = TurnBudget.bytesBetweenLooks
    /// In nanoseconds: from the first look at the clock in this turn. Zero before it.
    private var end: UInt64 = 0
    private var isTimeOver = false

    /// - Parameter waiting: how many connections wait for their next turn.
    func isSpent(inTurn number: UInt64, waiting: Int) -> Bool {
        number == turn && (waiting > TurnBudget.crowd ? bytes >= TurnBudget.bytesMaxInCrowd : isTimeOver)
    }

    func hasRoomForHit(inTurn number: UInt64) -> Bool { number != turn || bytes < TurnBudget.hitBytesMax }

    /// Returns whether it is time to look at the clock.
    mutating func note(_ count: Int, inTurn number: UInt64) -> Bool {
        if number != turn { renew(inTurn: number) }
        bytes += count
        guard bytes >= nextLook else { return false }
        nextLook = bytes + TurnBudget.bytesBetweenLooks
        return true
    }

    mutating func note(_ now: MonotonicTime) {
        if end == 0 { end = now.nanoseconds + TurnBudget.nanosecondsMax }
        isTimeOver = now.nanoseconds >= end
    }

    mutating func renew(inTurn number: UInt64) {
        turn = number
        bytes = 0
        nextLook = TurnBudget.bytesBetweenLooks
        end = 0
        isTimeOver = false
    }
}
