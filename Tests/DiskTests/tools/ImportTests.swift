import EventLoop
import Foundation
import Testing

@testable import Disk
@testable import DiskTools

/// A hash of keys as good as any.
@Sendable private func hash(_ key: [UInt8]) -> UInt64 {
    key.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
}

extension ExportRoom {
    fileprivate func storeOptions(size: UInt64 = 64 << 20, pinned: UInt64 = 32 << 20) -> DiskOptions {
        DiskOptions(
            path: path + "/target", size: size, pinned: pinned, syncInterval: .milliseconds(100), hash: hash)
    }

    fileprivate func take(
        size: UInt64 = 64 << 20, pinned: UInt64 = 32 << 20, calls: any DiskCalls = SystemCalls(),
        selects: @escaping @Sendable ([UInt8]) -> Bool = { _ in true }
    ) throws -> ImportReport {
        try DiskTools.import(
            ImportOptions(
                archive: archive, store: storeOptions(size: size, pinned: pinned), selects: selects, sha256: sha256),
            calls: calls, progress: { _ in }, damaged: { _ in })
    }

    /// Opens what was imported, as a proxy would.
    fileprivate func withTarget(_ body: (DiskStore) throws -> Void) throws {
        let store = try DiskStore.open(storeOptions(), calls: SystemCalls())
        defer { store.close() }
        let loaded = CountingSemaphore()
        store.whenLoaded { loaded.signal() }
        loaded.wait()
        try body(store)
    }
}

extension DiskStore {
    fileprivate func heads(_ url: String) throws -> [StoredHead] {
        guard case .places(let places) = find(hash(Array(url.utf8))) else { return [] }
        return try places.map { try readHead($0, waits: true) }
    }

    fileprivate func body(_ head: StoredHead) -> [UInt8]? {
        var body = [UInt8](repeating: 0, count: Int(head.place.bodyLength))
        let outcome = unsafe body.withUnsafeMutableBytes {
            unsafe readBody(of: head.place, checksums: head.checksums, offset: 0, into: $0, waits: true)
        }
        return outcome == .done ? body : nil
    }
}

@Suite("Import into a store")
struct ImportTests {
    @Test func `what has its key by a digest is exported and imported by its addresses, and keeps them`() throws {
        let room = try ExportRoom()
        let key = "http://first.example/sha256:1#digest"
        try room.put(1, key, bytes: 3, addresses: ["http://m1.example/d/1", "http://m2.example/d/1"])
        try room.put(2, "http://m1.example/d/2", bytes: 3)
        #expect(try room.export(.host(Array("m2.example".utf8)), "host m2.example").objects == 1)
        let key1 = Array("http://m1.example/".utf8)
        let none = try room.take(selects: { $0.starts(with: Array("http://first.example/".utf8)) })
        #expect((none.objects, none.notSelected) == (0, 1))
        #expect(try room.take(selects: { $0.starts(with: key1) }).objects == 1)
        try room.withTarget { store in
            let addresses = try store.heads(key).map {
                $0.attributes.addresses.map { String(decoding: $0, as: UTF8.self) }
            }
            #expect(addresses == [["http://m1.example/d/1", "http://m2.example/d/1"]])
            let page = try #require(store.page(after: nil, in: .keyPrefix(key1), limit: 9))
            #expect(page.entries.map(\.key) == [Array(key.utf8)])
        }
    }

    @Test func `an import restores the export byte by byte`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let report = try room.take()
        #expect(report.objects == 6 && report.isFine && report.there == 0 && report.evicted == 0, "\(report)")
        try room.withTarget { store throws in
            let long = try #require(
                try store.heads("https://example.net/" + String(repeating: "long/", count: 80)).first)
            #expect(long.head == Array("head".utf8) && long.attributes == ExportRoom.attributes())
            #expect(store.body(long) == ExportRoom.body(3, 70_000))
            let empty = try #require(try store.heads("http://www.example.org/a").first)
            #expect(empty.place.bodyLength == 0)

