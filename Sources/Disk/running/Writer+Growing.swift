import Glibc

// Large objects whose length is known only at their end. Space is claimed for them piece by piece; until they are finished the
// ledger has it as claimed, and neither the index nor the book knows them.
extension Writer {
    /// Space is claimed for this many bytes at a time.
    static let growthBytes: UInt64 = 4 << 20

    /// Creates the file. If the process is killed before the object is finished, the next start deletes the file.
    func createdToGrow(_ object: LargeObject) -> GrowingFile? {
        do throws(DiskFileError) {
            return try GrowingFile.create(
                parts.directory.largePath(object.number), headPart: Int(object.headLength), bytes: object.claimedBytes,
                calls: parts.calls)
        } catch {
            failed(error, "cannot create the file of a large object")
            return nil
        }
    }

    /// Claims the space for one more block, and more space with it, and allocates it.
    func claimSpace(
        forBlock block: Int, of object: LargeObject, _ file: GrowingFile
    ) throws(DiskFileError) -> Ledger.Claim {
        let headPart = Int(object.headLength)
        let wanted = GrowingFile.fileBytes(headPart: headPart, blocks: block + 1)
        guard wanted > object.claimedBytes else { return .granted }
        guard wanted <= RecordHeader.recordBytesMax else { return .never }
        let more = wanted - object.claimedBytes + Self.growthBytes
        switch claimSpace(more) {
        case .granted: break
        case .wait: return .wait
        case .never: return .never
        }
        // Noted before `allocate`, which may fail: `release` gives back what is noted.
        object.claimedBytes += more
        promise(more, object)
        try file.allocate(object.claimedBytes)
        return .granted
    }

    /// Takes a larger share of the quota. If there is none, the object is kept as long as there is room for it.
    private func promise(_ more: UInt64, _ object: LargeObject) {
        guard object.attributes.storageClass == .pinned else { return object.promisedBytes += more }
        let isPromised = parts.ledger.withLock { ledger in
            if ledger.promise(more, .pinned) { return true }
            ledger.withdraw(object.promisedBytes, .pinned)
            return false
        }
        object.promisedBytes += more
        guard !isPromised else { return }
        // From here on `withdraw` gives nothing back for this object: only pinned objects have a share.
        object.becomePermanent()
        parts.counters.refusedPinned.count()
    }

    /// The object has all its blocks: completes its file and publishes it.
    func finish(_ object: LargeObject, _ length: Int, then: @escaping @Sendable (Bool) -> Void) {
        // Blocks that are collected and not entered yet would make the object look incomplete.
        writeBatch()
        finishBlocks()
        guard let growing = object.growing, !object.hasFailed, parts.health.isOn, growing.hasAll(length) else {
            refuseAsItGrows(object)
            return then(false)
        }
        // The object was removed on its way. Whoever reads it goes on.
        guard parts.pending.contains(object.hash, object.id) else {
            release(object)
            return then(false)
        }
        do throws(DiskFileError) {
            let file = try growing.finish(
                length, parts.identity(object.number), id: object.id, key: object.key, attributes: object.attributes,
                head: object.takeHead())
            then(begin(object, file))
        } catch {
            failed(error, "cannot complete the file of a large object")
            refuseAsItGrows(object)
            then(false)
        }
    }

    /// Nobody wants the object any more.
    func abandon(_ object: LargeObject) {
        finishBlocks()
        // Without a file, the job that makes it is deferred. It finds the object cancelled and refuses it.
        if object.growing != nil { release(object) }
    }

    /// The object cannot be stored. The blocks that are written can be read as long as somebody holds it.
    func refuseAsItGrows(_ object: LargeObject) {
        guard object.growing != nil, !object.hasFailed else { return }
        finishBlocks()
        refuse(object)
    }
}
