package import Disk
import EventLoop
import Glibc

/// What to import, and where from.
package struct ImportOptions: Sendable {
    package var archive: String
    /// The store. No other process may be using it.
    package var store: DiskOptions
    /// Chooses what to import. Asked about the key of each object; about its addresses, one of which is enough, if it has any.
    package var selects: @Sendable (_ key: [UInt8]) -> Bool
    package var sha256: @Sendable ([UInt8]) -> [UInt8]

    package init(
        archive: String, store: DiskOptions, selects: @escaping @Sendable ([UInt8]) -> Bool = { _ in true },
        sha256: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) {
        self.archive = archive
        self.store = store
        self.selects = selects
        self.sha256 = sha256
    }
}

/// The result of an import.
package struct ImportReport: Equatable, Sendable {
    /// Imported and on the medium.
    package var objects: UInt64 = 0
    package var bytes: UInt64 = 0
    /// Large objects among these that were present in part.
    package var completed: UInt64 = 0
    /// Skipped because the same object is stored already.
    package var there: UInt64 = 0
    /// Skipped because `selects` returned false.
    package var notSelected: UInt64 = 0
    /// Damaged members of the archive.
    package var damaged: UInt64 = 0
    /// Damaged blocks of large objects that were imported.
    package var damagedBlocks: UInt64 = 0
    /// Pinned objects that did not fit into the quota.
    package var pinnedQuotaFull: UInt64 = 0
    /// Objects that the store refused as too large, or could not write.
    package var refused: UInt64 = 0
    /// Evicted to make room for others.
    package var evicted: UInt64 = 0
    /// Nil if the archive ends without a digest.
    package var isDigestRight: Bool?
    /// Whether the archive has its end mark.
    package var isWhole = false

    package init() {}

    package var isFine: Bool {
        damaged == 0 && damagedBlocks == 0 && pinnedQuotaFull == 0 && refused == 0 && isDigestRight == true && isWhole
    }
}

/// Stores the objects of an archive. Blocks. Objects that are stored already are skipped, so an interrupted import continues when it is
/// called again.
/// - Parameter damaged: called with the name of each member that is left out, as far as it is known.
package func `import`(
    _ options: ImportOptions, calls: any DiskCalls = SystemCalls(), progress: (ArchiveProgress) -> Void,
    damaged: (_ name: [UInt8]) -> Void
) throws(ArchiveError) -> ImportReport {
    // Open the archive first: if it is none, no store is created.
    var archive = try ArchiveScan(options, calls: calls)
    let target: StoreTarget
    do throws(DiskRefusal) {
        target = try StoreTarget(options.store, calls: calls)
    } catch {
        throw .store(error)
    }
    do throws(ArchiveError) {
        try archive.run(target, progress, damaged)
        try target.finish()
    } catch {
        target.close()
        throw error
    }
    archive.report.evicted = target.evicted
    target.close()
    return archive.report
}

/// Like `import`, without changing anything: counts what is in the archive, and what of it is stored already. A proxy may be using the
/// store, or there may be no store.
package func surveyImport(
    _ options: ImportOptions, calls: any DiskCalls = SystemCalls(), progress: (ArchiveProgress) -> Void,
    damaged: (_ name: [UInt8]) -> Void
) throws(ArchiveError) -> ImportReport {
    var archive = try ArchiveScan(options, calls: calls)
    var source: ExportSource?
    do throws(ArchiveError) {
        source = try ExportSource.open(options.store.path, calls: calls)
    } catch .noStore {
        source = nil
    }
    defer { source?.close() }
    try archive.run(SurveyTarget(source), progress, damaged)
    return archive.report
}

/// Where the objects of an archive go.
private protocol ImportTarget {
    func take(_ object: ArchivedObject, _ blocks: BlockSource) throws(ArchiveError) -> ImportOutcome
}

private enum ImportOutcome {
    case taken(isCompleted: Bool, damagedBlocks: Int)
    case there
    case pinnedQuotaFull
    case refused
}

/// The blocks of a large object in the archive.
private struct BlockSource {
    let archive: String
    let entry: TarEntry
    let reader: TarReader