            let parts = try #require(try store.heads("http://example.net/parts").first)
            #expect(parts.attributes == ExportRoom.attributes(.pinned))
            let large = try store.openLarge(parts, hash: hash(parts.key))
            #expect(large.extents == [blockBytes..<2 * blockBytes, 3 * blockBytes..<4 * blockBytes])
            var block = [UInt8](repeating: 0, count: blockBytes)
            let outcome = unsafe block.withUnsafeMutableBytes {
                unsafe large.read(from: blockBytes, into: $0, waits: true)
            }
            #expect(outcome == .done && block == Array(ExportRoom.body(6, 4 * blockBytes)[blockBytes..<2 * blockBytes]))
        }
    }

    @Test func `a second import finds everything stored`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        #expect(try room.take().objects == 6)
        let again = try room.take()
        #expect(again.objects == 0 && again.there == 6 && again.isFine, "\(again)")
        try room.withTarget { store throws in
            #expect(try store.heads("http://www.example.org/a").count == 1)
            #expect(store.statistics.objectCount == 6)
        }
    }

    @Test func `another object under the same URL is stored beside the first`() throws {
        let room = try ExportRoom()
        try room.put(1, "http://a/", bytes: 10, head: "one")
        try room.put(2, "http://a/", bytes: 10, head: "two")
        try room.export()
        #expect(try room.take().objects == 2)
        try room.withTarget { store throws in
            #expect(Set(try store.heads("http://a/").map(\.head)) == [Array("one".utf8), Array("two".utf8)])
        }
    }

    @Test func `a large object that is stored in part gets its missing blocks`() throws {
        let room = try ExportRoom()
        try room.putLarge(1, "http://a/", bytes: 3 * blockBytes, blocks: [0])
        try room.export()
        #expect(try room.take().objects == 1)
        let other = try ExportRoom()
        try other.putLarge(1, "http://a/", bytes: 3 * blockBytes, blocks: [0, 1, 2])
        try other.export()
        try FileManager.default.removeItem(atPath: room.archive)
        try FileManager.default.moveItem(atPath: other.archive, toPath: room.archive)
        let report = try room.take()
        #expect(report.objects == 1 && report.completed == 1 && report.isFine, "\(report)")
        try room.withTarget { store throws in
            let heads = try store.heads("http://a/")
            #expect(heads.count == 1)
            let large = try store.openLarge(try #require(heads.first), hash: hash(Array("http://a/".utf8)))
            #expect(large.extents == [0..<3 * blockBytes])
        }
    }

    @Test func `only selected objects are imported`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let report = try room.take { $0.starts(with: Array("http://www.example.org/".utf8)) }
        #expect(report.objects == 3 && report.notSelected == 3 && report.isFine, "\(report)")
    }

    @Test func `damaged members of the archive do not reach the store`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let name = Array("objects/0000000000000003/".utf8)
        let whole = try room.archived
        let at = try #require(whole.firstRange(of: name))
        // Behind a header with a pax record: in the middle of 70 000 bytes.
        try room.overwrite(room.archive, at: at.lowerBound + 40_000) { $0 ^= 1 }
        let report = try room.take()
        #expect(
            report.objects == 5 && report.damaged == 1 && report.isDigestRight == false && !report.isFine, "\(report)")
        try room.withTarget { store throws in
            #expect(try store.heads("https://example.net/" + String(repeating: "long/", count: 80)).isEmpty)
            #expect(store.statistics.objectCount == 5)
        }
    }

    @Test func `a damaged block of a large object becomes a hole`() throws {
        let room = try ExportRoom()
        try room.putLarge(1, "http://a/", bytes: 3 * blockBytes, blocks: [0, 1, 2])
        try room.export()
        let member = try #require(try room.archived.firstRange(of: Array("objects/".utf8)))
        try room.overwrite(room.archive, at: member.lowerBound + 512 + 4096 + blockBytes + 100) { $0 ^= 1 }
        let report = try room.take()
        #expect(report.objects == 1 && report.damagedBlocks == 1 && !report.isFine, "\(report)")
        try room.withTarget { store throws in
            let head = try #require(try store.heads("http://a/").first)
            let large = try store.openLarge(head, hash: hash(head.key))
            #expect(large.extents == [0..<blockBytes, 2 * blockBytes..<3 * blockBytes])
        }
    }

    @Test func `a store in use is refused and not changed`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        try room.withTarget { store throws in
            #expect(throws: ArchiveError.store(.inUse(path: room.path + "/target"))) { try room.take() }
            #expect(store.statistics.objectCount == 0)
        }
    }

    @Test func `a file that is no archive creates no store`() throws {
        let room = try ExportRoom()
        #expect(throws: ArchiveError.archive(room.archive, errno: ENOENT)) { try room.take() }
        try Data("none of ours".utf8).write(to: URL(filePath: room.archive))
        #expect(throws: ArchiveError.notAnExport(room.archive)) { try room.take() }
        #expect(!FileManager.default.fileExists(atPath: room.path + "/target"))
    }

    @Test func `pinned objects beyond the quota are counted, and the others are imported`() throws {
        let room = try ExportRoom()
        try room.fill()
        try room.export()
        let report = try room.take(pinned: 4096)
        #expect(report.objects == 4 && report.pinnedQuotaFull == 2 && !report.isFine, "\(report)")
    }

    @Test func `a full medium ends the import with a reason, and everything imported is intact`() throws {
        let room = try ExportRoom()
        for id in 1...60 as ClosedRange<UInt64> { try room.put(id, "http://a/\(id)", bytes: 100_000) }
        try room.export()
        let calls = FaultyCalls()
        calls.inject(.fail(ENOSPC), into: [.write, .allocate], path: ".seg", after: 3, times: .max)
        do {
            let report = try room.take(calls: calls)
            Issue.record("it was not told: \(report)")
        } catch ArchiveError.storeOff {
        } catch ArchiveError.notWritten {}
        let report = try room.take()
        #expect(report.objects + report.there == 60 && report.isFine, "\(report)")
    }
}
