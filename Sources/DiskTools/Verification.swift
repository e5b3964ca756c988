import Disk
import EventLoop
import Glibc

/// One verification of a store. First it reads all files from beginning to end. Then it examines those objects of the book that it did
/// not meet on the way, one by one, because a running proxy may have moved or removed them meanwhile.
struct Verification: ~Copyable {
    let store: VerifiedStore
    let repairs: Bool
    var report = VerifyReport()
    private var known = KnownObjects()
    /// Intact files of large objects.
    private var largeGood: Set<UInt32> = []
    private var covered: [UInt32: BookSegment] = [:]
    private let files: [VerifiedStore.File]
    private var progress: VerifyProgress
    /// What has to change in the files and in the book.
    private var repair = BookRepair()

    private static let pageEntries = 1024
    private static let stepBytes: UInt64 = 1 << 20

    init(_ store: VerifiedStore, repairs: Bool) throws(DiskRefusal) {
        self.store = store
        self.repairs = repairs
        files = try store.files()
        let bookBytes = store.bytes(of: store.bookPath + "/data.mdb") ?? 0
        report.bookBytes = bookBytes
        progress = VerifyProgress(
            phase: .book, bytesDone: 0, bytesTotal: files.reduce(bookBytes) { $0 + $1.bytes })
    }

    mutating func run(_ tell: (VerifyProgress) -> Void) throws(DiskRefusal) -> VerifyReport {
        report.wasInUse = store.isInUse
        tell(progress)
        let defects = Locked<[BookDefect]>([])
        let book = try openBook(defects)
        if let book { try load(book) }
        advance(report.bookBytes, tell)
        progress.phase = .segments
        for file in files {
            if file.isLarge { readLarge(file, book) } else { readSegment(file, book, tell) }
            report.segmentsRead += 1
            report.bytesRead += file.bytes
        }
        progress.phase = .entries
        progress.bytesDone = progress.bytesTotal
        tell(progress)
        if let book {
            try readEntries(book)
            for defect in defects.withLock({ $0 }) {
                repair.mustRewrite = true
                add(VerifyFinding(.entryDamaged, file: "book", text: defect.description), isRepairable: true)
            }
            book.close()
        }
        report.wasInUse = report.wasInUse || store.isInUse
        if repairs {
            progress.phase = .repair
            tell(progress)
            report.bookMovedTo = try repair.carryOut(in: store, hasBook: book != nil, files: files)
        }
        return report
    }

    private mutating func add(_ finding: VerifyFinding, isRepairable: Bool) {
        var finding = finding
        finding.isRepaired = repairs && isRepairable
        report.add(finding)
    }

    private mutating func advance(_ bytes: UInt64, _ tell: (VerifyProgress) -> Void) {
        let before = progress.bytesDone / Self.stepBytes
        progress.bytesDone = min(progress.bytesDone + bytes, progress.bytesTotal)
        precondition(progress.bytesDone / Self.stepBytes >= before, "progress does not go back")
        if progress.bytesDone / Self.stepBytes != before { tell(progress) }
    }

    // MARK: the book

    /// Returns nil if there is no readable book.
    private mutating func openBook(_ defects: Locked<[BookDefect]>) throws(DiskRefusal) -> Book? {
        guard report.bookBytes > 0 else {
            if !files.isEmpty { bookIsDamaged("there is no book, but there are stored responses") }
            return nil
        }
        do throws(BookError) {
            return try Book.open(
                store.bookPath, storeID: store.id.bytes, access: .readOnly, sizeMax: .max, calls: store.calls
            ) { defect in
                defects.withLock { $0.append(defect) }
            }
        } catch {
            switch error {
            case .damaged(let defect): bookIsDamaged(defect.description)
            case .unknownVersion(let version): throw .unknownVersion(path: store.bookPath, version: version)
            case .failed(let code):
                // A book that cannot be read is treated like a damaged one.
                guard code == EIO else { throw Directory.refusal(store.bookPath, code) }
                bookIsDamaged("it cannot be read: \(systemErrorText(code))")
            case .full: throw .failed(path: store.bookPath, errno: ENOSPC)
            }
            return nil
        }
    }

    private mutating func bookIsDamaged(_ text: String) {
        add(VerifyFinding(.bookDamaged, file: "book", text: text), isRepairable: true)
    }

