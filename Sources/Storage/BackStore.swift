/// A store of responses behind memory: on a disk today (the DiskTier target), on other machines some day.
///
/// `Tiers` is what uses it. It knows responses by their key (a hash; the bytes of the key are compared by `Tiers`), gives
/// each a number, and holds of each its key, attributes, head and body. What a head says it does not know.
///
/// All calls are for any thread, several at once, and none blocks unless it says so. Where a call has `waits`, false means
/// that it must not block: it answers `wouldBlock` instead, and is made again with true on a thread of `perform`.
///
/// A new engine is a target with one class that conforms, and one line in Zones.swift that makes it.
package protocol BackStore: AnyObject, Sendable {
    // MARK: life

    var health: BackStoreHealth { get }
    /// As `health`, without the reason: cheap.
    var isOn: Bool { get }
    var statistics: BackStoreStatistics { get }
    /// It knows all that it holds. Until then `find` answers `.loading` where it has found nothing.
    var isLoaded: Bool { get }
    /// Calls once, on any thread; at once where it is loaded.
    func whenLoaded(_ call: @escaping @Sendable () -> Void)
    /// Blocks until it is loaded, for a bounded time. False: it is not.
    func waitUntilLoaded() -> Bool
    /// New limits take effect at once.
    func setLimits(size: UInt64, pinned: UInt64, syncInterval: Duration)
    /// Runs work that may block on a thread for that. False: too much waits already.
    func perform(_ work: @escaping @Sendable () -> Void) -> Bool
    /// Blocks until all that was asked for before is durable. False: something of it is not.
    func flush() -> Bool
    /// Writes what waits and ends its threads. Blocks. Nothing else may be asked of it afterwards.
    func close()

    // MARK: looking

    func find(_ key: StorageKey) -> StoredPlaces
    /// The head of the response at a place, with the bytes of its key. What is damaged the store drops itself.
    func readHead(_ place: StoredPlace, waits: Bool) throws(BackStoreReadError) -> StoredCopy
    /// The response is there, wherever it stands by now.
    func contains(_ id: StoredID, _ key: StorageKey) -> Bool
    /// The response is there, at this place.
    func contains(_ id: StoredID, _ key: StorageKey, at place: StoredPlace) -> Bool
    /// Responses that were accepted under the key and are not written yet: `find` does not know of them.
    func waiting(_ key: StorageKey) -> [StoredID]
    /// Counts one use: what is used is kept longer.
    func countUse(of id: StoredID, _ key: StorageKey)

    // MARK: bodies

    /// Bytes of a body stored in one piece: fills `room` from `offset` on, a multiple of `Body.blockBytes`, with whole
    /// blocks or up to the end, and checks them.
    /// - Parameter checksums: as `readHead` gave them.
    func readBody(
        at place: StoredPlace, checksums: [UInt32], from offset: Int, into room: UnsafeMutableRawBufferPointer,
        waits: Bool
    ) -> BackStoreRead
    /// The blocks of a large body. May block.
    func openBlocks(at place: StoredPlace, _ key: StorageKey) throws(BackStoreReadError) -> any BodyBlocks

    // MARK: storing

    /// A number for a response to be stored: higher than all before it, and never used again.
    func nextID() -> StoredID
    /// The number given out last.
    var newestID: StoredID { get }
    /// Accepts a response with a complete body of at most `Tiers.wholeBytesMax` bytes, to be written soon.
    func store(_ response: ResponseToStore, body: Body) -> StoringOutcome
    /// Accepts a response with a large body of which nothing is there yet.
    func makeBlocks(for response: ResponseToStore, length: Int) -> Result<any BodyBlocks, StoringRefusal>
    /// Replaces attributes and head of a response; its body stays.
    func renew(_ response: ResponseToStore)
    /// Removes a response, also one that waits to be written.
    func remove(_ id: StoredID, _ key: StorageKey, _ keyBytes: [UInt8])
    /// Removes a response that turned out damaged, and counts that.
    func removeDamaged(_ id: StoredID, _ key: StorageKey, _ keyBytes: [UInt8])
    /// Removes all variants of a key.
    /// - Returns: how many there may have been; keys with the same hash may be among them.
    func removeAll(_ key: StorageKey, _ keyBytes: [UInt8]) -> Int

    // MARK: listing

    /// A page of what is stored, in the order of host and path. Blocks. What was accepted before `flush` is in it.
    /// - Parameters:
    ///   - cursor: where the page before ended; nil: the beginning.
    ///   - tag: those that have it, in place of a range.
    ///   - limit: responses of a page.
    /// - Returns: nil: it cannot be listed.
    func page(after cursor: ListingCursor?, in range: ListingRange, tag: [UInt8]?, limit: Int) -> ListingPage?
}

/// The blocks of one large body on a back store, each there or not. Used by any thread, several at once.
package protocol BodyBlocks: AnyObject, Sendable {
    /// Of the body, in bytes.
    var length: Int { get }
    /// The blocks that can be read, as ranges of bytes: in order, never adjacent.
    var extents: [Range<Int>] { get }
    /// Bytes accepted and not yet written.
    var waitingBytes: Int { get }
    /// Accepts a whole block of the body (the last may be shorter) to be written soon; the body is held until then.
    /// `then` is called on some thread when the block can be read, or with false when it cannot be written.
    func write(block: Int, of body: Body, then: @escaping @Sendable (Bool) -> Void)
    /// Reads blocks that are there, from the beginning of a block on: fills `room`, a multiple of `Body.blockBytes` or up
    /// to the end. A block found damaged is no longer among `extents`.
    func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> BackStoreRead
    /// Says that these bytes will be wanted soon.
    func readAhead(from offset: Int, length: Int)
}

/// Whether a back store takes what it is given.
package enum BackStoreHealth: Equatable, Sendable {
    case on
    /// It stores nothing until there is room or the error has gone; what it holds is read.
    case off(reason: String)
}

package enum StoringOutcome: Equatable, Sendable {
    case accepted
    /// Too much waits to be written.
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

/// How reading from a back store went.
package enum BackStoreRead: Equatable, Sendable {
    /// The bytes are there, and are those that were stored.
    case done
    case wouldBlock
    /// The bytes are not those that were stored, or are gone.
    case damaged
    case failed(errno: CInt)
}

package enum BackStoreReadError: Error, Equatable, Sendable {
    case wouldBlock
    case damaged
    case failed(errno: CInt)
}

// MARK: making one

/// What a zone says of its back store.
package struct BackStoreSettings: Sendable {
    /// The directory.
    package var path: String
    /// Bytes it may take in all.
    package var size: UInt64
    /// Bytes of these that pinned responses may take.
    package var pinned: UInt64
    /// Between two times that what was written is made durable.
    package var syncInterval: Duration
    /// The hash of a key's bytes. Differs from one process to the next, so it is not to be stored.
    package var key: @Sendable (_ keyBytes: [UInt8]) -> StorageKey
    /// Lines for the log, on any thread.
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

/// What the operator should hear of.
package struct BackStoreEvent: Equatable, Sendable {
    package enum Level: Sendable { case info, warning, error }
    package let level: Level
    package let text: String

    package init(_ level: Level, _ text: String) {
        self.level = level
        self.text = text
    }
}

/// Why a back store cannot be opened. Nothing of it was changed.
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

    /// It is about the store in this directory.
    package func concerns(_ directory: String) -> Bool { path == directory || path.hasPrefix("\(directory)/") }
}
