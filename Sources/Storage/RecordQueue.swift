/// One FIFO of S3-FIFO: records linked through themselves, newest first. The table owns the records; the queue only
/// points at them, so a record leaves its queue before it leaves the table. Guarded by the lock of its shard.
@safe struct RecordQueue {
    private var newest: Unmanaged<StoredRecord>?
    private var oldest: Unmanaged<StoredRecord>?
    private(set) var count = 0
    /// Sum of the weights of the records in here.
    private(set) var bytes = 0
    private let place: StoredRecord.Place

    init(_ place: StoredRecord.Place) { self.place = place }

    /// The next to be evicted.
    var last: StoredRecord? { unsafe oldest?.takeUnretainedValue() }

    mutating func push(_ record: StoredRecord) {
        precondition(record.place == .nowhere, "a record stands in one queue")
        let reference = unsafe Unmanaged.passUnretained(record)
        unsafe record.newer = nil
        unsafe record.older = newest
        if let next = unsafe newest {
            unsafe next.takeUnretainedValue().newer = reference
        } else {
            unsafe oldest = reference
        }
        unsafe newest = reference
        record.place = place
        count += 1
        bytes += record.weight
    }

    mutating func remove(_ record: StoredRecord) {
        precondition(record.place == place, "the record stands in another queue")
        if let next = unsafe record.newer {
            unsafe next.takeUnretainedValue().older = record.older
        } else {
            unsafe newest = record.older
        }
        if let next = unsafe record.older {
            unsafe next.takeUnretainedValue().newer = record.newer
        } else {
            unsafe oldest = record.newer
        }
        unsafe record.newer = nil
        unsafe record.older = nil
        record.place = .nowhere
        count -= 1
        bytes -= record.weight
    }

    /// Puts `new` where `old` stood.
    mutating func substitute(_ new: StoredRecord, for old: StoredRecord) {
        precondition(old.place == place && new.place == .nowhere)
        let reference = unsafe Unmanaged.passUnretained(new)
        unsafe new.newer = old.newer
        unsafe new.older = old.older
        if let next = unsafe old.newer {
            unsafe next.takeUnretainedValue().older = reference
        } else {
            unsafe newest = reference
        }
        if let next = unsafe old.older {
            unsafe next.takeUnretainedValue().newer = reference
        } else {
            unsafe oldest = reference
        }
        unsafe old.newer = nil
        unsafe old.older = nil
        old.place = .nowhere
        new.place = place
        bytes += new.weight - old.weight
    }

    /// The record's weight changed while it stands in here.
    mutating func reweigh(_ record: StoredRecord, to weight: Int) {
        bytes += weight - record.weight
        record.weight = weight
    }
}
