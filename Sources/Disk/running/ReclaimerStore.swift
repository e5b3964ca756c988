/// What reclaiming needs of the running store. All is called on the reclaimer's thread, under no lock, and may block.
protocol ReclaimerStore: AnyObject, Sendable {
    /// Walks all whole records of a closed segment, in order, until the visitor returns false; those whose head is damaged are
    /// passed over.
    func scan(_ segment: UInt32, _ visit: (VictimRecord) -> Bool) throws(DiskReadError)

    /// What the index says of a record; nil: it is not live at that place.
    func status(of head: StoredHead) -> RecordStatus?

    /// A live record as it is to be written: with its renewed head, where it has one, and its body, which is checked. Nil: it was
    /// removed meanwhile. `.damaged` is followed by `dropDamaged`.
    func read(_ head: StoredHead) throws(DiskReadError) -> MovedRecord?

    /// Has records written into the active segment, then for each: where the index still has it at `from`, puts the new place there,
    /// tells the ledger (`move`) and the book's batch; where not, it was removed meanwhile, and its new place goes into a drop
    /// record, so that no rebuilding of the book brings it back.
    /// - Parameter room: bytes that were claimed for all this, drop record included. What is not written is unclaimed.
    /// - Returns: when they are written. False: they could not be; all room was unclaimed.
    func move(_ records: [MovedRecord], room: UInt64) -> Bool

    /// Has drop records written; as `move`.
    func carry(_ drops: [DroppedObject], room: UInt64) -> Bool

    /// Takes a record out of index and book, where it still stands at that place, and tells the ledger. The reclaimer has the drop
    /// record written itself (`carry`).
    func evict(_ head: StoredHead)
    /// As wherever else damage is met: with its drop record, counted and logged.
    func dropDamaged(_ head: StoredHead)

    /// What the index says of a large object; nil: it is not there any more.
    func status(ofLarge segment: UInt32) -> RecordStatus?
    /// Takes one use from a large object.
    func decrementUses(large segment: UInt32)
    /// Takes a large object out of index and book, and tells the ledger. The drop record as with others. Nil: it was not there.
    func evict(large segment: UInt32) -> ObjectID?

    /// Once all that was asked for so far is in the book and on the medium: deletes the file, and has it out of the ledger. Until then
    /// who holds the old place still reads there. The book forgets the file's number (`forgetSegment`) only after it is deleted: a
    /// file that the book does not know is taken for a new one at the next start, and all that stands in it for stored.
    func deleteAfterCommit(_ segment: UInt32)
    /// The book should not wait for its next turn.
    func commitSoon()
    /// Commits now, and deletes what waited for it; returns when it is done, or could not be.
    func commitAndDelete()
}

/// A record as the scan of a victim meets it.
enum VictimRecord: Sendable {
    case object(StoredHead)
    /// Objects that were removed, and the file that each stood in.
    case drops([DroppedObject])
}

/// What the index says of a live record.
struct RecordStatus: Sendable, Equatable {
    /// 0: not used since it was written or looked at last; at most 3.
    var useMark: UInt8
    var isPinned: Bool
}

/// A record to be written anew, at a place that the writer chooses. It keeps its id.
struct MovedRecord: Sendable {
    var id: ObjectID
    var key: [UInt8]
    var from: Place
    /// Renewed ones, where there are.
    var attributes: ObjectAttributes
    var head: [UInt8]
    var checksums: [UInt32]
    var body: any BodyBytes
    /// Which renewal is in `head`: where there is a later one, the record stays marked as renewed. Nil: none. What the number
    /// means is the house's own affair.
    var renewal: UInt64?

    /// Bytes it will take.
    var recordLength: UInt64 {
        let headPart = RecordCodec.headPartLength(
            kind: .packed, key: key, attributes: attributes, head: head, bodyLength: body.length)
        // One that is too long for a head part can not have been stored: renewed heads are held to the same limit.
        return UInt64(headPart ?? RecordHeader.headPartBytesMax) + padded(UInt64(body.length), to: 16)
    }
}
