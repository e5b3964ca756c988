/// A store of responses behind memory. DiskTier implements it on a disk.
///
/// `Tiers` uses it. A back store finds responses by their key, which is a hash (`Tiers` compares the bytes of the key), gives each
/// response a number, and stores its key, attributes, head and body. It does not understand heads.
///
/// Threads: every call may be made on any thread, and several at once. A call does not block unless its comment says so. If a call
/// has the parameter `waits`, false means that it must not block: it returns `wouldBlock` instead, and the caller repeats it with
/// true on a thread of `perform`.
///
/// A new engine is a target with one class that conforms, and one line in Zones.swift that makes it. What several proxies share is no back store,
/// because nothing of it can be relied on: it is asked after both tiers, and what it has is copied into memory (Tiers+Shared.swift).
package protocol BackStore: AnyObject, Sendable {
    // MARK: life

    var health: BackStoreHealth { get }
    /// Whether `health` is `on`. Cheap.
    var isOn: Bool { get }
    var statistics: BackStoreStatistics { get }
    /// Whether the index is complete. Until it is, `find` returns `.loading` instead of `.nothing`.
    var isLoaded: Bool { get }
    /// Calls `call` once, on any thread, when the index is complete or the store has ended: immediately if that is so already.
    func whenLoaded(_ call: @escaping @Sendable () -> Void)
    /// Blocks until the index is complete, for a bounded time. Returns false if it still is not.
    func waitUntilLoaded() -> Bool
    /// New limits take effect at once.
    func setLimits(size: UInt64, pinned: UInt64, syncInterval: Duration)
    /// How many bytes of bodies and heads may wait to be written. More is refused. Takes effect at once.
    func setQueue(bytesMax: Int)
    /// Whether so much waits to be written that responses which can wait are not offered: half of `setQueue`.
    var isBehind: Bool { get }
    /// Whether the store is behind, and nothing was written for some seconds: nobody should wait for it.
    var isStuck: Bool { get }
    /// Calls `call` once, on any thread, when the store is no longer behind or has ended: immediately if that is so already.
    func whenCaughtUp(_ call: @escaping @Sendable () -> Void)
    /// Runs work that may block, on a thread of the store. Returns false, and does not run it, if too much work is waiting.
    func perform(_ work: @escaping @Sendable () -> Void) -> Bool
    /// Blocks until every change that was requested before is durable. Returns false if one of them is not.
    func flush() -> Bool
    /// Writes what is waiting and ends the threads of the store. Blocks. No other call may follow.
    func close()

    // MARK: looking

    func find(_ key: StorageKey) -> StoredPlaces
    /// Reads the head of the response at a place, and the bytes of its key. The store itself drops a response that is damaged.
    func readHead(_ place: StoredPlace, waits: Bool) throws(BackStoreReadError) -> StoredCopy
    /// Whether the response is stored, at any place.
    func contains(_ id: StoredID, _ key: StorageKey) -> Bool
    /// Whether the response is stored at this place.
    func contains(_ id: StoredID, _ key: StorageKey, at place: StoredPlace) -> Bool
    /// The responses that may have the key, were accepted and are not written yet. `find` does not return them. The latest head of each.
    func waiting(_ key: StorageKey) -> [ResponseToStore]
    /// Counts one use. Responses that are used are kept longer.
    func countUse(of id: StoredID, _ key: StorageKey)

    // MARK: bodies

    /// Reads bytes of a body that is stored in one piece, and compares their checksums.
    /// - Parameters:
    ///   - checksums: those that `readHead` returned.
    ///   - offset: a multiple of `Body.blockBytes`.
    ///   - room: it is filled. It has the length of whole blocks, or ends with the body.
    func readBody(
        at place: StoredPlace, checksums: [UInt32], from offset: Int, into room: UnsafeMutableRawBufferPointer,
        waits: Bool
    ) -> BackStoreRead
    /// Bytes of a body in one piece that `readBody` has read before, to be sent from their file. Nil if they must be read again, because
    /// that may block, or because the store has no files.
    func fileRange(of place: StoredPlace, from offset: Int, count: Int) -> FileRange?
    /// Opens the blocks of a large body. May block.
    func openBlocks(at place: StoredPlace, _ key: StorageKey) throws(BackStoreReadError) -> any BodyBlocks

    // MARK: storing

    /// Returns a number for a new response: higher than all earlier ones, and never used again, not even after a restart.
    func nextID() -> StoredID
    /// The number that `nextID` returned last.
    var newestID: StoredID { get }
    /// What `store` would return now.
    /// - Parameters:
    ///   - bytes: the length of the body, as far as it is known.
    ///   - isNow: whether the response would be stored at once, and not when its body has come.
    func prospect(bytes: Int, _ retention: Retention, isNow: Bool) -> StoringOutcome
    /// Accepts a response with a complete body of at most `Tiers.wholeBytesMax` bytes, to be written soon.
    /// - Parameter isPromised: whether the response is accepted however much waits to be written. Whoever promises that to clients holds
    ///   fetches back while the store is behind.
    func store(_ response: ResponseToStore, body: Body, isPromised: Bool) -> StoringOutcome
    /// Accepts a response with a large body of which no block is present yet.
    /// - Parameter length: of the body. Nil if it is not known yet: the response cannot be found before `BodyBlocks.finish`, and
    ///   nothing of it is left if the process ends before that.
    func makeBlocks(for response: ResponseToStore, length: Int?) -> Result<any BodyBlocks, StoringRefusal>
    /// Replaces attributes and head of a response; its body stays.
    func renew(_ response: ResponseToStore)
    /// Removes a response, even if it is still waiting to be written.
    func remove(_ id: StoredID, _ key: StorageKey, _ keyBytes: [UInt8])
    /// Removes a response that turned out to be damaged, and counts it.
    func removeDamaged(_ id: StoredID, _ key: StorageKey, _ keyBytes: [UInt8])
    /// Removes all variants of a key.
    /// - Returns: how many responses were removed at most. Responses whose keys have the same hash are counted, too.
    func removeAll(_ key: StorageKey, _ keyBytes: [UInt8]) -> Int

    // MARK: notes

    /// Keeps a few bytes over a restart, in place of an earlier note with the name. Blocks. Returns false if they are not kept.
    func keep(_ note: [UInt8], as name: String) -> Bool
    /// The note with the name. Blocks. Nil if there is none, or if it cannot be read.
    func note(_ name: String) -> [UInt8]?

    // MARK: listing

    /// Lists stored responses in the order of host and path, one page at a time. Blocks. Responses that were accepted before the
    /// last `flush` are listed.
    /// - Parameters:
    ///   - cursor: where the previous page ended. Nil begins the list.
    ///   - tag: if it is not nil, lists the responses that have this tag, and ignores `range`.
    ///   - limit: the most responses of a page.
    /// - Returns: nil if the list cannot be read.
    func page(after cursor: ListingCursor?, in range: ListingRange, tag: [UInt8]?, limit: Int) -> ListingPage?
}

