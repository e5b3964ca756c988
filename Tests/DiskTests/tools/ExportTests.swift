import Foundation
import EventLoop
import Testing

@testable import Disk
@testable import DiskTools

/// A store made of its files and its book, in a directory that goes with it; nothing runs.
final class ExportRoom {
    let path: String
    var store: String { path + "/store" }
    var archive: String { path + "/out.tar" }
    private let storeID: StoreID
    private var segment: SegmentFile
    private var nextNumber: UInt32 = 2

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/larder-export-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let directory = try Directory.open(path + "/store", size: 64 << 20)
        try directory.makeSubdirectories()
        storeID = directory.storeID
        let book = try Self.openBook(directory.bookPath, storeID)
        book.close()
        segment = try SegmentFile.create(
            directory.segmentPath(1), SegmentIdentity(store: storeID, number: 1), created: 0, room: 0,
            calls: SystemCalls())
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// One process may have a book open once: what exports opens it itself.
    func commit(_ changes: [BookChange]) throws {
        let book = try openBook()
        defer { book.close() }
        try book.commit(changes)
    }

    func openBook() throws -> Book { try Self.openBook(store + "/book", storeID) }

    private static func openBook(_ path: String, _ storeID: StoreID) throws -> Book {
        try Book.open(path, storeID: storeID.bytes, sizeMax: 1 << 30, calls: SystemCalls())
    }

    func source(_ book: Book) throws -> ExportSource {
        ExportSource(try VerifiedStore.open(store, locks: false, calls: SystemCalls()), book)
    }

    static func attributes(_ storageClass: StorageClass = .permanent) -> ObjectAttributes {
        ObjectAttributes(
            storageClass: storageClass, status: 200, storedAt: 1_700_000_000, expiresAt: 1_700_003_600,
            mediaType: Array("text/plain".utf8), tags: [Array("news".utf8)])
    }

    /// Bytes that tell where they came from.
    static func body(_ id: UInt64, _ count: Int) -> [UInt8] {
        var numbers = Numbers(seed: id)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }
    }

    @discardableResult
    func put(
        _ id: UInt64, _ url: String, bytes: Int, head: String = "head", addresses: [String] = []
    ) throws -> BookEntry {
        var attributes = Self.attributes()
        attributes.tags += addresses.map { AddressTag.tag(of: Array($0.utf8)) }
        var batch = RecordBatch(segment.identity, at: segment.end)
        let place = try batch.add(
            PackedObject(
                id: ObjectID(rawValue: id), hash: 0, key: Array(url.utf8), attributes: attributes,
                head: Array(head.utf8), body: Bytes(Self.body(id, bytes))))
        try segment.append(batch)
        let entry = BookEntry(
            id: ObjectID(rawValue: id), key: Array(url.utf8), place: place, attributes: attributes)
        try commit([.put(entry)])
        return entry
    }

    @discardableResult
    func putLarge(_ id: UInt64, _ url: String, bytes: Int, blocks: [Int]) throws -> (BookEntry, LargeFile) {
        let number = nextNumber
        nextNumber += 1
        try FileManager.default.createDirectory(
            atPath: store + "/large/" + String(format: "%02x", number), withIntermediateDirectories: true)
        let file = try LargeFile.create(
            store + "/large/" + String(format: "%02x/%08x.seg", number, number),
            SegmentIdentity(store: storeID, number: number), id: ObjectID(rawValue: id), key: Array(url.utf8),
            attributes: Self.attributes(.pinned), head: Array("large".utf8), length: bytes, calls: SystemCalls())
        let body = Bytes(Self.body(id, bytes))
        for block in blocks { try file.publish([try file.write(block: block, from: body, at: block * blockBytes)]) }
        let entry = BookEntry(
            id: ObjectID(rawValue: id), key: Array(url.utf8), place: file.place, attributes: Self.attributes(.pinned),
            isComplete: file.isComplete)
        try commit([.put(entry)])
        return (entry, file)
    }

    /// Some objects of two hosts, packed and large, one of them in parts.
    func fill() throws {
        try put(1, "http://www.example.org/a", bytes: 0)
        try put(2, "http://www.example.org/b/../c d?x=\n", bytes: 1)
        try put(3, "https://example.net/" + String(repeating: "long/", count: 80), bytes: 70_000)
        try put(4, "no uri", bytes: 511)
        try putLarge(5, "http://www.example.org/large", bytes: 3 * blockBytes + 5, blocks: [0, 1, 2, 3])
        try putLarge(6, "http://example.net/parts", bytes: 4 * blockBytes, blocks: [1, 3])
    }

    func options(_ range: BookRange = .all, _ selection: String = "all") -> ExportOptions {
        ExportOptions(
            path: store, zone: "default", archive: archive, range: range, selection: selection, sha256: sha256)
    }

    @discardableResult
    func export(
        _ range: BookRange = .all, _ selection: String = "all", calls: any DiskCalls = SystemCalls(),
        damaged: (String) -> Void = { _ in }
    ) throws -> ExportReport {
        try DiskTools.export(options(range, selection), calls: calls, progress: { _ in }) {
            damaged(String(decoding: $0, as: UTF8.self))
        }
    }

    func survey(_ archive: String? = nil, damaged: (String) -> Void = { _ in }) throws -> ImportReport {
        try surveyImport(
            ImportOptions(
                archive: archive ?? self.archive,
                store: DiskOptions(path: path + "/elsewhere", size: 64 << 20, pinned: 0, hash: { _ in 0 }),
                sha256: sha256), progress: { _ in }
        ) { damaged(String(decoding: $0, as: UTF8.self)) }
    }

    var archived: [UInt8] {
        get throws { [UInt8](try Data(contentsOf: URL(filePath: archive))) }
    }

    func overwrite(_ file: String, at offset: Int, _ change: (inout UInt8) -> Void) throws {
        let handle = try FileHandle(forUpdating: URL(filePath: file))
        defer { try? handle.close() }
        try handle.seek(toOffset: UInt64(offset))
        var byte = try #require(try handle.read(upToCount: 1)?.first)
        change(&byte)
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: [byte])
    }
}

