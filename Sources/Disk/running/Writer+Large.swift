import Glibc

/// Blocks of one object that are written and not yet in its table.
struct BlockRun: Sendable {
    var object: LargeObject?
    var written: [LargeFile.WrittenBlock] = []
    var calls: [@Sendable (Bool) -> Void] = []
    var bytes = 0

    /// Blocks that are entered at a time: 1 MiB.
    static let countMax = 16
}

extension Writer {
    // MARK: new ones

    func make(_ object: LargeObject) {
        writeBatch()
        if !object.isClaimed {
            guard parts.pending.contains(object.hash, object.id), parts.health.isOn else { return refuse(object) }
            switch claimSpace(object.fileBytes) {
            case .granted: break
            case .wait: return deferUntilSpace(.makeLarge(object), object.id)
            case .never: return refuse(object)
            }
        }
        guard parts.pending.contains(object.hash, object.id), parts.health.isOn, let file = created(object) else {
            parts.ledger.withLock { $0.unclaim(object.fileBytes) }
            return refuse(object)
        }
        begin(object, file)
    }

    /// It is not stored after all.
    private func refuse(_ object: LargeObject) {
        if parts.pending.cancel(object.hash, object.id) {
            parts.counters.lostObjects.count()
            parts.counters.droppedObjects.count()
        }
        parts.ledger.withLock { $0.withdraw(object.place.recordLength, object.attributes.storageClass) }
        object.fail()
    }

    private func created(_ object: LargeObject) -> LargeFile? {
        let number = object.place.segment
        if madeDirectories.insert(number & 0xFF).inserted {
            // Where it fails the file can not be made, and that is told.
            _ = unsafe mkdir(parts.directory.largeDirectory(number), 0o700)
            keeper.touch(directory: parts.directory.largePath)
        }
        do throws(DiskFileError) {
            return try LargeFile.create(
                parts.directory.largePath(number), parts.identity(number), id: object.id, key: object.key,
                attributes: object.attributes, head: object.takeHead(), length: object.length, calls: parts.calls)
        } catch {
            failed(error, "a large object could not be made")
            return nil
        }
    }

    private func begin(_ object: LargeObject, _ file: LargeFile) {
        let number = object.place.segment
        parts.ledger.withLock { ledger in
            ledger.begin(number, .large)
            ledger.grew(number, by: object.fileBytes)
        }
        guard
            let entry = DiskIndexEntry(
                hash: object.hash, id: object.id, place: object.place, storageClass: object.attributes.storageClass,
                isRenewed: parts.renewals.latest(of: object.id) != nil)
        else { preconditionFailure("what could be encoded can be named") }
        object.begin(file)
        let isPublished = parts.pending.publish(object.hash, object.id) {
            let isNew = parts.addToIndex(entry, wasPromised: true)
            precondition(isNew, "an object is stored once")
        }
        parts.ledger.withLock { $0.close(number) }
        guard isPublished else {
            parts.ledger.withLock { $0.withdraw(object.place.recordLength, object.attributes.storageClass) }
            return keeper.deleteAfterCommit(number)
        }
        parts.large.add(object, idleMax: parts.tuning.idleLargeMax)
        parts.counters.storedObjects.count()
        // The book knows of the file as long as there is one: a file of which it knows nothing but this is one whose
        // object was removed.
        let covered = BookSegment(coveredEnd: object.fileBytes, isClosed: true)
        keeper.record(
            [.put(entryOfBook(object, file, isRenewed: entry.isRenewed)), .segment(number, covered)],
            touched: .large(file))
    }

    // MARK: blocks

    func write(
        _ block: Int, of object: LargeObject, from source: any BodyBytes, at offset: Int,
        then: @escaping @Sendable (Bool) -> Void
    ) {
        if blocks.object !== object || blocks.written.count >= BlockRun.countMax { finishBlocks() }
        let bytes = object.byteCount(ofBlock: block)
        guard parts.health.isOn, let file = object.file else {
            object.written(bytes)
            return then(false)
        }
        do throws(DiskFileError) {
            blocks.written.append(try file.write(block: block, from: source, at: offset))
            blocks.object = object
            blocks.calls.append(then)
            blocks.bytes += bytes
        } catch {
            failed(error, "a block could not be written")
            object.written(bytes)
            then(false)
        }
    }

    /// Enters the blocks that were written into the table of their object.
    func finishBlocks() {
        let run = blocks
        blocks = BlockRun()
        guard let object = run.object, let file = object.file else { return }
        var isDone = true
        do throws(DiskFileError) {
            try file.publish(run.written)
            parts.counters.storedBytes.count(UInt64(run.bytes))
        } catch {
            failed(error, "the table of a large object could not be written")
            isDone = false
        }
        object.written(run.bytes)
        keeper.record([], touched: .large(file))
        for call in run.calls { call(isDone) }
        if isDone { noteCompleteness(of: object) }
    }

    /// Has the book say whether all of it is there, where that changed.
    func noteCompleteness(of object: LargeObject) {
        guard let file = object.file, object.completenessChanged(),
            // A removal that comes later is behind this in the queue.
            let entry = parts.index.entry(object.hash, object.id)
        else { return }
        keeper.record([.put(entryOfBook(object, file, isRenewed: entry.isRenewed))], touched: .large(file))
    }

    private func entryOfBook(_ object: LargeObject, _ file: LargeFile, isRenewed: Bool) -> BookEntry {
        var attributes = object.attributes
        if isRenewed { attributes = parts.renewals.latest(of: object.id)?.attributes ?? known(object) ?? attributes }
        return BookEntry(
            id: object.id, key: object.key, place: object.place, attributes: attributes, hasRenewedHead: isRenewed,
            isComplete: file.isComplete)
    }

    /// What the book says of it.
    private func known(_ object: LargeObject) -> ObjectAttributes? {
        do throws(BookError) { return try parts.book.entry(object.id, key: object.key)?.attributes } catch {
            return nil  // what the file says is older, and not wrong
        }
    }
}

extension BodyBytes {
    /// All of them, copied.
    var allBytes: [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: length) { room, initialized in
            unsafe forEachVector(from: 0, length: length) { vector in
                unsafe UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(room)[initialized...])
                    .copyMemory(from: UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
                unsafe initialized += vector.iov_len
            }
        }
    }
}
