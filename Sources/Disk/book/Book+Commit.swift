import CLMDB
import Glibc

// Writing the book: each batch is one transaction.
//
// LMDB never overwrites a page that the last commit uses. It writes new pages, synchronizes, and then writes one of the two meta pages,
// which makes the new pages valid. A crash at any point leaves the state before the transaction or the one after it.
extension Book {
    /// Applies the changes in one transaction, which is on the medium when this returns. If it throws, nothing was changed. Blocks;
    /// batches of several threads follow one another.
    package func commit(_ changes: [BookChange]) throws(BookError) {
        guard !changes.isEmpty else { return }
        let batch = BookBatch(changes)
        try writing.withLock { _ throws(BookError) in
            // After an error of the medium LMDB refuses every transaction until the environment is opened again.
            if environment.hasFailed { try environment.reopen() }
            try makeRoom(for: batch)
            while true {
                do throws(BookError) {
                    return try attempt(batch)
                } catch .full {
                    guard try growMap(for: batch) else { throw .full }
                }
            }
        }
    }

    private func attempt(_ batch: BookBatch) throws(BookError) {
        let reserved = max(batch.reserved, reservedIDs.rawValue)
        let objects = try environment.write { transaction throws(BookError) in
            try batch.apply(to: transaction, self)
            // With each batch. The number of the transaction tells the next start which of the two roots is which (`BookCheck`).
            try transaction.put(.meta, BookMeta.idsKey, BookMeta.encode(reserved, key: BookMeta.idsKey))
            try transaction.put(
                .meta, BookMeta.commitKey, BookMeta.encode(transaction.number, key: BookMeta.commitKey))
            // Tests let commits fail here: what was done so far is undone with the transaction.
            let verdict = calls.mayCommit()
            if verdict < 0 { throw .failed(errno: CInt(-verdict)) }
            return try transaction.entryCount(.objects)
        }
        noteReserved(reserved)
        noteCommitted(objects: objects)
    }

    /// Takes back the space that the book was given for a removal, if it has more than its limit.
    private func makeRoom(for batch: BookBatch) throws(BookError) {
        let bytesMax = mapBytesMax(adds: batch.adds)
        if environment.mapBytes > bytesMax { try environment.setMap(bytesMax) }
    }

    /// Returns false if the map has its limit already.
    private func growMap(for batch: BookBatch) throws(BookError) -> Bool {
        let before = environment.mapBytes
        let bytes = min(before * 2, mapBytesMax(adds: batch.adds))
        guard bytes > before else { return false }
        try environment.setMap(bytes)
        return environment.mapBytes > before
    }
}

/// The changes of a batch, in the order that touches the fewest pages. Sorting is allowed because changes of different objects do not
/// depend on each other, and those of one object have the same key and keep their order.
private struct BookBatch {
    private let changes: [BookChange]
    /// The changes of objects, by key in the book. Those of one object keep their order.
    private var order: [ObjectChange] = []
    /// All keys in the book, one behind the other. Sorting compares them here, and so counts no references.
    private var keys: [UInt8] = []
    /// Nil: the segment is forgotten.
    private var segments: [UInt32: BookSegment?] = [:]
    private(set) var reserved: UInt64 = 0
    private var notes: [String: [UInt8]] = [:]
    /// Whether anything is put or renewed.
    private(set) var adds = false

    /// One change of an object.
    private struct ObjectChange {
        /// In `changes`.
        var position: Int
        /// In `keys`.
        var key: Range<Int>
        var isCut: Bool
    }

    init(_ changes: [BookChange]) {
        self.changes = changes
        order.reserveCapacity(changes.count)
        for position in changes.indices {
            switch changes[position] {
            case .put(let entry):
                adds = true
                append(position, entry.id, entry.key)
            case .renew(let id, let key, _, _):
                adds = true
                append(position, id, key)
            case .remove(let id, let key): append(position, id, key)
            case .segment(let number, let state): segments[number] = .some(state)
            case .forgetSegment(let number): segments[number] = .some(nil)
            case .reserveIDs(let id): reserved = max(reserved, id.rawValue)
            case .note(let name, let value): notes[name] = value
            }
        }
        let count = order.count
        unsafe keys.withUnsafeBytes { keys in
            // Swift does not promise that its sort is stable, so the position in the batch decides between equal keys.
            order.sort { one, other in
                let order = unsafe bookCompare(
                    UnsafeRawBufferPointer(rebasing: keys[one.key]), UnsafeRawBufferPointer(rebasing: keys[other.key]))
                return order == 0 ? one.position < other.position : order < 0
            }
        }
        precondition(order.count == count, "sorting loses no change")
    }

