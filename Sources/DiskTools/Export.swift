package import Disk
import Glibc

/// What to export, and where to.
package struct ExportOptions: Sendable {
    /// The directory of the store.
    package var path: String
    package var zone: String
    /// The archive: a plain file, which need not exist.
    package var archive: String
    package var range: BookRange
    /// `range` in words, on one line. An interrupted export only continues with the same selection.
    package var selection: String
    /// Whether to count only, without touching the archive.
    package var isDryRun: Bool
    package var sha256: @Sendable ([UInt8]) -> [UInt8]

    package init(
        path: String, zone: String, archive: String, range: BookRange = .all, selection: String = "all",
        isDryRun: Bool = false, sha256: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) {
        self.path = path
        self.zone = zone
        self.archive = archive
        self.range = range
        self.selection = selection
        self.isDryRun = isDryRun
        self.sha256 = sha256
    }
}

/// The result of an export.
package struct ExportReport: Equatable, Sendable {
    /// Written by this run. In a dry run: what would be written.
    package var objects: UInt64 = 0
    package var bytes: UInt64 = 0
    /// In the archive from an earlier run.
    package var objectsBefore: UInt64 = 0
    /// Removed or evicted before their turn came.
    package var gone: UInt64 = 0
    /// Left out because they are damaged.
    package var damaged: UInt64 = 0
    /// Blocks that cannot be read, of large objects in the archive.
    package var damagedBlocks: UInt64 = 0
    /// Entries of the book that cannot be read.
    package var damagedEntries: UInt64 = 0

    package init() {}

    package var isFine: Bool { damaged == 0 && damagedBlocks == 0 && damagedEntries == 0 }
}

/// Writes the content of a store to an archive. Blocks. A proxy may be using the store; everything it committed before is exported.
///
/// If the archive is the beginning of the same export, the export continues there: whole members stay, a member that was cut off is
/// written again.
/// - Parameters:
///   - progress: called for each object.
///   - damaged: called with the key of each object that is left out or lacks blocks.
package func export(
    _ options: ExportOptions, calls: any DiskCalls = SystemCalls(), progress: (ArchiveProgress) -> Void,
    damaged: (_ key: [UInt8]) -> Void
) throws(ArchiveError) -> ExportReport {
    let source = try ExportSource.open(options.path, calls: calls)
    defer { source.close() }
    let sum = try survey(source, options.range)
    if options.isDryRun {
        var report = ExportReport()
        (report.objects, report.bytes) = (sum.objects, sum.bytes)
        report.damagedEntries = UInt64(clamping: source.book.damagedCount)
        return report
    }
    var run = try ExportRun(options, source, calls: calls)
    run.bytesTotal = sum.bytes
    return try run.run(progress, damaged)
}

/// Estimates the export: the objects in the range, and the length of their records.
private func survey(
    _ source: ExportSource, _ range: BookRange
) throws(ArchiveError) -> (objects: UInt64, bytes: UInt64) {
    var sum: (objects: UInt64, bytes: UInt64) = (0, 0)
    try forEachEntry(source, range) { entry throws(ArchiveError) in
        sum.objects += 1
        sum.bytes += entry.place.recordLength + UInt64(Tar.blockBytes)
    }
    return sum
}

private func forEachEntry(
    _ source: ExportSource, _ range: BookRange, _ visit: (BookEntry) throws(ArchiveError) -> Void
) throws(ArchiveError) {
    var cursor: BookCursor?
    repeat {
        let page: (entries: [BookEntry], next: BookCursor?)
        do throws(BookError) {
            page = try source.book.page(after: cursor, in: range, limit: 512)
        } catch {
            throw .book(source.path, error)
        }
        for entry in page.entries { try visit(entry) }
        cursor = page.next
    } while cursor != nil
}

private struct ExportRun {
    private let options: ExportOptions
    private let source: ExportSource
    private let file: DiskFile
    private var writer: TarWriter
    private var digest: ExportDigest
    private var report = ExportReport()
    /// The objects in the archive. Their numbers identify them, because a store never uses a number again.
    private var known: Set<ObjectID> = []
    var bytesTotal: UInt64 = 0

    init(_ options: ExportOptions, _ source: ExportSource, calls: any DiskCalls) throws(ArchiveError) {
        self.options = options
        self.source = source
        digest = ExportDigest(sha256: options.sha256)
        do throws(DiskFileError) {
            file = try DiskFile.open(options.archive, flags: O_RDWR | O_CREAT, calls: calls)
        } catch {
            throw ArchiveError(error, options.archive)
        }
        writer = TarWriter(file, from: 0)
    }

