import Glibc

/// Reads from a running store.
///
/// Nothing prevents an object from being moved or removed while it is read. A place therefore only says where to look: the record
/// itself says what it is, its checksums are compared, and the index is asked again afterwards. A file that is deleted meanwhile can
/// be read to the end, because it stays open.
final class DiskStoreReader: Sendable {
    private let parts: DiskStoreParts
    private let keeper: BookKeeper
    private let queue: WriterQueue

    init(parts: DiskStoreParts, keeper: BookKeeper, queue: WriterQueue) {
        self.parts = parts
        self.keeper = keeper
        self.queue = queue
    }

    // MARK: heads

    func readHead(_ place: Place, waits: Bool) throws(DiskReadError) -> StoredHead {
        let head = try readHeadInFile(place, waits: waits)
        // The object may have been removed or moved since the place was found. Its renewed head is no longer known then.
        let hash = parts.options.hash(head.key)
        guard let entry = parts.index.entry(hash, at: place) else { throw .damaged }
        guard entry.isRenewed else { return head }
        let renewed = try renewed(head, waits: waits)
        // If it was moved meanwhile, the renewed head is in the new record and no longer in the book. What was read above may then
        // be the old head.
        guard parts.index.entry(hash, at: place) != nil else { throw .damaged }
        return renewed
    }

    private func readHeadInFile(_ place: Place, waits: Bool) throws(DiskReadError) -> StoredHead {
        do throws(DiskReadError) {
            if place.kind == .large { return try largeFile(place, waits: waits).head }
            return try parts.files.file(place.segment, waits: waits).readHead(place, waits: waits)
        } catch {
            switch error {
            case .wouldBlock: break
            // A sector that cannot be read will not become readable, so EIO counts as damage. Any other error may pass, and the
            // object stays.
            case .damaged, .failed(EIO): keeper.reportDamaged(place)
            case .failed: parts.counters.readErrors.count()
            }
            throw error
        }
    }

    /// The head with the renewed one in its place, if there is one.
    func renewed(_ head: StoredHead, waits: Bool) throws(DiskReadError) -> StoredHead {
        var head = head
        // A renewal stays here until it is in the book, so this look or the one into the book finds it. The third look finds one
        // that was added between the two.
        if let renewal = parts.renewals.latest(of: head.id) {
            head.attributes = renewal.attributes
            head.head = renewal.head
            return head
        }
        // The book is mapped into memory, so a page of it may have to be read from the disk.
        guard waits else { throw .wouldBlock }
        do throws(BookError) {
            if let renewal = try parts.book.renewal(of: head.id) {
                head.attributes = renewal.attributes
                head.head = renewal.head
            } else if let renewal = parts.renewals.latest(of: head.id) {
                head.attributes = renewal.attributes
                head.head = renewal.head
            }
            return head
        } catch {
            parts.counters.readErrors.count()
            if case .failed(let code) = error { throw .failed(errno: code) }
            throw .damaged
        }
    }

    func readBody(
        of place: Place, checksums: [UInt32], offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool
    ) -> DiskRead {
        do throws(DiskReadError) {
            let file = try parts.files.file(place.segment, waits: waits)
            let outcome = unsafe file.readBody(
                of: place, checksums: checksums, offset: offset, into: room, waits: waits)
            if case .failed = outcome { parts.counters.readErrors.count() }
            return outcome
        } catch {
            if case .failed = error { parts.counters.readErrors.count() }
            return DiskRead(error)
        }
    }

    func cachedBody(of place: Place, from offset: Int, count: Int) -> OpenFileRange? {
        do throws(DiskReadError) {
            return try parts.files.file(place.segment, waits: false).cachedBody(of: place, from: offset, count: count)
        } catch { return nil }
    }

    // MARK: large objects

    private func largeFile(_ place: Place, waits: Bool) throws(DiskReadError) -> LargeFile {
        if let file = parts.large.opened(place.segment)?.file { return file }
        guard waits else { throw .wouldBlock }
        guard let (hash, _) = parts.large.known(place.segment) else { throw .damaged }
        guard let file = try openLarge(place.segment, hash).file else { throw .damaged }
        return file
    }

    func openLarge(_ number: UInt32, _ hash: UInt64) throws(DiskReadError) -> LargeObject {
        try parts.large.opened(number, idleMax: parts.tuning.idleLargeMax) { () throws(DiskReadError) in
            // Looked up under the lock for opening: a removal after this line finds the object in the registry.
            guard parts.large.known(number) != nil else { throw .damaged }
            do throws(DiskFileError) {
                let file = try LargeFile.open(
                    parts.directory.largePath(number), parts.identity(number), calls: parts.calls)
                return LargeObject(file: file, hash: hash, parts: parts, queue: queue)
            } catch .failed(ENOENT) { throw .damaged } catch { throw DiskReadError(error) }
        }
    }

    /// Returns nil if the head cannot be read. Blocks.
    func key(ofLarge number: UInt32) -> [UInt8]? {
        if let object = parts.large.opened(number) { return object.key }
        do throws(DiskFileError) {
            return try LargeFile.open(
                parts.directory.largePath(number), parts.identity(number), writes: false, calls: parts.calls
            ).head.key
        } catch {
            return nil
        }
    }

    // MARK: damage

    /// Counts and logs an object that was removed because it is damaged, and has the book forget it.
    func damaged(_ entry: DiskIndexEntry, key: [UInt8]) {
        parts.counters.damagedObjects.count()
        parts.log(.warning, "\(DiskStoreParts.text(key)) is damaged and was dropped")
        let isLarge = entry.place.kind == .large
        let removal = Removal(
            id: entry.id, key: key, segment: entry.place.segment, isLarge: isLarge, isInBook: true)
        _ = queue.put(.drop(removal))
    }
}
