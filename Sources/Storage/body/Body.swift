internal import CLarder
internal import Synchronization

/// The bytes of one response body: one writer, any number of readers on any thread.
///
///     growing ──finish──▶ complete          growing ──fail, or finish too early──▶ failed
///        └──moveOn──▶ moved: another body has its bytes, and grows on (Body+Moving.swift)
///
/// A partial body has any number of writers, each with a hole of its own (Body+Filling.swift).
///
/// Ordering, which keeps reads free of locks: the writer puts bytes into pages and then publishes the new length; a reader
/// that has seen the length may read the bytes below it, for nothing published is moved or changed. The writer stores
/// `published` and `phase` at least releasing and the readers load them acquiring. Where the writer looks for waits right
/// after (`waitCount`), both sides are sequentially consistent, so that one of the two sees the other. Everything that is
/// not atomic and changes is under the lock (`locked`), but for the pages of a growing body, which are its writer's.
///
/// Files beside this one hold the writer's side, the readers' side, the pages, the windows, and the two forms of bodies
/// on the back store. `Residence` says which forms there are.
@safe package final class Body: @unchecked Sendable {
    package enum State: UInt8, Sendable { case growing, complete, failed, partial, moved }

    /// Bytes of a block: what a back store reads and checks at once, and of a large body writes and keeps at once.
    package static let blockBytes = 64 << 10

    /// In bytes; nil where the origin did not say.
    let announcedLength: Int?
    let shelves: Shelves
    /// Bytes that may be read, from the first on.
    let published = Atomic<Int>(0)
    /// `State`, to be read without the lock.
    let phase = Atomic<UInt8>(State.growing.rawValue)
    /// Waits under way; spares the writer the lock while there are none.
    let waitCount = Atomic<Int>(0)
    /// Its pages are freed behind its readers. Set once.
    let windowed = Atomic<Bool>(false)
    /// Its pages hold all that `published` says. Set once; false from the start for what the back store has.
    let resident: Atomic<Bool>
    /// Bytes of the budget in this object and its pages.
    let held = Atomic<Int>(0)
    /// Written before any other thread knows the body; afterwards a window's own thread alone may move its block.
    var residence: Residence

    // Pages: set before bytes in them are published (Body+Pages.swift).
    var firstPage: UnsafeMutableRawPointer?
    var segments: UnsafeMutablePointer<PageSegment?>?
    /// Offset up to which the writer of a growing body has pages. The writer's own.
    var capacity = 0
    private var objectBytes = 0
    /// Key under which it was inserted before it was whole, to weigh the response again; nil: it was not. The writer's own,
    /// and fixed once it is partial and stored.
    var home: StorageKey?

    /// Readers, waits and the window of a body that outgrew memory. Under the lock; nil while nobody attaches or waits.
    var audience: Audience?
    /// Which bytes are there of a partial body. Under the lock; nil in every other state.
    var blocks: BlockMap?
    /// Whether its pages have one block each (`BodyLayout`), because it began partial or is large.
    let isSparse: Bool
    /// How many bytes the body may have, or if it is partial, hold at once. The writer of a growing body may raise it.
    private(set) var lengthMax: Int
    /// The response whose body has the bytes of this one and continues with those that follow. Set before the state becomes `moved`.
    package internal(set) var continuation: StoredRecord?
    /// The response that took the place of the one with this body, which the back store could not give to its end (`Tiers.rescue`).
    var rescued: StoredRecord? { locked { rescuedUnderLock } }
    private var rescuedUnderLock: StoredRecord?

    /// Sets `rescued`, if no other thread has. Returns what it is now.
    func setRescued(_ record: StoredRecord) -> StoredRecord {
        locked {
            if let other = rescuedUnderLock { return other }
            rescuedUnderLock = record
            return record
        }
    }

    /// In memory, and empty. Whoever makes it charges it (`MemoryTier.makeBody`).
    init(expectedLength: Int?, isSparse: Bool = false, lengthMax: Int? = nil, shelves: Shelves) {
        precondition(expectedLength ?? 0 >= 0, "a length is not negative")
        self.lengthMax = lengthMax ?? shelves.objectMax
        announcedLength = expectedLength
        self.isSparse = isSparse
        self.shelves = shelves
        residence = .memory
        resident = Atomic(true)
    }

    /// Whole on the back store, and none of it in memory yet.
    init(_ whole: WholeCopy, shelves: Shelves) {
        let length = whole.place.bodyBytes
        lengthMax = length
        announcedLength = length
        isSparse = false
        self.shelves = shelves
        residence = .whole(whole)
        resident = Atomic(length == 0)
        published.store(length, ordering: .relaxed)
        phase.store(State.complete.rawValue, ordering: .releasing)
    }

    deinit {
        if let passing = unsafe passing { unsafe endPassing(passing) }
        freeAllPages()
        shelves.release(objectBytes + (blocks?.footprint ?? 0))
    }

    var layout: BodyLayout { BodyLayout(expectedLength: announcedLength, isSparse: isSparse) }

    /// The length of the body in bytes. Nil while it is not known. A large body that was not announced knows it from its end on.
    package var expectedLength: Int? { announcedLength ?? large?.length }

    /// The body that has these bytes and continues to grow: the one that this body moved to, or this one.
    package var latest: Body { state == .moved ? continuation?.body ?? self : self }

    /// Lets a growing body become longer. Its writer calls this.
    package func raiseLengthMax(to lengthMax: Int) {
        precondition(state == .growing && !isSparse, "the writer of a body in memory decides how long it may be")
        self.lengthMax = max(lengthMax, self.lengthMax)
    }

    /// Bytes that may be read, from the first on: of a partial body those before the first hole (see `available(from:)`).
    package var length: Int { published.load(ordering: .acquiring) }

    /// Read the state before the length where both matter: a complete body no longer grows.
    package var state: State {
        switch phase.load(ordering: .acquiring) {
        case State.growing.rawValue: .growing
        case State.complete.rawValue: .complete
        case State.partial.rawValue: .partial
        case State.moved.rawValue: .moved
        default: .failed
        }
    }

    /// As `state == .complete`, which other modules call through a witness table.
    package var isComplete: Bool { phase.load(ordering: .acquiring) == State.complete.rawValue }

    /// Charges this object itself to the budget, once, whoever asks. False: the budget has no room.
    func chargeObject() -> Bool {
        if objectBytes > 0 { return true }
        let bytes = unsafe Shelves.size(of: Unmanaged.passUnretained(self).toOpaque())
        guard shelves.charge(bytes) else { return false }
        objectBytes = bytes
        held.add(bytes, ordering: .relaxed)
        return true
    }

    /// Charges this object, beyond the budget if there is no room. Nothing is evicted for it now.
    func chargeObjectAnyway() {
        precondition(objectBytes == 0, "an object is charged once")
        objectBytes = unsafe Shelves.size(of: Unmanaged.passUnretained(self).toOpaque())
        shelves.take(objectBytes)
        held.add(objectBytes, ordering: .relaxed)
    }

    /// Bytes it counts for in its queue: what it holds, or what it will hold.
    var weight: Int {
        let now = held.load(ordering: .relaxed)
        guard state == .growing, !windowed.load(ordering: .relaxed) else { return now }
        return max(now, promised)
    }

    /// Bytes it will hold when it is as long as expected: to the byte where one page suffices, as its memory mostly has it.
    var promised: Int {
        guard let expectedLength, expectedLength > 0 else { return 0 }
        if expectedLength > BodyLayout.pageBytes { return expectedLength }
        let capacity = layout.page(at: 0).capacity
        let page = PageArena.serves(capacity) ? PageArena.footprint(capacity) : clarder_malloc_usual_size(capacity)
        return objectBytes + page
    }
}

extension StoredRecord {
    /// Bytes this response counts for in its queue, with its body.
    final var currentWeight: Int { charge + body.weight }
}