    mutating func run(
        _ progress: (ArchiveProgress) -> Void, _ damaged: (_ key: [UInt8]) -> Void
    ) throws(ArchiveError) -> ExportReport {
        try resume(progress)
        if writer.offset == 0 { try write(ExportFormat.member(ExportFormat.headName, head)) }
        try forEachEntry(source, options.range) { entry throws(ArchiveError) in
            if known.contains(entry.id) { return }
            switch try source.read(entry) {
            case .gone: report.gone += 1
            case .damaged:
                report.damaged += 1
                damaged(entry.key)
            case .object(.packed(let head, let body)): try add(head, body)
            case .object(.large(let head, let file)):
                if try add(head, file) { damaged(entry.key) }
            }
            progress(ArchiveProgress(bytesDone: writer.offset, bytesTotal: max(bytesTotal, writer.offset)))
        }
        try finish()
        report.damagedEntries = UInt64(clamping: source.book.damagedCount)
        return report
    }

    private var head: [UInt8] {
        ExportFormat.head(zone: options.zone, store: "\(source.storeID)", selection: options.selection)
    }

    // MARK: members

    private mutating func add(_ head: StoredHead, _ body: [UInt8]) throws(ArchiveError) {
        var bytes: [UInt8] = []
        do throws(RecordError) {
            try RecordCodec.append(
                packed: head.id, key: head.key, attributes: head.attributes, head: head.head,
                checksums: head.checksums, bodyLength: body.count, in: .none, at: 0, to: &bytes)
        } catch {
            // A renewed head can be longer than the one it replaces. If no record can hold it, the object is left out.
            report.damaged += 1
            return
        }
        bytes += body
        bytes.append(zeros: padded(body.count, to: 16) - body.count)
        try add(
            ExportFormat.name(of: head.id, key: head.key), bytes, modifiedAt: head.attributes.storedAt)
        count(bytes.count)
    }