/// The blocks of one large body on a back store. Each block is present or absent. May be used on any thread, on several at once.
package protocol BodyBlocks: AnyObject, Sendable {
    /// The length of the body in bytes. Nil until `finish` if it was not known.
    var length: Int? { get }
    /// The blocks that can be read, as ranges of bytes in increasing order. Ranges never touch.
    var extents: [Range<Int>] { get }
    /// Bytes that were accepted and are not written yet.
    var waitingBytes: Int { get }
    /// Accepts a whole block of the body to be written soon; only the last block may be shorter. The body is retained until then.
    /// - Parameter then: called once, on any thread: with true when the block can be read, with false if it cannot be written.
    func write(block: Int, of body: Body, then: @escaping @Sendable (Bool) -> Void)
    /// Reads blocks that are present, and compares their checksums. A block that turns out to be damaged leaves `extents`.
    /// - Parameters:
    ///   - offset: the beginning of a block.
    ///   - room: it is filled. Its length is a multiple of `Body.blockBytes`, or ends with the body.
    func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> BackStoreRead
    /// Bytes that `read` has read before, to be sent from their file: from `offset` on, at most `limit`. Nil as of `BackStore.fileRange`.
    func fileRange(from offset: Int, limit: Int) -> FileRange?
    /// Tells the store that these bytes will be needed soon.
    func readAhead(from offset: Int, length: Int)
    /// Sets the length of a body that was made without one. All its blocks were passed to `write` before, in order.
    /// - Parameter then: called once, on any thread: with true when the response is stored and can be found, with false if it is
    ///   not stored, because a block or the end could not be written or because the response was removed in the meantime.
    func finish(length: Int, then: @escaping @Sendable (Bool) -> Void)
    /// Gives up a body that was made without a length and is not finished. Nothing of it is stored. Blocks that were written can
    /// still be read. Does nothing the second time.
    func abandon()
}