    /// - Returns: whether all blocks could be read.
    func forEach(
        _ object: ArchivedObject, _ visit: (_ block: Int, _ bytes: [UInt8]?) -> Bool
    ) throws(ArchiveError) -> Bool {
        try attempt(archive) { () throws(TarReader.Failure) in
            try object.forEachBlock(entry, reader, visit)
        } != nil
    }
}

/// Walks an archive from its beginning to its end.
private struct ArchiveScan {
    private let options: ImportOptions
    private var reader: TarReader
    private var digest: ExportDigest
    private var digested: UInt64 = 0
    var report = ImportReport()

    init(_ options: ImportOptions, calls: any DiskCalls) throws(ArchiveError) {
        self.options = options
        digest = ExportDigest(sha256: options.sha256)
        let archive = options.archive
        let file: DiskFile
        do throws(DiskFileError) {
            file = try DiskFile.open(archive, flags: O_RDONLY, calls: calls)
        } catch {
            throw ArchiveError(error, archive)
        }
        guard let reader = try attempt(archive, { () throws(TarReader.Failure) in try TarReader(file) }) else {
            throw .notAnExport(archive)
        }
        self.reader = reader
        try readHead()
    }

    private mutating func readHead() throws(ArchiveError) {
        let archive = options.archive
        let first = try attempt(archive) { () throws(TarReader.Failure) in try reader.next() } ?? nil
        guard let first, first.name == ExportFormat.headName, let text = try text(of: first),
            let version = ExportFormat.version(of: text)
        else { throw .notAnExport(archive) }
        guard version == ExportFormat.version else { throw .unknownVersion(archive, version) }
    }

    mutating func run(
        _ target: some ImportTarget, _ progress: (ArchiveProgress) -> Void, _ damaged: (_ name: [UInt8]) -> Void
    ) throws(ArchiveError) {
        let archive = options.archive
        while true {
            let entry: TarEntry?
            do throws(TarReader.Failure) {
                entry = try reader.next()
            } catch .damaged {
                report.damaged += 1
                damaged(Array("at byte \(reader.offset)".utf8))
                guard try attempt(archive, { () throws(TarReader.Failure) in try reader.skipDamage() }) ?? nil != nil
                else { return }
                continue
            } catch .cutOff {
                return
            } catch {
                guard case .failed(let code) = error else { return }
                throw .archive(archive, errno: code)
            }
            guard let entry else {
                report.isWhole = true
                return
            }
            if entry.name == ExportFormat.digestName {
                try addToDigest(upTo: entry.start)
                let found = try attempt(archive) { () throws(TarReader.Failure) in
                    try reader.read(entry.start, Int(entry.end - entry.start))
                }
                report.isDigestRight = found == ExportFormat.member(entry.name, ExportFormat.digest(digest))
            } else if entry.name.starts(with: ExportFormat.objectPrefix) {
                try take(entry, target, damaged)
                try addToDigest(upTo: entry.end)
            }
            progress(ArchiveProgress(bytesDone: entry.end, bytesTotal: reader.length))
        }
    }

    private mutating func take(
        _ entry: TarEntry, _ target: some ImportTarget, _ damaged: (_ name: [UInt8]) -> Void
    ) throws(ArchiveError) {
        let object = try attempt(options.archive) { () throws(TarReader.Failure) in
            try ArchivedObject.read(entry, reader, verifiesBlocks: false)
        }
        guard let object = object ?? nil else {
            report.damaged += 1
            return damaged(entry.name)
        }
        let addresses = object.head.attributes.addresses
        guard (addresses.isEmpty ? [object.head.key] : addresses).contains(where: options.selects) else {
            report.notSelected += 1
            return
        }
        let blocks = BlockSource(archive: options.archive, entry: entry, reader: reader)
        switch try target.take(object, blocks) {
        case .taken(let isCompleted, let damagedBlocks):
            report.objects += 1
            report.bytes += entry.size
            if isCompleted { report.completed += 1 }
            report.damagedBlocks += UInt64(damagedBlocks)
            if damagedBlocks > 0 { damaged(entry.name) }
        case .there: report.there += 1
        case .pinnedQuotaFull: report.pinnedQuotaFull += 1
        case .refused: report.refused += 1
        }
    }

    private mutating func addToDigest(upTo end: UInt64) throws(ArchiveError) {
        guard end > digested else { return }
        for piece in ArchivePieces(from: digested, to: end) {
            let bytes = try attempt(options.archive) { () throws(TarReader.Failure) in
                try reader.read(piece.lowerBound, piece.count)
            }
            digest.add(bytes ?? [])
        }
        digested = end
    }

