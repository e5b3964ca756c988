import Disk
import DiskTier
import Foundation
import Glibc
import Storage
import Synchronization
import Testing

/// What stands behind memory in a test.
enum Engine: CaseIterable { case disk, memory }

/// Two tiers over a back store of their own. The head of a record says which variant and version it is; `session` in it keeps
/// it off the back store.
final class TiersRoom {
    let path: String
    let calls: GatedCalls
    private(set) var tiers: Tiers
    private let memoryBytes: Int
    private let engine: Engine
    let medium = Medium()

    init(_ engine: Engine = .disk, memory: Int = 64 << 20) throws {
        let parent = FileManager.default.temporaryDirectory
        path = parent.appendingPathComponent("larder-tiers-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        calls = GatedCalls()
        memoryBytes = memory
        self.engine = engine
        tiers = try Self.open(engine, path, calls, medium, memory)
    }

    var backStore: any BackStore { tiers.backStore! }

    func reopen() throws {
        backStore.close()
        tiers = try Self.open(engine, path, calls, medium, memoryBytes)
        let loaded = Gate()
        backStore.whenLoaded { loaded.wake() }
        loaded.wait()
    }

    func remove() {
        calls.open()
        backStore.close()
        do { try FileManager.default.removeItem(atPath: path) } catch { Issue.record(error) }
    }

    private static func open(
        _ engine: Engine, _ path: String, _ calls: GatedCalls, _ medium: Medium, _ memory: Int
    ) throws -> Tiers {
        let backStore: any BackStore =
            switch engine {
            case .disk:
                try DiskBackStore.open(
                    BackStoreSettings(
                        path: "\(path)/store", size: 512 << 20, pinned: 0, syncInterval: .milliseconds(200),
                        key: { storageKey(String(decoding: $0, as: UTF8.self)) }), calls: calls)
            case .memory: MemoryBackStore(medium, isShut: { calls.areShut })
            }
        return Tiers(
            memory: MemoryTier(budget: memory, shards: 4, objectMax: 4 << 20, variantsPerKeyMax: 8),
            backStore: backStore, format: format)
    }

    private static let format = ResponseFormat(
        form: { record in
            let record = unsafe unsafeDowncast(record, to: Versioned.self)
            guard !record.isSession else { return nil }
            return ResponseForm(
                attributes: StoredAttributes(retention: .permanent, status: 200, storedAt: 1, expiresAt: 2),
                head: record.head)
        },
        record: { _, copy, body in
            Versioned(String(decoding: copy.keyBytes, as: UTF8.self), String(decoding: copy.head, as: UTF8.self), body)
        },
        doubted: { record in
            let record = unsafe unsafeDowncast(record, to: Versioned.self)
            return Versioned(
                String(decoding: record.keyBytes, as: UTF8.self), "\(record.text)|doubted", record.body)
        },
        moved: { record, seconds in
            let record = unsafe unsafeDowncast(record, to: Versioned.self)
            return Versioned(
                String(decoding: record.keyBytes, as: UTF8.self), "\(record.text)|\(seconds)", record.body)
        })

    /// A complete record, not inserted.
    func record(_ name: String, _ head: String, bytes count: Int = 100) throws -> Versioned {
        let body = try #require(tiers.makeBody(expectedLength: count))
        #expect(body.append(pattern(0..<count)) == .appended && body.finish())
        return Versioned(name, head, body)
    }

    @discardableResult func store(_ name: String, _ head: String, bytes count: Int = 100) throws -> Versioned {
        let record = try record(name, head, bytes: count)
        #expect(tiers.insert(record))
        tiers.persist(record)
        return record
    }

    /// What is served under a name: memory first, then the back store.
    func heads(_ name: String) -> [String] { records(name).map(\.text) }

    func records(_ name: String) -> [Versioned] {
        _ = tiers.load(storageKey(name), Array(name.utf8), waits: true)
        return tiers.memory.find(name, under: storageKey(name)).compactMap { $0 as? Versioned }
    }

    /// All that was asked for is done, and memory is empty.
    func leaveToBackStore() {
        #expect(backStore.flush())
        tiers.clearMemory()
    }

    /// Closes the store and empties memory.
    /// - Returns: bytes still in use. What `flush` waits for is not enough to know: the writer answers it while it still
    ///   holds the bodies it wrote in the same turn. When the store is closed its threads have ended.
    func closeAndEmpty() -> Int {
        backStore.close()
        tiers.clearMemory()
        return tiers.memory.statistics.usedBytes
    }

    /// Changes the byte at an offset of a stored body, in its segment.
    /// - Parameter start: the first bytes of the body.
    func changeByte(at offset: Int, ofBodyWith start: [UInt8]) throws {
        let all = FileManager.default.enumerator(
            at: URL(fileURLWithPath: "\(path)/store/segments"), includingPropertiesForKeys: nil)
        for case let file as URL in try #require(all) where file.pathExtension == "seg" {
            let data = try Data(contentsOf: file)
            guard let found = data.range(of: Data(start)) else { continue }
            let handle = try FileHandle(forWritingTo: file)
            try handle.seek(toOffset: UInt64(found.lowerBound + offset))
            try handle.write(contentsOf: [data[found.lowerBound + offset] ^ 1])
            return try handle.close()
        }
        Issue.record("no segment has these bytes")
    }

