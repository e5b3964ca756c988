internal import CLarder
internal import Synchronization

/// The bytes of one response body: one writer, any number of readers on any thread.
///
///     growing ──finish──▶ complete          growing ──fail, or finish too early──▶ failed
///
/// A partial body has any number of writers, each with a hole of its own (Body+Filling.swift).
/// The writer puts bytes into pages and then publishes the new length; a reader that has seen the length may read the
/// bytes below it without a lock, for nothing published is moved or changed. Files beside this one hold the writer's
/// side, the readers' side, the pages, and window mode.
@safe package final class Body: @unchecked Sendable {
    package enum State: UInt8, Sendable { case growing, complete, failed, partial }

    /// In bytes; nil where the origin did not say.
    package let expectedLength: Int?
    let shelves: Shelves
    let published = Atomic<Int>(0)
    let phase = Atomic<UInt8>(State.growing.rawValue)
    /// Waits under way; spares the writer the lock while there are none.
    let waitCount = Atomic<Int>(0)
    /// Whether window mode has begun.
    let windowed = Atomic<Bool>(false)
    /// Bytes of the budget in this object and its pages.
    let held = Atomic<Int>(0)

    // Pages: written by the writer before it publishes bytes in them (Body+Pages.swift).
    var firstPage: UnsafeMutableRawPointer?
    var segments: UnsafeMutablePointer<PageSegment?>?
    /// Of a body that is only passed on, in place of pages; nil of every other (Body+Passing.swift).
    var passing: PassingBlock?
    /// Offset up to which the writer has pages. The writer's own.
    var capacity = 0
    private var objectBytes = 0
    /// Key of the record it was inserted with before it was whole; nil: none. The writer's own, and fixed once it is
    /// partial and stored.
    var home: StorageKey?

    /// Readers, waits, window: under the lock `shelves.waiting`; nil until somebody attaches or waits.
    var audience: Audience?
    /// What is there of a partial body, under the same lock; nil in every other state.
    var blocks: BlockMap?
    /// The copy on the disk of which it is made, where it came from there in one piece.
    let packed: PackedCopy?
    /// Its pages hold what `published` says; false: they are not here, and are read when they are wanted (Body+Packed.swift).
    let resident: Atomic<Bool>
    /// Where its whole blocks go; set before anybody else knows the body (Body+Large.swift).
    var large: LargeCopy?
    /// Whether it began partial: its pages are smaller (`BodyLayout`).
    private let isSparse: Bool
    /// Bytes it may have, or of a sparse one hold at once.
    let lengthMax: Int

    /// The body is charged by whoever made it (`MemoryTier.makeBody`).
    init(expectedLength: Int?, isSparse: Bool = false, lengthMax: Int? = nil, shelves: Shelves) {
        self.lengthMax = lengthMax ?? shelves.objectMax
        self.expectedLength = expectedLength
        self.isSparse = isSparse
        self.shelves = shelves
        packed = nil
        resident = Atomic(true)
    }

    /// Whole, but none of it in memory yet.
    init(_ packed: PackedCopy, shelves: Shelves) {
        let length = Int(packed.place.bodyLength)
        lengthMax = length
        expectedLength = length
        isSparse = false
        self.shelves = shelves
        self.packed = packed
        resident = Atomic(length == 0)
        published.store(length, ordering: .relaxed)
        phase.store(State.complete.rawValue, ordering: .releasing)
    }

    deinit {
        if let passing = unsafe passing { unsafe endPassing(passing) }
        freeAllPages()
        shelves.release(objectBytes + (blocks?.footprint ?? 0))
    }

    var layout: BodyLayout { BodyLayout(expectedLength: expectedLength, isSparse: isSparse) }

    /// Bytes that may be read, from the first on: of a partial body those before the first hole (see `available(from:)`).
    package var length: Int { published.load(ordering: .acquiring) }

    /// Read the state before the length where both matter: a complete body no longer grows.
    package var state: State {
        switch phase.load(ordering: .acquiring) {
        case State.growing.rawValue: .growing
        case State.complete.rawValue: .complete
        case State.partial.rawValue: .partial
        default: .failed
        }
    }

    /// Takes this object itself from the budget. False: it can not be had.
    func chargeObject() -> Bool {
        // Counted once, whoever asks.
        if objectBytes > 0 { return true }
        let bytes = unsafe Shelves.size(of: Unmanaged.passUnretained(self).toOpaque())
        guard shelves.charge(bytes) else { return false }
        objectBytes = bytes
        held.add(bytes, ordering: .relaxed)
        return true
    }

    /// As `chargeObject`, of what is had in any case.
    func overchargeObject() {
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

    /// Bytes it will hold when it is as long as expected: to the byte where one page suffices, as malloc(3) mostly has it.
    var promised: Int {
        guard let expectedLength, expectedLength > 0 else { return 0 }
        if expectedLength > BodyLayout.pageBytes { return expectedLength }
        return objectBytes + layout.page(at: 0).capacity + 16
    }
}

extension StoredRecord {
    final var currentWeight: Int { charge + body.weight }
}
