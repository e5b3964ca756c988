import Glibc

/// Blocks that are written to the file of one large object, and not yet entered into its table. Until they are entered nobody
/// can read them, and a crash loses them.
struct BlockRun: Sendable {
    var object: LargeObject?
    var written: [WrittenBlock] = []
    var calls: [@Sendable (Bool) -> Void] = []
    var bytes = 0

    /// How many blocks are entered at once: 1 MiB.
    static let countMax = 16
}

// Large objects: a file of its own for each, and blocks that are written one by one.
extension Writer {
    // MARK: making the file

    /// Makes the file of a new object: with all the space it will ever take or, if its length is not known, with the first of it.
    /// An object that somebody claimed space for in advance (`isClaimed`) may be cancelled as well: `refuse` gives the space back.
    func make(_ object: LargeObject) {
        writeBatch()
        if !object.isClaimed {
            guard parts.pending.contains(object.hash, object.id), parts.health.isOn else { return refuse(object) }
            switch claimSpace(object.claimedBytes) {
            case .granted: object.isClaimed = true
            case .wait: return deferUntilSpace(.makeLarge(object), object.id)
            case .never: return refuse(object)
            }
        }
        guard parts.pending.contains(object.hash, object.id), parts.health.isOn else { return refuse(object) }
        makeDirectory(of: object)
        if object.grows {
            guard let file = createdToGrow(object) else { return refuse(object) }
            return object.begin(file)
        }
        guard let file = created(object) else { return refuse(object) }
        begin(object, file)
    }

    /// Gives up storing the object: its blocks end in false, and its space is free again.
    func refuse(_ object: LargeObject) {
        if parts.pending.cancel(object.hash, object.id) { parts.lost(object.key) }
        release(object)
    }

    /// Gives back what an object has taken that does not come to be stored. No effect the second time.
    func release(_ object: LargeObject) {
        // A reader may still hold the file. Then the file system has its space for longer than the ledger counts it.
        object.growing?.delete()
        parts.ledger.withLock { ledger in
            if object.isClaimed { ledger.unclaim(object.claimedBytes) }
            ledger.withdraw(object.promisedBytes, object.attributes.storageClass)
        }
        object.claimedBytes = 0
        object.promisedBytes = 0
        object.fail()
    }

    private func makeDirectory(of object: LargeObject) {
        guard madeDirectories.insert(object.number & 0xFF).inserted else { return }
        // If this fails the file cannot be created either, and that failure is reported.
        _ = unsafe mkdir(parts.directory.largeDirectory(object.number), 0o700)
        keeper.touch(directory: parts.directory.largePath)
    }

    /// Creates the file. If the process is killed before the commit, the next start finds the file and adds its object.
    private func created(_ object: LargeObject) -> LargeFile? {
        do throws(DiskFileError) {
            return try LargeFile.create(
                parts.directory.largePath(object.number), parts.identity(object.number), id: object.id,
                key: object.key, attributes: object.attributes, head: object.takeHead(),
                length: Int(object.place.bodyLength), calls: parts.calls)
        } catch {
            failed(error, "cannot create the file of a large object")
            return nil
        }
    }

    /// Puts the object into ledger and index, then tells the book. Its file exists by now.
    ///
    /// After a crash before the commit the next start finds a file that the book does not know, and adds its object. After the
    /// commit the book has both the object and the number of the file.
    /// - Returns: false if the object was removed in the meantime.
    @discardableResult
    func begin(_ object: LargeObject, _ file: LargeFile) -> Bool {
        let number = object.number
        precondition(file.fileBytes <= object.claimedBytes, "the file takes no more than was claimed for it")
        precondition(file.id == object.id && file.place.segment == number, "the file is that of the object")
        let storageClass = object.attributes.storageClass
        parts.ledger.withLock { ledger in
            ledger.begin(number, .large)
            ledger.grew(number, by: file.fileBytes)
            ledger.unclaim(object.claimedBytes - file.fileBytes)
            // What the object takes of its quota is counted as it is added to the index.
            ledger.withdraw(object.promisedBytes - file.place.recordLength, storageClass)
        }
        object.claimedBytes = 0
        object.promisedBytes = 0
        object.begin(file)
        // Register the open object before the index leads to it. A reader that found it in the index first would open the file a
        // second time, and the two tables of blocks would differ.
        parts.large.add(object, idleMax: parts.tuning.idleLargeMax)
        var isRenewed = false
        // See `publish` in Writer.swift: a renewal that saw the object as pending is seen here.
        let isPublished = parts.pending.publish(object.hash, object.id) {
            isRenewed = parts.renewals.latest(of: object.id) != nil
            guard
                let entry = DiskIndexEntry(
                    hash: object.hash, id: object.id, place: file.place, storageClass: storageClass,
                    isRenewed: isRenewed)
            else { preconditionFailure("a place that was encoded fits into an index entry") }
            let isNew = parts.addToIndex(entry, wasPromised: true)
            precondition(isNew, "an object number is stored once")
        }
        // Not before: a unit that is closed may become a victim, and a large victim without a live object is deleted.
        parts.ledger.withLock { $0.close(number) }
        // The object was removed while it was written. Whoever reads it keeps the file open.
        guard isPublished else {
            parts.large.forget(number)
            parts.ledger.withLock { $0.withdraw(file.place.recordLength, storageClass) }
            keeper.deleteAfterCommit(number)
            return false
        }
        parts.counters.storedObjects.count()
        // The book keeps the number of the file for as long as the file exists. At a start, a file whose number is in the book
        // but whose object is not belongs to a removed object: it is deleted.
        let covered = BookSegment(coveredEnd: file.fileBytes, isClosed: true)
        var changes: [BookChange] = [
            .put(entryOfBook(object, file, isRenewed: isRenewed)), .segment(number, covered),
        ]
        var renewed: [(ObjectID, UInt64)] = []
        // The job of a renewal that came while the object grew found nothing to renew.
        if object.grows, isRenewed, let renewal = parts.renewals.latest(of: object.id) {
            changes.append(.renew(object.id, key: object.key, renewal.attributes, head: renewal.head))
            renewed.append((object.id, renewal.serial))
        }
        keeper.record(changes, renewed: renewed, touched: .large(file))
        return true
    }