    private mutating func load(_ book: borrowing Book) throws(DiskRefusal) {
        var twice: [BookEntry] = []
        var known = KnownObjects()
        do throws(BookError) {
            covered = try book.segments()
            try book.load { entry in
                if !known.insert(entry) { twice.append(entry) }
                return true
            }
        } catch { throw refusal(error) }
        self.known = known
        for entry in twice {
            repair.remove(entry)
            add(
                VerifyFinding(.entryDamaged, key: entry.key, file: "book", text: "two entries have the same number"),
                isRepairable: true)
        }
    }

    private func refusal(_ error: BookError) -> DiskRefusal {
        switch error {
        case .failed(let code): Directory.refusal(store.bookPath, code)
        case .unknownVersion(let version): .unknownVersion(path: store.bookPath, version: version)
        case .damaged, .full: .failed(path: store.bookPath, errno: EIO)
        }
    }

    // MARK: files

    private mutating func readSegment(
        _ file: VerifiedStore.File, _ book: Book?, _ tell: (VerifyProgress) -> Void
    ) {
        let name = store.name(of: file.number, isLarge: false)
        guard let segment = openSegment(file.number) else { return advance(file.bytes, tell) }
        // What a crash left beyond the end that the book knows is no damage. Without a book that end is unknown.
        let end = book == nil ? file.bytes : covered[file.number]?.coveredEnd ?? 0
        if file.bytes < end {
            repair.cover(file.number, file.bytes)
            add(
                VerifyFinding(
                    .segmentDamaged, file: name, offset: file.bytes, text: "it is shorter than the book says"),
                isRepairable: true)
        }
        var scan = RecordScan(segment, depth: .everything, mode: .search)
        var told: UInt64 = 0
        do throws(DiskReadError) {
            while let found = try scan.next() {
                noteFound(found, in: file, coveredEnd: end)
                advance(min(scan.end, file.bytes) - told, tell)
                told = min(scan.end, file.bytes)
            }
        } catch {
            // A deletion during the read does not matter, because the file stays open: this is an error of the medium.
            add(VerifyFinding(.readFailed, file: name, offset: scan.end, text: "\(error)"), isRepairable: false)
        }
        advance(file.bytes - told, tell)
    }

    /// Opens a segment. If its header is damaged, the records are still there and say themselves where they belong.
    private mutating func openSegment(_ number: UInt32) -> SegmentFile? {
        let name = store.name(of: number, isLarge: false)
        let path = store.path(of: number, isLarge: false)
        do throws(DiskFileError) {
            do throws(DiskFileError) {
                return try SegmentFile.open(path, store.identity(number), calls: store.calls)
            } catch .header(let error) {
                repair.headers.append(number)
                add(VerifyFinding(.segmentDamaged, file: name, text: "its header: \(error)"), isRepairable: true)
                return try SegmentFile.open(path, store.identity(number), checksHeader: false, calls: store.calls)
            }
        } catch {
            if error != .failed(errno: ENOENT) {
                add(VerifyFinding(.readFailed, file: name, text: "\(error)"), isRepairable: false)
            }
            return nil
        }
    }

    private mutating func noteFound(_ found: RecordScan.Found, in file: VerifiedStore.File, coveredEnd: UInt64) {
        switch found {
        case .object(let head):
            report.blocksRead += UInt64(head.checksums.count)
            if known.markSeen(head) {
                report.objectsGood += 1
            } else if head.place.offset >= coveredEnd, !known.contains(head.id) {
                report.objectsNew += 1
            }
        case .drops: break
        case .damagedObject(let head, let error):
            report.blocksRead += UInt64(head.checksums.count)
            // A live object is examined again, together with those that were not met.
            guard !known.isLive(head) else { break }
            let end = head.place.offset + head.place.recordLength
            damaged(
                head.place.offset..<end, in: file, coveredEnd, key: head.key,
                "a record that is not in use is damaged: \(error)")
        case .damaged(let range, let error):
            damaged(range, in: file, coveredEnd, "\(range.count) bytes are not a record: \(error)")
        }
    }

    /// Reports damage, except at the end of the file or beyond the end that the book knows: a crash may have left that.
    private mutating func damaged(
        _ range: Range<UInt64>, in file: VerifiedStore.File, _ coveredEnd: UInt64, key: [UInt8] = [], _ text: String
    ) {
        guard range.upperBound < file.bytes, range.upperBound <= coveredEnd else { return }
        repair.fill(range, of: file.number)
        let name = store.name(of: file.number, isLarge: false)
        add(
            VerifyFinding(.segmentDamaged, key: key, file: name, offset: range.lowerBound, text: text),
            isRepairable: true)
    }

