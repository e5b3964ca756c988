import EventLoop
import Foundation
import Glibc

@testable import Disk

/// A directory for one store, removed with this, and what tests put into it and read from it.
final class DiskStoreTestRoom: Sendable {
    let path: String
    let events = Locked<[DiskEvent]>([])
    private let logged = CountingSemaphore()

    /// - Parameter inMemory: where there is such a file system: for tests that synchronize often.
    init(inMemory: Bool = false) {
        let isThere = FileManager.default.isWritableFile(atPath: "/dev/shm")
        let parent = inMemory && isThere ? "/dev/shm" : FileManager.default.temporaryDirectory.path
        path = parent + "/larder-store-\(UUID().uuidString)"
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Small and quick.
    static var tuning: DiskStoreTuning {
        var tuning = DiskStoreTuning()
        tuning.nap = .milliseconds(1)
        tuning.probeInterval = .milliseconds(20)
        tuning.loadWaitMax = .seconds(600)
        return tuning
    }

    func options(
        size: UInt64 = 64 << 20, pinned: UInt64 = 32 << 20, syncInterval: Duration = .seconds(3600)
    ) -> DiskOptions {
        DiskOptions(
            path: path, size: size, pinned: pinned, syncInterval: syncInterval, hash: Self.hash,
            log: { [events, logged] event in
                events.withLock { $0.append(event) }
                logged.signal()
            })
    }

    func open(
        size: UInt64 = 64 << 20, pinned: UInt64 = 32 << 20, syncInterval: Duration = .seconds(3600),
        tuning: DiskStoreTuning = DiskStoreTestRoom.tuning, calls: any DiskCalls = SystemCalls(), waits: Bool = true
    ) throws -> DiskStore {
        let options = options(size: size, pinned: pinned, syncInterval: syncInterval)
        let store = try DiskStore.open(options, calls: calls, tuning)
        if waits { store.waitUntilLoaded() }
        return store
    }

    static let hash: @Sendable ([UInt8]) -> UInt64 = { key in
        key.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// Waits until `isTrue`, which is asked after each event that the store logs.
    func waitForLog(until isTrue: () -> Bool) { while !isTrue() { logged.wait() } }

    var texts: [String] { events.withLock { $0.map(\.text) } }

    func hasLogged(_ level: DiskEvent.Level, _ part: String) -> Bool {
        events.withLock { $0.contains { $0.level == level && $0.text.contains(part) } }
    }
}

extension DiskStore {
    /// What the segments say of an object, and where the index has it: for the message of a test that fails.
    func history(of id: ObjectID) -> [String] {
        var lines: [String] = []
        parts.index.forEach { if $0.id == id { lines.append("found at \($0.place.segment):\($0.place.offset)") } }
        let numbers = (try? parts.directory.fileNumbers())?.segments ?? []
        for number in numbers.sorted() {
            guard let file = try? parts.files.file(number, waits: true) else { continue }
            var scan = RecordScan(file, depth: .heads, mode: .search)
            while let found = try? scan.next() {
                switch found {
                case .object(let head) where head.id == id: lines.append("stands at \(number):\(head.place.offset)")
                case .drops(let drops, let at, _):
                    for drop in drops where drop.id == id {
                        lines.append("dropped from \(drop.segment) at \(number):\(at)")
                    }
                default: break
                }
            }
        }
        return lines + ["segments \(numbers.sorted())"]
    }

    /// Stores an object; returns its number where it was taken.
    @discardableResult
    func put(
        _ key: String, _ body: [UInt8], head: String = "head", storageClass: StorageClass = .permanent,
        tags: [String] = [], isPromised: Bool = false
    ) -> ObjectID? {
        let id = nextID()
        let key = Array(key.utf8)
        let object = PackedObject(
            id: id, hash: DiskStoreTestRoom.hash(key), key: key,
            attributes: .of(storageClass, tags: tags), head: Array(head.utf8), body: SegmentTestBody(body))
        return store(object, isPromised: isPromised) == .taken ? id : nil
    }

    func find(_ key: String) -> [Place] {
        guard case .places(let places) = find(DiskStoreTestRoom.hash(Array(key.utf8))) else { return [] }
        return places
    }

    func head(_ key: String) throws -> StoredHead? {
        guard let place = find(key).first else { return nil }
        return try readHead(place, waits: true)
    }

    /// Head and body of the newest object under a key. Looks again if the object has moved since it was found.
    func get(_ key: String) throws -> (head: StoredHead, body: [UInt8])? {
        while let place = find(key).first {
            do throws(DiskReadError) {
                let head = try readHead(place, waits: true)
                return (head, try body(of: head))
            } catch {
                guard error == .damaged, find(key).first != place else { throw error }
            }
        }
        return nil
    }

    func body(of head: StoredHead) throws(DiskReadError) -> [UInt8] {
        let length = Int(head.place.bodyLength)
        let room = BytesInMemory(length: length)
        switch unsafe readBody(of: head.place, checksums: head.checksums, offset: 0, into: room.room, waits: true) {
        case .done: return unsafe [UInt8](room.room)
        case .wouldBlock: throw .wouldBlock
        case .damaged: throw .damaged
        case .failed(let code): throw .failed(errno: code)
        }
    }

    func remove(_ key: String, _ id: ObjectID) {
        let key = Array(key.utf8)
        remove(id, hash: DiskStoreTestRoom.hash(key), key: key)
    }

    func removeAll(_ key: String) -> Int {
        let key = Array(key.utf8)
        return removeAll(hash: DiskStoreTestRoom.hash(key), key: key)
    }

    func renew(
        _ key: String, _ id: ObjectID, head: String, expiresAt: Int64 = 5, storageClass: StorageClass = .permanent
    ) {
        let key = Array(key.utf8)
        var attributes = ObjectAttributes.of(storageClass)
        attributes.expiresAt = expiresAt
        renew(id, hash: DiskStoreTestRoom.hash(key), key: key, attributes: attributes, head: Array(head.utf8))
    }

    /// All entries of the book.
    func listed() -> [BookEntry] {
        var all: [BookEntry] = []
        var cursor: BookCursor?
        repeat {
            guard let page = page(after: cursor, in: .all, limit: 100) else { return all }
            all += page.entries
            cursor = page.next
        } while cursor != nil
        return all
    }
}

extension ObjectAttributes {
    static func of(_ storageClass: StorageClass, tags: [String] = []) -> ObjectAttributes {
        ObjectAttributes(
            storageClass: storageClass, status: 200, storedAt: 1_700_000_000, expiresAt: 1_700_000_600,
            mediaType: Array("text/plain".utf8), tags: tags.map { Array($0.utf8) })
    }
}