    private func text(of entry: TarEntry) throws(ArchiveError) -> [UInt8]? {
        guard entry.size <= 64 << 10 else { return nil }
        return try attempt(options.archive) { () throws(TarReader.Failure) in
            try reader.bytes(of: entry, count: Int(entry.size))
        }
    }
}

// MARK: into a store

/// A store that is opened for the import.
private final class StoreTarget: ImportTarget {
    private let store: DiskStore
    private let hash: @Sendable ([UInt8]) -> UInt64
    /// How long to wait when the store cannot keep up with the archive.
    private static let pause: useconds_t = 2_000

    init(_ options: DiskOptions, calls: any DiskCalls) throws(DiskRefusal) {
        store = try DiskStore.open(options, calls: calls)
        hash = options.hash
        let loaded = CountingSemaphore()
        store.whenLoaded { loaded.signal() }
        loaded.wait()
    }

    var evicted: UInt64 { store.statistics.evictedObjects }

    func finish() throws(ArchiveError) { guard store.flush() else { throw .notWritten } }

    func close() { store.close() }

    func take(_ object: ArchivedObject, _ blocks: BlockSource) throws(ArchiveError) -> ImportOutcome {
        switch object.body {
        case .packed(let body): try takePacked(object.head, body)
        case .large: try takeLarge(object, blocks)
        }
    }

    private func takePacked(_ head: StoredHead, _ body: [UInt8]) throws(ArchiveError) -> ImportOutcome {
        let hash = hash(head.key)
        let isThere = stored(hash, head).contains {
            $0.checksums == head.checksums && $0.place.bodyLength == UInt64(body.count)
        }
        if isThere { return .there }
        let object = PackedObject(
            id: store.nextID(), hash: hash, key: head.key, attributes: head.attributes, head: head.head,
            body: ArchivedBytes(body))
        while true {
            switch store.store(object) {
            case .taken: return .taken(isCompleted: false, damagedBlocks: 0)
            case .busy: usleep(Self.pause)
            case .off: throw off
            case .tooLarge: return .refused
            case .pinnedQuotaFull: return .pinnedQuotaFull
            }
        }
    }

    private var off: ArchiveError {
        if case .off(let reason) = store.state { .storeOff(reason: reason) } else { .storeOff(reason: "it was off") }
    }

    /// The stored objects with this key and this head.
    private func stored(_ hash: UInt64, _ head: StoredHead) -> [StoredHead] {
        guard case .places(let places) = store.find(hash) else { return [] }
        return places.compactMap { place in
            do throws(DiskReadError) {
                let found = try store.readHead(place, waits: true)
                return found.key == head.key && found.head == head.head ? found : nil
            } catch {
                return nil  // gone meanwhile or damaged: the object of the archive replaces it
            }
        }
    }

    // MARK: large objects

    private func takeLarge(_ object: ArchivedObject, _ blocks: BlockSource) throws(ArchiveError) -> ImportOutcome {
        let hash = hash(object.head.key)
        let known = stored(hash, object.head).first {
            $0.place.kind == .large && $0.place.bodyLength == object.head.place.bodyLength
        }
        if let known, let there = open(known, hash) {
            let missing = missingBlocks(of: object, in: there)
            if missing.isEmpty { return .there }
            return try fill(there, missing, object, blocks, isCompleted: true)
        }
        while true {
            let made = store.makeLarge(
                id: store.nextID(), hash: hash, key: object.head.key, attributes: object.head.attributes,
                head: object.head.head, length: object.length)
            switch made {
            case .success(let large):
                let all = missingBlocks(of: object, in: large)
                return try fill(large, all, object, blocks, isCompleted: false)
            case .failure(let refusal):
                switch refusal.outcome {
                case .busy: usleep(Self.pause)
                case .off: throw off
                case .pinnedQuotaFull: return .pinnedQuotaFull
                case .tooLarge, .taken: return .refused
                }
            }
        }
    }

    private func open(_ head: StoredHead, _ hash: UInt64) -> LargeObject? {
        do throws(DiskReadError) { return try store.openLarge(head, hash: hash) } catch { return nil }
    }