    private mutating func readLarge(_ file: VerifiedStore.File, _ book: Book?) {
        let name = store.name(of: file.number, isLarge: true)
        do throws(DiskFileError) {
            let large = try LargeFile.open(
                store.path(of: file.number, isLarge: true), store.identity(file.number), writes: false,
                calls: store.calls)
            guard known.isLive(large.head) else {
                if book != nil, !known.contains(large.id) { report.objectsNew += 1 }
                return
            }
            let damage = readBlocks(large)
            guard damage.isEmpty else { return }  // it is examined again, together with those that were not met
            _ = known.markSeen(large.head)
            report.objectsGood += 1
            report.largeGood += 1
            largeGood.insert(file.number)
        } catch .failed(errno: ENOENT) {
            // A running proxy deleted it.
        } catch .header(.unwritten) where !known.largeFiles.contains(file.number) {
            // A response of unknown length was on its way: a running proxy completes the file, and a start deletes it.
        } catch .header(let error) {
            // If the book has the file, its object is examined later as one that was not met.
            guard !known.largeFiles.contains(file.number) else { return }
            repair.deletions.append(file.number)
            add(VerifyFinding(.fileUnknown, file: name, text: "its head: \(error)"), isRepairable: true)
        } catch {
            add(VerifyFinding(.readFailed, file: name, text: "\(error)"), isRepairable: false)
        }
    }

