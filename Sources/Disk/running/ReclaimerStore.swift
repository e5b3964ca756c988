/// What the reclaimer needs of the running store. Everything is called on the reclaimer's thread, with no lock held, and may
/// block.
protocol ReclaimerStore: AnyObject, Sendable {
    /// Walks all records of a closed segment in order, until the visitor returns false. Skips records whose head is damaged.
    func scan(_ segment: UInt32, _ visit: (VictimRecord) -> Bool) throws(DiskReadError)

    /// What the index says of a record. Returns nil if the record is not live at that place.
    func status(of head: StoredHead) -> RecordStatus?

    /// Reads a live record as it is to be written: with its renewed head, if it has one, and with its body, whose checksums are
    /// compared. Returns nil if it was removed meanwhile. The caller answers `.damaged` with `dropDamaged`.
    func read(_ head: StoredHead) throws(DiskReadError) -> MovedRecord?

    /// Has records written to the active segment and waits for it. Then, for each record: if the index still has it at `from`, the
    /// index, the ledger and the next commit get the new place. If not, it was removed meanwhile, and a drop record names it at
    /// its new place, so that no rebuilt book brings it back.
    /// - Parameter room: bytes that were claimed for all of this, drop records included. What is not used is given back.
    /// - Returns: false if the records could not be written. The whole claim was given back then.
    func move(_ records: [MovedRecord], room: UInt64) -> Bool

    /// Has the book note, not later than the new places, that records of this segment were copied forward.
    func noteEmptied(_ segment: UInt32)

    /// Has drop records written, like `move`.
    func carry(_ drops: [DroppedObject], room: UInt64) -> Bool

    /// Has drop records written as soon as there is space. Nobody waits for it.
    func owe(_ drops: [DroppedObject])

    /// Takes a record out of index, ledger and book if it is still at that place. The reclaimer has the drop record written itself
    /// (`carry`).
    func evict(_ head: StoredHead)
    /// Drops a record that is damaged: as anywhere else, it is counted and logged and gets a drop record.
    func dropDamaged(_ head: StoredHead)

    /// What the index says of a large object. Returns nil if it is gone.
    func status(ofLarge segment: UInt32) -> RecordStatus?
    /// Takes one use away from a large object.
    func decrementUses(large segment: UInt32)
    /// Takes a large object out of index, ledger and book. The caller writes its drop record. Returns nil if it was gone.
    func evict(large segment: UInt32) -> ObjectID?

    /// Deletes the file once everything requested so far is in the book and on the medium. Until then, readers that know an old
    /// place can still use it. The book forgets the number of the file (`forgetSegment`) only after the deletion: the next start
    /// takes a file that the book does not know for a new one, and everything in it for stored.
    func deleteAfterCommit(_ segment: UInt32)
    /// Asks for a commit without waiting for it.
    func commitSoon()
    /// Commits, deletes the files that waited for it, and returns when that succeeded or failed.
    func commitAndDelete()
}

/// A record of a victim.
enum VictimRecord: Sendable {
    case object(StoredHead)
    /// Objects that were removed, each with the number of the file it stood in.
    case drops([DroppedObject])
}

/// What the index says of a live record.
struct RecordStatus: Sendable, Equatable {
    /// How often it was used since it was written or last examined, 0 to 3.
    var useMark: UInt8
    var isPinned: Bool
}

/// A record to be written again at a place that the writer chooses. It keeps its number.
struct MovedRecord: Sendable {
    var id: ObjectID
    var key: [UInt8]
    var from: Place
    /// The renewed attributes, if it was renewed. The same holds for `head`.
    var attributes: ObjectAttributes
    var head: [UInt8]
    var checksums: [UInt32]
    var body: any BodyBytes
    /// The renewal that `head` contains, as the store numbers them. If there is a later one, the record stays marked as renewed.
    /// Nil if there is none.
    var renewal: UInt64?

    /// The bytes it will take.
    var recordLength: UInt64 {
        let headPart = RecordCodec.headPartLength(
            kind: .packed, key: key, attributes: attributes, head: head, bodyLength: body.byteCount)
        // A head part that is too long cannot occur: renewed heads are held to the same limit before they are stored.
        return UInt64(headPart ?? RecordHeader.headPartBytesMax) + padded(UInt64(body.byteCount), to: 16)
    }
}