    func largeFiles() throws -> [URL] {
        let all = FileManager.default.enumerator(
            at: URL(fileURLWithPath: "\(path)/store/large"), includingPropertiesForKeys: nil)
        return try #require(all).compactMap { $0 as? URL }.filter { $0.pathExtension == "seg" }
    }
}

/// `variant|version`, and `|session` where it stays in memory.
final class Versioned: StoredRecord, @unchecked Sendable {
    let text: String

    init(_ name: String, _ text: String, _ body: Body) {
        self.text = text
        super.init(key: storageKey(name), keyBytes: Array(name.utf8), head: Array(text.utf8), body: body)
    }

    var variant: Substring { text.prefix { $0 != "|" } }
    var isSession: Bool { text.hasSuffix("|session") }
    override func replaces(_ other: StoredRecord) -> Bool { (other as? Versioned)?.variant == variant }
}

/// The calls of the kernel; those that write wait while the gate is shut, or fail.
final class GatedCalls: DiskCalls {
    private let isShut = Atomic(false)
    private let isFull = Atomic(false)
    private let isUncached = Atomic(false)
    /// Opening a file on one of these threads is counted.
    private let opens = Atomic(0)
    private let system = SystemCalls()

    var areShut: Bool { isShut.load(ordering: .sequentiallyConsistent) }
    func shut() { isShut.store(true, ordering: .sequentiallyConsistent) }
    func open() { isShut.store(false, ordering: .sequentiallyConsistent) }
    func fill(_ full: Bool) { isFull.store(full, ordering: .sequentiallyConsistent) }
    /// Whether the page cache has nothing of any file.
    func loseCache(_ lost: Bool) { isUncached.store(lost, ordering: .sequentiallyConsistent) }
    func isCached(_ fd: CInt, offset: Int, length: Int) -> Bool {
        !isUncached.load(ordering: .sequentiallyConsistent)
    }
    var openCount: Int { opens.load(ordering: .sequentiallyConsistent) }

    func pwritev(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int) -> Int {
        while isShut.load(ordering: .sequentiallyConsistent) { usleep(200) }
        if isFull.load(ordering: .sequentiallyConsistent) { return Int(-ENOSPC) }
        return unsafe system.pwritev(fd, vectors, count, at: offset)
    }

    func open(_ path: String, flags: CInt, mode: mode_t) -> Int {
        opens.add(1, ordering: .sequentiallyConsistent)
        return system.open(path, flags: flags, mode: mode)
    }

    func close(_ fd: CInt) { system.close(fd) }
    func preadv(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool) -> Int {
        unsafe system.preadv(fd, vectors, count, at: offset, waits: waits)
    }
    func synchronize(_ fd: CInt) -> Int { system.synchronize(fd) }
    func truncate(_ fd: CInt, to length: Int) -> Int { system.truncate(fd, to: length) }
    func allocate(_ fd: CInt, offset: Int, length: Int) -> Int { system.allocate(fd, offset: offset, length: length) }
    func length(_ fd: CInt) -> Int { system.length(fd) }
    func readAhead(_ fd: CInt, offset: Int, length: Int) { system.readAhead(fd, offset: offset, length: length) }
    func unlink(_ path: String) -> Int { system.unlink(path) }
    func rename(_ from: String, to: String) -> Int { system.rename(from, to: to) }
    func mayCommit() -> Int { system.mayCommit() }
    func free(_ path: String) -> Int { system.free(path) }
}

extension Body {
    /// All of it as a client gets it, or as much as there is.
    func pieces() -> [UInt8] {
        var room = [UInt8](repeating: 0, count: 256 << 10)
        var all: [UInt8] = []
        while all.count < expectedLength ?? length {
            let bytes: [UInt8]? = unsafe room.withUnsafeMutableBytes { room in
                guard case .bytes(let bytes) = unsafe piece(from: all.count, limit: .max / 2, room: room, waits: true)
                else { return nil }
                return unsafe Array(bytes)
            }
            guard let bytes else { break }
            all += bytes
        }
        return all
    }
}