/// No digest to trust, but one that tells changed bytes: 32 bytes from eight checksums.
@Sendable func sha256(_ bytes: [UInt8]) -> [UInt8] {
    (0..<8).flatMap { index -> [UInt8] in
        var checksum = Checksum(seed: UInt32(index))
        checksum.add(bytes)
        return (0..<4).map { UInt8(truncatingIfNeeded: checksum.value >> (8 * $0)) }
    }
}

@safe private final class Bytes: BodyBytes, @unchecked Sendable {
    private let bytes: UnsafeMutableRawBufferPointer
    var byteCount: Int { unsafe bytes.count }

    init(_ source: [UInt8]) {
        unsafe bytes = .allocate(byteCount: source.count, alignment: 16)
        unsafe bytes.copyBytes(from: source)
    }

    deinit { unsafe bytes.deallocate() }

    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int {
        guard byteCount > offset else { return 0 }
        unsafe vectors[0] = iovec(iov_base: bytes.baseAddress! + offset, iov_len: min(limit, byteCount - offset))
        return 1
    }
}

private func output(_ words: String...) throws -> (status: Int32, text: String) {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", words.joined(separator: " ")]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: data, as: UTF8.self))
}

@Suite("Export of a store")
struct ExportTests {
    @Test func `the archive is intact and has everything`() throws {
        let room = try ExportRoom()
        try room.fill()
        let report = try room.export()
        #expect(report.objects == 6 && report.isFine && report.gone == 0 && report.objectsBefore == 0)
        let survey = try room.survey()
        #expect(survey.objects == 6 && survey.isFine, "\(survey)")
        #expect(survey.bytes == report.bytes)
    }