    private func missingBlocks(of object: ArchivedObject, in large: LargeObject) -> Set<Int> {
        guard case .large(_, let entries) = object.body else { return [] }
        var missing = Set(entries.filter { $0.checksum != nil }.map(\.block))
        for extent in large.extents {
            let first = (extent.lowerBound + blockBytes - 1) / blockBytes
            for block in first..<max(first, (extent.upperBound + blockBytes - 1) / blockBytes) { missing.remove(block) }
        }
        return missing
    }

    /// Writes the wanted blocks, with a limit on how many wait at a time.
    private func fill(
        _ large: LargeObject, _ wanted: Set<Int>, _ object: ArchivedObject, _ blocks: BlockSource, isCompleted: Bool
    ) throws(ArchiveError) -> ImportOutcome {
        let window = WriteWindow()
        var damaged = 0
        let isRead = try blocks.forEach(object) { block, bytes in
            guard wanted.contains(block) else { return true }
            guard let bytes else {
                damaged += 1
                return true
            }
            window.enter()
            large.write(block: block, from: ArchivedBytes(bytes), at: 0) { isWritten in window.leave(isWritten) }
            return !window.hasFailed
        }
        window.drain()
        if window.hasFailed { return .refused }
        return .taken(isCompleted: isCompleted, damagedBlocks: isRead ? damaged : damaged + 1)
    }
}

/// Limits how many blocks wait to be written.
private final class WriteWindow: Sendable {
    private static let width = 64
    private let free = CountingSemaphore()
    private let failed = Locked(false)

    init() { for _ in 0..<Self.width { free.signal() } }

    var hasFailed: Bool { failed.withLock { $0 } }

    func enter() { free.wait() }

    func leave(_ isWritten: Bool) {
        if !isWritten { failed.withLock { $0 = true } }
        free.signal()
    }

    /// Waits until no block is being written.
    func drain() { for _ in 0..<Self.width { free.wait() } }
}

/// Bytes from an archive, in memory of their own: pointers into an array must not be kept.
@safe private final class ArchivedBytes: BodyBytes, @unchecked Sendable {  // never changed
    let byteCount: Int
    private let bytes: UnsafeMutableRawBufferPointer

    init(_ source: [UInt8]) {
        byteCount = source.count
        unsafe bytes = .allocate(byteCount: max(1, source.count), alignment: 16)
        unsafe source.withUnsafeBytes { unsafe bytes.copyMemory(from: $0) }
    }

    deinit { unsafe bytes.deallocate() }

    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int {
        precondition(offset >= 0 && offset <= byteCount, "the range begins within the body")
        let count = min(limit, byteCount - offset)
        guard count > 0, !vectors.isEmpty else { return 0 }
        unsafe vectors[0] = iovec(iov_base: bytes.baseAddress.map { unsafe $0 + offset }, iov_len: count)
        return 1
    }
}

// MARK: a dry run

/// Counts what a store would accept in its present state.
private struct SurveyTarget: ImportTarget {
    private let source: ExportSource?

    init(_ source: ExportSource?) { self.source = source }

    func take(_ object: ArchivedObject, _ blocks: BlockSource) throws(ArchiveError) -> ImportOutcome {
        var damaged = 0
        _ = try blocks.forEach(object) { _, bytes in
            if bytes == nil { damaged += 1 }
            return true
        }
        guard let source, try isThere(object, source) else { return .taken(isCompleted: false, damagedBlocks: damaged) }
        return .there
    }

    private func isThere(_ object: ArchivedObject, _ source: ExportSource) throws(ArchiveError) -> Bool {
        let entries: [BookEntry]
        do throws(BookError) {
            entries = try source.book.entries(under: object.head.key)
        } catch {
            throw .book(source.path, error)
        }
        for entry in entries where entry.place.bodyLength == object.head.place.bodyLength {
            guard case .object(let found) = try source.read(entry) else { continue }
            switch (found, object.body) {
            case (.packed(let head, _), .packed):
                if head.head == object.head.head, head.checksums == object.head.checksums { return true }
            case (.large(let head, let file), .large(_, let listed)):
                let isMissing = { (entry: LargeMember.Entry) in entry.checksum != nil && !file.has(block: entry.block) }
                if head.head == object.head.head, !listed.contains(where: isMissing) { return true }
            default: break
            }
        }
        return false
    }
}