    private mutating func append(_ position: Int, _ id: ObjectID, _ key: [UInt8]) {
        let (bytes, isCut) = BookOrder.bookKey(id, key)
        precondition(bytes.count <= BookOrder.bookKeyBytesMax, "LMDB takes keys of this length")
        order.append(ObjectChange(position: position, key: keys.count..<keys.count + bytes.count, isCut: isCut))
        keys += bytes
    }

    func apply(to transaction: borrowing BookTransaction, _ book: Book) throws(BookError) {
        let writer = BookWriter(objects: try transaction.cursor(.objects), book: book)
        for object in order {
            let (key, isCut) = (Array(keys[object.key]), object.isCut)
            switch changes[object.position] {
            case .put(let entry):
                try writer.put(entry, key, BookCodec.encode(entry, bookKey: key, isCut: isCut), transaction)
            case .remove(let id, _): try writer.remove(id, key, transaction)
            case .renew(let id, _, let attributes, let head):
                try writer.renew(id, key, isCut: isCut, BookRenewal(attributes: attributes, head: head), transaction)
            case .segment, .forgetSegment, .reserveIDs, .note:
                preconditionFailure("this change concerns no object")
            }
        }
        for (name, value) in notes {
            let key = BookMeta.noteKey(name)
            try transaction.put(.meta, key, BookMeta.encode(value, key: key))
        }
        for (number, state) in segments {
            let key = BookCodec.segmentKey(number)
            if let state {
                try transaction.put(.segments, key, BookCodec.encode(state, bookKey: key))
            } else {
                try transaction.remove(.segments, key)
            }
        }
    }
}

/// Keeps tags and renewed heads consistent with the objects, within one transaction: no reader sees an object without its tags. An old
/// entry that cannot be decoded is treated as if it had no tags and might have a renewed head. What stays behind then leads nowhere.
private struct BookWriter: ~Copyable {
    let objects: BookPosition
    let book: Book

    func put(
        _ entry: BookEntry, _ key: [UInt8], _ value: [UInt8], _ transaction: borrowing BookTransaction
    ) throws(BookError) {
        var oldTags: [[UInt8]] = []
        // Most entries are new. Only for one that exists is the old value needed: it says which tags and which renewed head must
        // go.
        if let there = unsafe try objects.insert(key, value) {
            let old = unsafe decode(key, there)
            try objects.put(key, value)
            if !entry.hasRenewedHead, old?.hasRenewedHead != false {
                try transaction.remove(.renewals, BookCodec.renewalKey(entry.id))
            }
            oldTags = old?.attributes.tags ?? []
        }
        try replaceTags(oldTags, by: entry.attributes.tags, entry.id, key, transaction)
    }

    func remove(_ id: ObjectID, _ key: [UInt8], _ transaction: borrowing BookTransaction) throws(BookError) {
        guard let there = unsafe try objects.move(to: key) else { return }
        let old = unsafe decode(key, there)
        try objects.removeCurrent()
        // The tags of an entry that cannot be read stay behind. Following one leads to no object.
        try replaceTags(old?.attributes.tags ?? [], by: [], id, key, transaction)
        if old?.hasRenewedHead != false { try transaction.remove(.renewals, BookCodec.renewalKey(id)) }
    }

    func renew(
        _ id: ObjectID, _ key: [UInt8], isCut: Bool, _ renewal: BookRenewal, _ transaction: borrowing BookTransaction
    ) throws(BookError) {
        guard let there = unsafe try objects.move(to: key), var entry = unsafe decode(key, there) else { return }
        let oldTags = entry.attributes.tags
        entry.attributes = renewal.attributes
        entry.hasRenewedHead = true
        try objects.put(key, BookCodec.encode(entry, bookKey: key, isCut: isCut))
        let renewalKey = BookCodec.renewalKey(id)
        try transaction.put(.renewals, renewalKey, BookCodec.encode(renewal, bookKey: renewalKey))
        try replaceTags(oldTags, by: renewal.attributes.tags, id, key, transaction)
    }

    private func decode(_ key: [UInt8], _ value: UnsafeRawBufferPointer) -> BookEntry? {
        var shared = BookShared()
        let entry = unsafe key.withUnsafeBytes { unsafe BookCodec.entry(bookKey: $0, value: value, sharing: &shared) }
        if entry == nil { book.noteDamaged("an entry of objects") }
        return entry
    }

    private func replaceTags(
        _ old: [[UInt8]], by new: [[UInt8]], _ id: ObjectID, _ key: [UInt8], _ transaction: borrowing BookTransaction
    ) throws(BookError) {
        guard old != new else { return }
        let (gone, come) = (Set(old).subtracting(new), Set(new).subtracting(old))
        for tag in gone { try transaction.remove(.tags, BookCodec.tagKey(tag, id)) }
        for tag in come {
            let tagKey = BookCodec.tagKey(tag, id)
            try transaction.put(.tags, tagKey, BookCodec.encodeTag(tagKey, bookKey: key))
        }
    }
}
