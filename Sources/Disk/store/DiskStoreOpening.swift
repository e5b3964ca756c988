import Glibc

/// What `DiskStore.open` does before threads begin: directory, lock, book.
///
/// A damaged book is moved aside here, before anything is written. After a crash at any later point, the new book does not know some
/// of the segments, and the next start reads those.
struct DiskStoreOpening {
    let parts: DiskStoreParts
    /// The files that exist.
    let numbers: (segments: [UInt32], large: [UInt32])
    let reservedIDs: UInt64
    /// The book is lost and has to be rebuilt from the segments.
    let isRebuild: Bool

    init(_ options: DiskOptions, _ tuning: DiskStoreTuning, calls: any DiskCalls) throws(DiskRefusal) {
        let directory = try Directory.open(options.path, size: options.size)
        try directory.makeSubdirectories()
        numbers = try directory.fileNumbers()
        let hadBook = unsafe access(directory.bookPath + "/data.mdb", F_OK) == 0
        let opened = try Self.openBook(directory, options, calls)
        isRebuild = opened.wasDamaged || (!hadBook && !(numbers.segments.isEmpty && numbers.large.isEmpty))
        let book = opened.book
        // Numbers below `reserved` may have been given out by the last process. Some of them may be on the disk in records that the
        // book does not know yet, so none of them is given out again.
        let reserved = book.reservedIDs.rawValue
        let first = isRebuild ? max(reserved, Self.idWithoutBook) : reserved
        reservedIDs = reserved
        // New files get numbers above all known ones. The book may know numbers whose files are gone, and would take a new file
        // with such a number for the old one.
        parts = DiskStoreParts(
            options, tuning, calls: calls, directory: directory, book: book, lastID: first,
            lastNumber: (numbers.segments + numbers.large + opened.known).max() ?? 0)
    }

    /// Without the book, nobody knows which object numbers were given out until all segments were read. The clock is ahead of all
    /// of them, because a store gives out less than one number per microsecond.
    private static var idWithoutBook: UInt64 {
        var now = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &now)
        return UInt64(max(now.tv_sec, 0)) << 20 + UInt64(now.tv_nsec / 1000)
    }

    private static func openBook(
        _ directory: Directory, _ options: DiskOptions, _ calls: any DiskCalls
    ) throws(DiskRefusal) -> (book: Book, known: [UInt32], wasDamaged: Bool) {
        do throws(BookError) {
            let book = try open(directory, options, calls)
            return (book, Array(try book.segments().keys), false)
        } catch .damaged(let defect) {
            try moveAside(directory, options, defect, calls)
        } catch .unknownVersion(let version) {
            throw .unknownVersion(path: options.path, version: version)
        } catch {
            throw refusal(options.path, error)
        }
        do throws(BookError) { return (try open(directory, options, calls), [], true) } catch {
            throw refusal(options.path, error)
        }
    }

    private static func open(
        _ directory: Directory, _ options: DiskOptions, _ calls: any DiskCalls
    ) throws(BookError) -> Book {
        try Book.open(
            directory.bookPath, storeID: directory.storeID.bytes, sizeMax: options.size, calls: calls,
            damage: { defect in
                options.log(DiskEvent(.warning, "disk \(options.path): an entry of the book is damaged: \(defect)"))
            })
    }

    private static func refusal(_ path: String, _ error: BookError) -> DiskRefusal {
        if case .failed(let code) = error { return Directory.refusal(path, code) }
        return .failed(path: path, errno: EIO)
    }

    private static func moveAside(
        _ directory: Directory, _ options: DiskOptions, _ defect: BookDefect, _ calls: any DiskCalls
    ) throws(DiskRefusal) {
        let aside = directory.bookAside()
        options.log(
            DiskEvent(.error, "disk \(options.path): the book is damaged (\(defect)); moving it to \(aside)"))
        let status = calls.rename(directory.bookPath, to: aside)
        guard status == 0 else { throw Directory.refusal(options.path, CInt(-status)) }
        // The new book must not be made before the renaming is on the medium: a power cut could bring the damaged one back.
        let synced = Directory.synchronize(directory.path)
        guard synced == 0 else { throw Directory.refusal(options.path, synced) }
    }
}
