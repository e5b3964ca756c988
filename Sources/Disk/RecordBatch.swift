/// Records that are written in one go, one behind the other. Bodies stay where they are, small ones are copied.
///
///     var batch = RecordBatch(file.identity, at: file.end)
///     let place = try batch.add(object)
///     try file.append(batch)
package struct RecordBatch {
    package let identity: SegmentIdentity
    /// Where its first record will stand.
    package let start: UInt64

    package init(_ identity: SegmentIdentity, at start: UInt64) {
        self.identity = identity
        self.start = start
    }

    /// Bytes of all records, padding included.
    package var byteCount: Int { fatalError() }
    package var isEmpty: Bool { byteCount == 0 }

    /// Adds an object, of which it computes the checksums. Returns where it will stand.
    package mutating func add(_ object: PackedObject) throws(RecordError) -> Place { fatalError() }

    /// Adds as many records of drops as it takes.
    package mutating func add(drops: [DroppedObject], storedAt: Int64) { fatalError() }

    /// Adds an object that was read: with its checksums as they are, so that damage on the way would show.
    /// - Parameter head: of whatever place; renewed or not.
    package mutating func add(copyOf head: StoredHead, body: [UInt8]) throws(RecordError) -> Place { fatalError() }
}