    // MARK: writing blocks

    /// Writes one block to its place in the file. `finishBlocks` enters it into the table later, together with others.
    func write(
        _ block: Int, of object: LargeObject, from source: any BodyBytes, at offset: Int,
        then: @escaping @Sendable (Bool) -> Void
    ) {
        if blocks.object !== object || blocks.written.count >= BlockRun.countMax { finishBlocks() }
        precondition(blocks.object === object || blocks.written.isEmpty, "a run has blocks of one object")
        let bytes = object.byteCount(ofBlock: block, from: source, at: offset)
        func giveUp() {
            // An object that grows is stored whole or not at all, so one missing block ends it. Any other object keeps the blocks
            // it has.
            if object.grows, object.file == nil { refuseAsItGrows(object) }
            object.written(bytes)
            then(false)
        }
        guard parts.health.isOn, !object.hasFailed else { return giveUp() }
        do throws(DiskFileError) {
            if let growing = object.growing {
                switch try claimSpace(forBlock: block, of: object, growing) {
                case .granted: break
                case .wait:
                    return deferUntilSpace(.block(object, block, source, offset: offset, then: then), object.id)
                case .never: return giveUp()
                }
                blocks.written.append(try growing.blocks.write(block: block, from: source, at: offset, count: bytes))
            } else if let file = object.file {
                blocks.written.append(try file.write(block: block, from: source, at: offset))
            } else {
                return giveUp()
            }
            blocks.object = object
            blocks.calls.append(then)
            blocks.bytes += bytes
        } catch {
            failed(error, "cannot write a block of a large object")
            giveUp()
        }
    }

    /// Enters the written blocks into the table of their object: first the bytes, then the entry that vouches for them. A power
    /// cut can still take the bytes and keep the entry, so a reader trusts only the checksum in the entry. The table of an object
    /// that grows is in memory alone.
    func finishBlocks() {
        let run = blocks
        blocks = BlockRun()
        precondition(run.written.count == run.calls.count, "each written block has one caller")
        precondition(run.object != nil || run.written.isEmpty, "a run without an object is empty")
        guard let object = run.object else { return }
        var isDone = true
        if let growing = object.growing {
            growing.blocks.enter(run.written)
        } else if let file = object.file {
            do throws(DiskFileError) { try file.publish(run.written) } catch {
                failed(error, "cannot write the table of a large object")
                isDone = false
            }
            keeper.record([], touched: .large(file))
        }
        if isDone {
            parts.counters.storedBytes.count(UInt64(run.bytes))
            queue.noteProgress()
        }
        object.written(run.bytes)
        // After the table: whoever is called may read the blocks at once.
        for call in run.calls { call(isDone) }
        if isDone { noteCompleteness(of: object) }
    }

    /// Tells the book whether the object is complete, if that changed.
    func noteCompleteness(of object: LargeObject) {
        guard let file = object.file, object.completenessChanged(),
            // A removal that happens after this look stands behind this job in the queue, and so does its change of the book.
            let entry = parts.index.entry(object.hash, object.id)
        else { return }
        keeper.record([.put(entryOfBook(object, file, isRenewed: entry.isRenewed))], touched: .large(file))
    }

    /// The entry of the book for the object in its present state. The attributes are the latest: a renewal that waits, or else what the
    /// book has, or else what the file has.
    private func entryOfBook(_ object: LargeObject, _ file: LargeFile, isRenewed: Bool) -> BookEntry {
        var attributes = object.attributes
        if isRenewed { attributes = parts.renewals.latest(of: object.id)?.attributes ?? known(object) ?? attributes }
        return BookEntry(
            id: object.id, key: object.key, place: object.place, attributes: attributes, hasRenewedHead: isRenewed,
            isComplete: file.isComplete)
    }

    /// The attributes that the book has for the object.
    private func known(_ object: LargeObject) -> ObjectAttributes? {
        do throws(BookError) { return try parts.book.entry(object.id, key: object.key)?.attributes } catch {
            return nil  // the attributes in the file are older, and not wrong
        }
    }
}

extension BodyBytes {
    /// A copy of all bytes.
    var allBytes: [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { room, initialized in
            unsafe forEachVector(from: 0, length: byteCount) { vector in
                unsafe UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(room)[initialized...])
                    .copyMemory(from: UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
                unsafe initialized += vector.iov_len
            }
        }
    }
}
