/// One FIFO of S3-FIFO: an intrusive list of stored responses, newest first. Protected by the lock of its shard.
///
/// The table owns the responses, and the queue has unretained pointers to them. A response must therefore leave its queue before it
/// leaves the table: otherwise the queue would point to freed memory.
@safe struct RecordQueue {
    private var newest: Unmanaged<StoredRecord>?
    private var oldest: Unmanaged<StoredRecord>?
    private(set) var count = 0
    /// The sum of the weights of the responses in the queue.
    private(set) var bytes = 0
    private let place: StoredRecord.Place

    init(_ place: StoredRecord.Place) { self.place = place }

    /// The response that is evicted next.
    var last: StoredRecord? { unsafe oldest?.takeUnretainedValue() }

    mutating func push(_ record: StoredRecord) {
        precondition(record.weight >= 0, "a weight is not negative")
        precondition(record.place == .nowhere, "a response is in one queue only")
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
        precondition(record.place == place, "the response is in this queue")
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
        precondition(count > 0 && bytes >= record.weight, "what leaves a queue was counted in it")
        count -= 1
        bytes -= record.weight
    }

    /// Replaces `old` by `new`, at the same place.
    mutating func substitute(_ new: StoredRecord, for old: StoredRecord) {
        precondition(old.place == place && new.place == .nowhere, "a new one takes the place of one in the queue")
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

    /// Changes the weight of a response in this queue.
    mutating func reweigh(_ record: StoredRecord, to weight: Int) {
        precondition(record.place == place && weight >= 0, "a response of this queue has a weight")
        bytes += weight - record.weight
        record.weight = weight
    }
}
