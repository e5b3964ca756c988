/// Frees units, one after the other, on a thread of its own: decides which records are copied forward, has the writer
/// write them, and lets the file go when the book no longer needs it.
///
///     victim ──scan──▶ wanted: copied forward, then found at the new place    ──book's commit──▶ file deleted
///                      not wanted: out of the index and out of the book
///
/// It knows nothing of queues, index or book: `ReclaimerHouse` is what it needs of the running store.
final class Reclaimer: Sendable {
    private let house: any ReclaimerHouse

    init(house: any ReclaimerHouse) { self.house = house }
}

/// A record as the scan of a victim meets it.
enum VictimRecord: Sendable {
    case object(id: ObjectID, key: [UInt8], place: Place, storageClass: StorageClass)
    /// Objects that were removed, and the file that each stood in.
    case drops([DroppedObject])
}

struct DroppedObject: Sendable, Hashable {
    var id: ObjectID
    var segment: UInt32
}

/// What the index says of a live record.
struct RecordStanding: Sendable, Equatable {
    /// 0: not used since it was looked at last; at most 3.
    var useMark: UInt8
    /// It has a renewed head in the book.
    var isRenewed: Bool
}

/// A record to be written anew, at a place that the writer chooses.
struct MovedRecord: Sendable {
    var id: ObjectID
    var hash: UInt64
    var key: [UInt8]
    var from: Place
    var attributes: ObjectAttributes
    /// The renewed one, where there is one.
    var head: [UInt8]
    var checksums: [UInt32]
    var body: any BodyBytes
    /// Says which renewal is in `head`: with a later one the record stays marked as renewed. Nil: none.
    var renewal: UInt64?
}

/// What reclaiming needs of the running store. All is called on the reclaimer's thread, and may block.
protocol ReclaimerHouse: AnyObject, Sendable {
    /// The ledger, under its lock.
    func withLedger<Result>(_ body: (inout Ledger) -> Result) -> Result

    /// Walks all whole records of a closed segment, in order; those that are damaged are passed over.
    func scan(_ segment: UInt32, _ visit: (VictimRecord) -> Void) throws(DiskReadError)

    /// What the index says; nil: no live record stands at that place.
    func standing(of key: [UInt8], at place: Place) -> RecordStanding?

    /// A live record with its renewed head and its body, all checked.
    func read(_ id: ObjectID, _ key: [UInt8], at place: Place) throws(DiskReadError) -> MovedRecord

    /// Has records written into the active segment, and then, one by one: where the index still has it at `from`, puts the new
    /// place there, tells the ledger (`move`) and the book's batch; where not, the object was removed meanwhile: then a drop
    /// record for the new place is written, so that no rebuilding of the book brings it back. Room was claimed for them
    /// (`recordLength` of each): unclaimed where it is not used.
    /// - Returns: once they are written. False: they could not be.
    func move(_ records: [MovedRecord]) -> Bool

    /// Has a drop record written for objects whose files are still there. Room was claimed for it.
    func carry(_ drops: [DroppedObject]) -> Bool

    /// Takes a live record out of index and book, where it still stands at that place, and tells the ledger. It need not be
    /// written that it is gone: its file goes too.
    func evict(_ id: ObjectID, _ key: [UInt8], at place: Place)

    /// A large object: what the index says. Nil: it is not there any more.
    func standing(ofLarge segment: UInt32) -> RecordStanding?
    /// Takes one use mark from a large object.
    func forgive(large segment: UInt32)
    /// Takes a large object out of index and book.
    func evict(large segment: UInt32)

    /// Once all that was asked for so far is in the book and on the medium: deletes the file, and has it out of the ledger.
    func deleteAfterCommit(_ segment: UInt32)
}