    /// The blocks that the table has, and that are damaged or cannot be read.
    private mutating func readBlocks(_ large: LargeFile) -> [Int] {
        var damaged: [Int] = []
        for extent in large.extents {
            for start in stride(from: extent.lowerBound, to: extent.upperBound, by: blockBytes) {
                let count = min(blockBytes, extent.upperBound - start)
                let outcome = unsafe withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) {
                    unsafe large.read(from: start, into: $0, waits: true)
                }
                report.blocksRead += 1
                if outcome != .done { damaged.append(start / blockBytes) }
            }
        }
        return damaged
    }

    // MARK: entries

    /// Goes through all entries of the book: records that were not met, renewed heads, tags.
    private mutating func readEntries(_ book: Book) throws(DiskRefusal) {
        var tags: [[UInt8]: Int] = [:]
        do throws(BookError) {
            var cursor: BookCursor?
            repeat {
                let page = try book.page(after: cursor, limit: Self.pageEntries)
                for entry in page.entries {
                    // The book did not have this entry at the beginning: it is newer than the verification.
                    guard let wasSeen = known.wasSeen(entry.id) else { continue }
                    if !wasSeen { try examine(entry, book) }
                    if entry.hasRenewedHead { try checkRenewal(entry, book) }
                    for tag in Set(entry.attributes.tags) { tags[tag, default: 0] += 1 }
                }
                cursor = page.next
            } while cursor != nil
            if !report.wasInUse, !store.isInUse { try check(tags, book) }
        } catch { throw refusal(error) }
    }

    /// How often to follow an object that moves.
    private static let attemptsMax = 5

    private mutating func examine(_ listed: BookEntry, _ book: Book) throws(BookError) {
        var entry = listed
        for _ in 0..<Self.attemptsMax {
            let problem = problem(of: entry)
            guard let now = try book.entry(entry.id, key: entry.key) else { return }
            if now.place == entry.place || problem == nil { return conclude(entry, problem) }
            entry = now
        }
    }

    private struct Problem {
        var kind: VerifyFinding.Kind
        var offset: UInt64
        var text: String
        /// For a large object: the blocks that are lost.
        var blocks: [Int]?
    }

    private mutating func conclude(_ entry: BookEntry, _ problem: Problem?) {
        guard let problem else {
            report.objectsGood += 1
            if entry.place.kind == .large { report.largeGood += 1 }
            return repair.keep(entry)
        }
        if let blocks = problem.blocks {
            repair.lost(blocks, of: entry)
        } else {
            repair.remove(entry)
            let number = entry.place.segment
            if entry.place.kind == .large, !largeGood.contains(number) { repair.deletions.append(number) }
        }
        let file = store.name(of: entry.place.segment, isLarge: entry.place.kind == .large)
        add(
            VerifyFinding(problem.kind, key: entry.key, file: file, offset: problem.offset, text: problem.text),
            isRepairable: true)
    }

    private mutating func problem(of entry: BookEntry) -> Problem? {
        let isLarge = entry.place.kind == .large
        let path = store.path(of: entry.place.segment, isLarge: isLarge)
        let identity = store.identity(entry.place.segment)
        do throws(DiskFileError) {
            if isLarge {
                let large = try LargeFile.open(path, identity, writes: false, calls: store.calls)
                guard large.id == entry.id, large.head.key == entry.key else { return notAtItsPlace(entry) }
                let damaged = readBlocks(large)
                guard let first = damaged.first else { return nil }
                let text =
                    damaged.count == 1
                    ? "block \(first) is damaged" : "\(damaged.count) blocks are damaged, the first is \(first)"
                return Problem(kind: .blockDamaged, offset: UInt64(first * blockBytes), text: text, blocks: damaged)
            }
            return problem(of: entry, in: try SegmentFile.open(path, identity, checksHeader: false, calls: store.calls))
        } catch .failed(errno: ENOENT) {
            return Problem(kind: .segmentMissing, offset: entry.place.offset, text: "its file does not exist")
        } catch .failed(let code) {
            return Problem(
                kind: .readFailed, offset: entry.place.offset, text: "its file cannot be read: \(systemErrorText(code))"
            )
        } catch {
            return Problem(kind: .recordDamaged, offset: entry.place.offset, text: "\(error)")
        }
    }

    private mutating func problem(of entry: BookEntry, in file: SegmentFile) -> Problem? {
        let head: StoredHead
        do throws(DiskReadError) {
            head = try file.readHead(entry.place, waits: true)
        } catch .failed(let code) {
            return Problem(
                kind: .readFailed, offset: entry.place.offset, text: "it cannot be read: \(systemErrorText(code))")
        } catch { return notAtItsPlace(entry) }
        guard head.id == entry.id, head.key == entry.key, head.place == entry.place else { return notAtItsPlace(entry) }
        for block in head.checksums.indices {
            let start = block * blockBytes
            let count = min(blockBytes, Int(head.place.bodyLength) - start)
            let outcome = unsafe withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) {
                unsafe file.readBody(of: head.place, checksums: head.checksums, offset: start, into: $0, waits: true)
            }
            report.blocksRead += 1
            switch outcome {
            case .done: continue
            case .failed(let code):
                return Problem(
                    kind: .readFailed, offset: entry.place.offset, text: "it cannot be read: \(systemErrorText(code))")
            case .damaged, .wouldBlock:
                return Problem(kind: .blockDamaged, offset: entry.place.offset, text: "block \(block) is damaged")
            }
        }
        return nil
    }

    private func notAtItsPlace(_ entry: BookEntry) -> Problem {
        Problem(kind: .recordDamaged, offset: entry.place.offset, text: "its record is not there")
    }

    private mutating func checkRenewal(_ listed: BookEntry, _ book: Book) throws(BookError) {
        guard try book.renewal(of: listed.id) == nil else { return }
        guard try book.entry(listed.id, key: listed.key)?.hasRenewedHead == true else { return }
        guard try book.renewal(of: listed.id) == nil else { return }
        repair.remove(listed)
        add(
            VerifyFinding(.entryDamaged, key: listed.key, file: "book", text: "its renewed head is missing or damaged"),
            isRepairable: true)
    }

    /// - Parameter tags: how many objects each tag should lead to.
    private mutating func check(_ tags: [[UInt8]: Int], _ book: Book) throws(BookError) {
        var wrong: [VerifyFinding] = []
        for (tag, count) in tags {
            var found = 0
            var cursor: BookCursor?
            repeat {
                let page = try book.page(after: cursor, tag: tag, limit: Self.pageEntries)
                found += page.entries.count
                cursor = page.next
            } while cursor != nil
            guard found != count else { continue }
            let name =
                AddressTag.address(of: tag).map { "address \(String(decoding: $0, as: UTF8.self))" }
                ?? "tag \(String(decoding: tag, as: UTF8.self))"
            let text =
                "the \(name) leads to \(found) stored responses, but \(count) have it"
            wrong.append(VerifyFinding(.tagWrong, file: "book", text: text))
        }
        // A proxy that started meanwhile changes what was counted.
        guard !wrong.isEmpty, !store.isInUse else { return }
        repair.mustRewrite = true
        for finding in wrong { add(finding, isRepairable: true) }
    }
}