    @Test func `tar lists one file for each object, and no name leads out of the directory`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let (status, text) = try output("tar -tf", room.archive)
        #expect(status == 0)
        let names = text.split(separator: "\n")
        #expect(names.count == 8 && names.first == "larder-export" && names.last == "larder-export.sha256")
        #expect(names.contains("objects/0000000000000001/http:/www.example.org/a.record"))
        #expect(names.contains("objects/0000000000000002/http:/www.example.org/b/%2E%2E/c%20d?x=%0A.record"))
        #expect(names.allSatisfy { !$0.hasPrefix("/") && !$0.contains("..") })
        let unpacked = try output(
            "mkdir \(room.path)/x && tar -xf \(room.archive) -C \(room.path)/x && find \(room.path)/x -type f | wc -l")
        #expect(unpacked.status == 0 && unpacked.text.contains("8"))
    }

    @Test func `an empty store gives an archive without objects`() throws {
        let room = try ExportRoom()
        #expect(try room.export().objects == 0)
        let survey = try room.survey()
        #expect(survey.objects == 0 && survey.isFine)
    }

    @Test func `a dry run counts, and writes nothing`() throws {
        let room = try ExportRoom()
        try room.fill()
        var options = room.options()
        options.isDryRun = true
        let report = try DiskTools.export(options, progress: { _ in }, damaged: { _ in })
        #expect(report.objects == 6 && report.bytes > 500_000)
        #expect(!FileManager.default.fileExists(atPath: room.archive))
    }

    static let selections: [(range: BookRange, expected: UInt64)] = [
        (.host(Array("www.example.org".utf8)), 3), (.host(Array("example.net".utf8)), 2),
        (.below(Array("example.org".utf8)), 3), (.keyPrefix(Array("http://www.example.org/l".utf8)), 1),
        (.keyPrefix(Array("http://nowhere/".utf8)), 0),
    ]
    @Test(arguments: selections.indices) func `a part can be selected`(_ index: Int) throws {
        let room = try ExportRoom()
        try room.fill()
        let row = Self.selections[index]
        #expect(try room.export(row.range).objects == row.expected, "\(row.range)")
    }

    @Test func `the renewed head is exported`() throws {
        let room = try ExportRoom()
        let entry = try room.put(1, "http://a/", bytes: 10, head: "old")
        var attributes = ExportRoom.attributes()
        attributes.expiresAt += 1
        try room.commit([.renew(entry.id, key: entry.key, attributes, head: Array("new".utf8))])
        #expect(try room.export().isFine)
        let text = String(decoding: try room.archived, as: UTF8.self)
        #expect(text.contains("new") && !text.contains("old"))
        #expect(try room.survey().isFine)
    }

    // MARK: interruptions

    @Test func `an archive that was cut off anywhere is continued to the same bytes`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let whole = try room.archived
        var lengths = Array(stride(from: 0, to: whole.count, by: 12_289)) + [1, 511, 512, 513, 1023, 1024, 1025]
        lengths += [whole.count - 1, whole.count - 512, whole.count - 1024, whole.count - 1025, whole.count - 1536]
        for length in lengths {
            try Data(whole[..<length]).write(to: URL(filePath: room.archive))
            let report = try room.export()
            #expect(report.objects + report.objectsBefore == 6, "cut to \(length): \(report)")
            #expect(try room.archived == whole, "cut to \(length)")
        }
    }

    @Test func `a damaged end of the archive is cut off and written again`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let whole = try room.archived
        for offset in stride(from: 1600, to: whole.count - 2048, by: 30_011) {
            try Data(whole.dropLast(1024)).write(to: URL(filePath: room.archive))
            try room.overwrite(room.archive, at: offset) { $0 ^= 1 }
            do {
                try room.export()
                let result = try room.survey()
                // In padding, or in a name, a flipped bit is not seen when going on; the digest is of what is there.
                #expect(result.isFine || result.damaged == 0, "\(offset): \(result)")
            } catch {
                Issue.record("\(offset): \(error)")
            }
        }
    }

    @Test func `later objects are added, and those in the archive are not repeated`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let whole = try room.archived
        try Data(whole[..<(whole.count / 2)]).write(to: URL(filePath: room.archive))
        try room.put(7, "http://www.example.org/new", bytes: 100)
        let report = try room.export()
        #expect(report.objectsBefore > 0 && report.objects + report.objectsBefore == 7)
        let survey = try room.survey()
        #expect(survey.objects == 7 && survey.isFine)
    }

    @Test func `a full disk is reported, and the next attempt continues`() throws {
        let room = try ExportRoom()
        try room.fill()
        let calls = FaultyCalls()
        calls.inject(.fail(ENOSPC), into: [.write], path: "out.tar", after: 0, times: 1)
        #expect(throws: ArchiveError.archive(room.archive, errno: ENOSPC)) { try room.export(calls: calls) }
        #expect(try room.export().isFine)
        #expect(try room.survey().objects == 6)
    }

    // MARK: what is not written to

    @Test func `a complete export is not written again`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let whole = try room.archived
        #expect(throws: ArchiveError.alreadyWhole(room.archive)) { try room.export() }
        #expect(try room.archived == whole)
    }

    @Test func `another export is not continued`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let part = try room.archived.dropLast(2000)
        try Data(part).write(to: URL(filePath: room.archive))
        #expect(throws: ArchiveError.another(room.archive)) {
            try room.export(.host(Array("example.net".utf8)), "host example.net")
        }
        #expect(try room.archived == Array(part))
    }

    static let foreign: [(name: String, bytes: [UInt8])] = [
        ("text", Array("precious".utf8)), ("zeros", [UInt8](repeating: 0, count: 4096)),
        ("the beginning of another", Array("larder-expert".utf8)),
        ("another archive", Tar.header(of: .init(name: Array("a".utf8), size: 0, modifiedAt: 0)) + Tar.end),
    ]
    @Test(arguments: foreign.indices) func `a file that is no export is left alone`(_ index: Int) throws {
        let room = try ExportRoom()
        try room.fill()
        let row = Self.foreign[index]
        try Data(row.bytes).write(to: URL(filePath: room.archive))
        #expect(throws: ArchiveError.notAnExport(room.archive), "\(row.name)") { try room.export() }
        #expect(try room.archived == row.bytes, "\(row.name)")
        #expect(throws: ArchiveError.notAnExport(room.archive), "\(row.name)") { try room.survey() }
    }

    @Test func `an unknown version is refused`() throws {
        let room = try ExportRoom()
        let text = Array("larder export 2\n".utf8)
        let header = Tar.header(of: .init(name: ExportFormat.headName, size: UInt64(text.count), modifiedAt: 0))
        try Data(header + text + [UInt8](repeating: 0, count: 512 - text.count) + Tar.end)
            .write(to: URL(filePath: room.archive))
        #expect(throws: ArchiveError.unknownVersion(room.archive, 2)) { try room.export() }
        #expect(throws: ArchiveError.unknownVersion(room.archive, 2)) { try room.survey() }
    }

    @Test func `a missing or foreign store is reported`() throws {
        let room = try ExportRoom()
        var options = room.options()
        options.path = room.path + "/nothing"
        #expect(throws: ArchiveError.noStore(options.path)) {
            try DiskTools.export(options, progress: { _ in }, damaged: { _ in })
        }
        try Data("larder store 9\n".utf8).write(to: URL(filePath: room.store + "/larder-store"))
        #expect(throws: ArchiveError.store(.unknownVersion(path: room.store, version: 9))) { try room.export() }
        try Data("what else".utf8).write(to: URL(filePath: room.store + "/larder-store"))
        #expect(throws: ArchiveError.store(.foreign(path: room.store))) { try room.export() }
    }

    // MARK: damage in the store

    @Test func `a damaged record is left out and reported`() throws {
        let room = try ExportRoom()
        try room.fill()
        let entry = try room.put(9, "http://www.example.org/damaged", bytes: 100)
        let offset = Int(entry.place.offset) + Int(entry.place.headLength) + 50
        try room.overwrite(room.store + "/segments/00000001.seg", at: offset) { $0 ^= 4 }
        let told = Locked<[String]>([])
        let report = try room.export { key in told.withLock { $0.append(key) } }
        #expect(report.objects == 6 && report.damaged == 1 && !report.isFine)
        #expect(told.withLock { $0 } == ["http://www.example.org/damaged"])
        #expect(try room.survey().isFine)
    }

    @Test func `a damaged block is left out of its object, and the store is not written to`() throws {
        let room = try ExportRoom()
        let (_, file) = try room.putLarge(5, "http://a/large", bytes: 3 * blockBytes, blocks: [0, 1, 2])
        let end = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as! Int
        try room.overwrite(file.path, at: end - blockBytes - 7) { $0 ^= 4 }
        let before = try Data(contentsOf: URL(filePath: file.path))
        let report = try room.export()
        #expect(report.objects == 1 && report.damagedBlocks == 1 && !report.isFine)
        #expect(try Data(contentsOf: URL(filePath: file.path)) == before)
        let survey = try room.survey()
        #expect(survey.objects == 1 && survey.isFine, "what could not be read is not there: \(survey)")
    }

    @Test func `an object that moved is found at its new place, and a removed one is counted as gone`() throws {
        let room = try ExportRoom()
        let old = try room.put(1, "http://a/", bytes: 100)
        try room.overwrite(room.store + "/segments/00000001.seg", at: Int(old.place.offset)) { $0 ^= 1 }
        let new = try room.put(1, "http://a/", bytes: 100)
        #expect(new.place != old.place)
        let book = try room.openBook()
        defer { book.close() }
        let source = try room.source(book)
        guard case .object(.packed(let head, let body)) = try source.read(old) else {
            return #expect(Bool(false), "it moved")
        }
        #expect(head.id == old.id && body == ExportRoom.body(1, 100))
        try book.commit([.remove(old.id, key: old.key)])
        guard case .gone = try source.read(old) else { return #expect(Bool(false), "it is gone") }
    }

    // MARK: the archive as it is read

    @Test func `every flipped bit of an archive is detected`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let whole = try room.archived
        var numbers = Numbers(seed: 7)
        let copy = room.path + "/copy.tar"
        try Data(whole).write(to: URL(filePath: copy))
        // Of the mark of the end only whole zeros count.
        for _ in 0..<150 {
            let (offset, bit) = (Int(numbers.next() % UInt64(whole.count)), UInt8(1) << UInt8(numbers.next() % 8))
            try room.overwrite(copy, at: offset) { $0 ^= bit }
            do {
                let survey = try room.survey(copy)
                #expect(!survey.isFine, "byte \(offset) of \(whole.count)")
                #expect(survey.objects + survey.damaged <= 7)
            } catch is ArchiveError {
                // In the first member: it is none of ours any more.
            }
            try room.overwrite(copy, at: offset) { $0 ^= bit }
        }
        #expect(try room.survey(copy).isFine)
    }

    @Test func `a damaged member is skipped, and the others are imported`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let whole = try room.archived
        for (offset, what) in [(1024, "a header"), (1024 + 512 + 70, "a record")] {
            try Data(whole).write(to: URL(filePath: room.archive))
            try room.overwrite(room.archive, at: offset) { $0 ^= 1 }
            let told = Locked<[String]>([])
            let survey = try room.survey { name in told.withLock { $0.append(name) } }
            #expect(survey.objects == 5 && survey.damaged == 1 && survey.isDigestRight == false, "\(what): \(survey)")
            #expect(told.withLock { $0.count } == 1)
        }
    }

    @Test func `an incomplete archive is reported, and its whole members are imported`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let whole = try room.archived
        for length in stride(from: 1024, to: whole.count, by: 20_011) {
            try Data(whole[..<length]).write(to: URL(filePath: room.archive))
            let survey = try room.survey()
            #expect(!survey.isFine && !survey.isWhole && survey.damaged == 0 && survey.objects < 7, "\(length)")
        }
    }

    @Test func `the digest can be computed without Larder`() throws {
        let room = try ExportRoom()
        for id in 1...40 as ClosedRange<UInt64> { try room.put(id, "http://a/\(id)", bytes: 100_000) }
        var options = room.options()
        options.archive = room.archive
        options.sha256 = { [file = room.path + "/piece"] bytes in
            #expect(FileManager.default.createFile(atPath: file, contents: Data(bytes)))
            let hex = (try? output("sha256sum <", file).text.prefix(64)) ?? ""
            return stride(from: 0, to: 64, by: 2).compactMap { index in
                UInt8(hex.dropFirst(index).prefix(2), radix: 16)
            }
        }
        _ = try DiskTools.export(options, progress: { _ in }, damaged: { _ in })
        let facts = try output("tar -xOf", room.archive, "larder-export.sha256").text.split(separator: "\n")
        let bytes = try #require(facts.first { $0.hasPrefix("bytes ") }?.dropFirst(6))
        let digest = try #require(facts.first { $0.hasPrefix("sha256 ") }?.dropFirst(7))
        let found = try output(
            "head -c \(bytes) \(room.archive) | split -b 1M --filter='sha256sum | cut -c1-64' | sha256sum")
        #expect(found.text.hasPrefix(digest), "\(found.text) \(facts)")
    }
}