    /// - Returns: whether any block could not be read.
    private mutating func add(_ head: StoredHead, _ file: LargeFile) throws(ArchiveError) -> Bool {
        let length = file.length
        var part: [UInt8] = []
        do throws(RecordError) {
            try RecordCodec.append(
                large: head.id, key: head.key, attributes: head.attributes, head: head.head, bodyLength: length,
                in: .none, to: &part)
        } catch {
            report.damaged += 1
            return true
        }
        let blocks = (0..<file.blockCount).filter { file.has(block: $0) }
        let size = LargeMember.size(headPart: part.count, blocks: blocks, length: length)
        let member = Tar.Member(
            name: ExportFormat.name(of: head.id, key: head.key), size: size, modifiedAt: head.attributes.storedAt)
        try write(Tar.header(of: member))
        try write(part)
        var entries: [LargeMember.Entry] = []
        var room = [UInt8](repeating: 0, count: blockBytes)
        for block in blocks {
            let count = LargeMember.length(of: block, in: length)
            let outcome = unsafe room.withUnsafeMutableBytes {
                unsafe file.read(
                    from: block * blockBytes, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<count]),
                    waits: true)
            }
            let bytes = outcome == .done ? Array(room[..<count]) : [UInt8](repeating: 0, count: count)
            entries.append(.init(block: block, checksum: outcome == .done ? Checksum.crc32c(bytes) : nil))
            try write(bytes)
        }
        try write(LargeMember.list(entries))
        try pad()
        count(Int(size))
        let missing = entries.count { $0.checksum == nil }
        report.damagedBlocks += UInt64(missing)
        return missing > 0
    }

    private mutating func add(_ name: [UInt8], _ bytes: [UInt8], modifiedAt: Int64) throws(ArchiveError) {
        try write(Tar.header(of: Tar.Member(name: name, size: UInt64(bytes.count), modifiedAt: modifiedAt)))
        try write(bytes)
        try pad()
    }

    private mutating func count(_ bytes: Int) {
        report.objects += 1
        report.bytes += UInt64(bytes)
    }

    /// Writes the digest and the end mark, and puts the archive on the medium.
    private mutating func finish() throws(ArchiveError) {
        try write(ExportFormat.member(ExportFormat.digestName, ExportFormat.digest(digest)))
        try write(Tar.end)
        do throws(DiskFileError) {
            try writer.flush()
            try file.synchronize()
        } catch {
            throw ArchiveError(error, options.archive)
        }
    }

    private mutating func write(_ bytes: [UInt8]) throws(ArchiveError) {
        digest.add(bytes)
        do throws(DiskFileError) { try writer.append(bytes) } catch { throw ArchiveError(error, options.archive) }
    }

    private mutating func pad() throws(ArchiveError) {
        try write([UInt8](repeating: 0, count: Int(Tar.padded(writer.offset) - writer.offset)))
    }

    // MARK: continuing

    /// Examines the archive. Every whole member stays, and what follows the last one is cut off.
    private mutating func resume(_ progress: (ArchiveProgress) -> Void) throws(ArchiveError) {
        let archive = options.archive
        guard var reader = try attempt(archive, { () throws(TarReader.Failure) in try TarReader(file) }),
            reader.length > 0
        else { return }
        var end: UInt64 = 0
        while let entry = try attempt(archive, { () throws(TarReader.Failure) in try reader.next() }) ?? nil {
            guard try isWhole(entry, reader, isFirst: end == 0) else { break }
            for piece in ArchivePieces(from: end, to: entry.end) {
                let bytes = try attempt(archive) { () throws(TarReader.Failure) in
                    try reader.read(piece.lowerBound, piece.count)
                }
                digest.add(bytes ?? [])
            }
            end = entry.end
            progress(ArchiveProgress(bytesDone: end, bytesTotal: max(bytesTotal, end)))
        }
        if end == 0 { try checkBeginning(reader) }
        do throws(DiskFileError) { try file.truncate(to: Int(end)) } catch { throw ArchiveError(error, archive) }
        writer = TarWriter(file, from: end)
        report.objectsBefore = UInt64(known.count)
    }

    /// Whether a member belongs to this export and is complete.
    private mutating func isWhole(
        _ entry: TarEntry, _ reader: TarReader, isFirst: Bool
    ) throws(ArchiveError) -> Bool {
        let archive = options.archive
        if isFirst {
            let found = entry.name == ExportFormat.headName ? try text(entry, reader) : nil
            guard let found, let version = ExportFormat.version(of: found) else { throw .notAnExport(archive) }
            guard version == ExportFormat.version else { throw .unknownVersion(archive, version) }
            guard found == head else { throw .another(archive) }
            return true
        }
        if entry.name == ExportFormat.digestName {
            // The end mark follows, unless the export was interrupted here.
            let ending = try attempt(archive) { () throws(TarReader.Failure) in
                try reader.read(entry.end, Tar.end.count)
            }
            if ending == Tar.end, try text(entry, reader) == ExportFormat.digest(digest) {
                throw .alreadyWhole(archive)
            }
            return false
        }
        let object = try attempt(archive) { () throws(TarReader.Failure) in
            try ArchivedObject.read(entry, reader, verifiesBlocks: true)
        }
        guard let id = object??.head.id else { return false }
        known.insert(id)
        return true
    }

    private func text(_ entry: TarEntry, _ reader: TarReader) throws(ArchiveError) -> [UInt8]? {
        guard entry.size <= 64 << 10 else { return nil }
        return try attempt(options.archive) { () throws(TarReader.Failure) in
            try reader.bytes(of: entry, count: Int(entry.size))
        }
    }

    /// A file without a whole member may only be the very beginning of this export.
    private func checkBeginning(_ reader: TarReader) throws(ArchiveError) {
        let whole = ExportFormat.member(ExportFormat.headName, head)
        let found = try attempt(options.archive) { () throws(TarReader.Failure) in
            try reader.read(0, Int(min(reader.length, UInt64(whole.count))))
        }
        guard let found, reader.length < UInt64(whole.count), whole.starts(with: found) else {
            throw .notAnExport(options.archive)
        }
    }
}

/// What `read` returns. Nil if the archive is cut off or damaged at this point.
func attempt<Value>(
    _ archive: String, _ read: () throws(TarReader.Failure) -> Value
) throws(ArchiveError) -> Value? {
    do throws(TarReader.Failure) {
        return try read()
    } catch {
        if case .failed(let code) = error { throw .archive(archive, errno: code) }
        return nil
    }
}

extension ArchiveError {
    init(_ error: DiskFileError, _ archive: String) {
        switch error {
        case .failed(let code): self = .archive(archive, errno: code)
        case .header: self = .archive(archive, errno: EIO)
        }
    }
}

/// A range of a file, in pieces of at most 1 MiB.
struct ArchivePieces: Sequence, IteratorProtocol {
    private var rest: Range<UInt64>

    init(from start: UInt64, to end: UInt64) { rest = start..<end }

    mutating func next() -> Range<UInt64>? {
        guard !rest.isEmpty else { return nil }
        let end = Swift.min(rest.upperBound, rest.lowerBound + (1 << 20))
        defer { rest = end..<rest.upperBound }
        return rest.lowerBound..<end
    }
}