extension BackStore {
    package func keep(_ note: [UInt8], as name: String) -> Bool { false }
    package func note(_ name: String) -> [UInt8]? { nil }
    package func fileRange(of place: StoredPlace, from offset: Int, count: Int) -> FileRange? { nil }
    package var isStuck: Bool { false }
    package func whenCaughtUp(_ call: @escaping @Sendable () -> Void) { call() }
    package func prospect(bytes: Int, _ retention: Retention, isNow: Bool) -> StoringOutcome { .accepted }
}

extension BodyBlocks {
    package func fileRange(from offset: Int, limit: Int) -> FileRange? { nil }
}

/// Whether a back store accepts new responses.
package enum BackStoreHealth: Equatable, Sendable {
    case on
    /// The store accepts nothing until there is space again or the error is gone. Responses that it has can still be read.
    case off(reason: String)
}

package enum StoringOutcome: Equatable, Sendable {
    case accepted
    /// Too much is waiting to be written.
    case busy
    case off
    case tooLarge
    case pinnedQuotaFull
}

/// Why a response is not stored.
package struct StoringRefusal: Error, Equatable, Sendable {
    package let outcome: StoringOutcome

    package init(_ outcome: StoringOutcome) {
        precondition(outcome != .accepted, "what is accepted is not refused")
        self.outcome = outcome
    }
}

/// The result of reading from a back store.
package enum BackStoreRead: Equatable, Sendable {
    /// The bytes were read, and they are those that were stored.
    case done
    case wouldBlock
    /// The bytes differ from those that were stored, or no longer exist.
    case damaged
    case failed(errno: CInt)
}

package enum BackStoreReadError: Error, Equatable, Sendable {
    case wouldBlock
    case damaged
    case failed(errno: CInt)
}

// MARK: making one

/// The settings of a zone for its back store.
package struct BackStoreSettings: Sendable {
    /// The directory of the store.
    package var path: String
    /// The most bytes that the store may take.
    package var size: UInt64
    /// How many of these bytes pinned responses may take.
    package var pinned: UInt64
    /// How often written data is made durable.
    package var syncInterval: Duration
    /// Hashes the bytes of a key. The result differs from process to process, so it must not be stored.
    package var key: @Sendable (_ keyBytes: [UInt8]) -> StorageKey
    /// Receives lines for the log, on any thread.
    package var log: @Sendable (BackStoreEvent) -> Void

    package init(
        path: String, size: UInt64, pinned: UInt64, syncInterval: Duration = .seconds(2),
        key: @escaping @Sendable ([UInt8]) -> StorageKey, log: @escaping @Sendable (BackStoreEvent) -> Void = { _ in }
    ) {
        self.path = path
        self.size = size
        self.pinned = pinned
        self.syncInterval = syncInterval
        self.key = key
        self.log = log
    }
}

/// An event that the operator should know about.
package struct BackStoreEvent: Equatable, Sendable {
    package enum Level: Sendable { case info, warning, error }
    package let level: Level
    package let text: String

    package init(_ level: Level, _ text: String) {
        self.level = level
        self.text = text
    }
}

/// Why a back store cannot be opened. The store was not changed.
package struct BackStoreRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    /// The directory that was refused, or a file in it.
    package let path: String
    /// Another process uses it.
    package let isInUse: Bool
    /// What is wrong, for the operator.
    package let description: String

    package init(path: String, isInUse: Bool, _ description: String) {
        self.path = path
        self.isInUse = isInUse
        self.description = description
    }

    /// Whether the refusal is about the store in this directory.
    package func concerns(_ directory: String) -> Bool { path == directory || path.hasPrefix("\(directory)/") }
}
