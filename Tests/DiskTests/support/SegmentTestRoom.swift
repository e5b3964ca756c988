import Foundation
import Glibc

@testable import Disk

/// A directory of its own for one test, removed with it, and what is put into files there.
final class SegmentTestRoom {
    let path = FileManager.default.temporaryDirectory.path + "/larder-segments-\(UUID().uuidString)"
    let calls: FaultyCalls
    let identity = SegmentIdentity(store: StoreID(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210), number: 7)

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        calls = FaultyCalls(aside: path)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var segmentPath: String { path + "/00000007.seg" }

    func makeSegment(room: Int = 0) throws -> SegmentFile {
        try SegmentFile.create(segmentPath, identity, created: 1_700_000_000, room: room, calls: calls)
    }

    func openSegment() throws -> SegmentFile { try SegmentFile.open(segmentPath, identity, calls: SystemCalls()) }

    func makeLarge(length: Int, head: [UInt8] = Array("head".utf8)) throws -> LargeFile {
        try LargeFile.create(
            path + "/large.seg", identity, id: ObjectID(rawValue: 9), key: Array("https://a.example/large".utf8),
            attributes: .sample(), head: head, length: length, calls: calls)
    }

    func openLarge() throws -> LargeFile { try LargeFile.open(path + "/large.seg", identity, calls: SystemCalls()) }

    func bytes(of path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: path))) }

    func put(_ bytes: [UInt8], into path: String) throws { try Data(bytes).write(to: URL(filePath: path)) }

    /// Changes one byte of a file in place.
    func flip(_ offset: Int, of path: String) {
        let fd = unsafe open(path, O_RDWR)
        precondition(fd >= 0)
        defer { close(fd) }
        var byte: UInt8 = 0
        _ = unsafe pread(fd, &byte, 1, offset)
        byte ^= 0x10
        _ = unsafe pwrite(fd, &byte, 1, offset)
    }
}

/// Bytes in vectors of uneven sizes.
@safe final class SegmentTestBody: BodyBytes, @unchecked Sendable {  // its storage is never changed
    let bytes: [UInt8]
    private let storage: UnsafeMutableBufferPointer<UInt8>
    private let pieceBytes: Int

    init(_ bytes: [UInt8], piece: Int = 1009) {
        self.bytes = bytes
        unsafe storage = .allocate(capacity: max(bytes.count, 1))
        _ = unsafe storage.initialize(from: bytes)
        pieceBytes = piece
    }

    convenience init(length: Int, seed: UInt64, piece: Int = 1009) {
        self.init(segmentBytes(length, seed), piece: piece)
    }

    deinit { unsafe storage.deallocate() }

    var byteCount: Int { bytes.count }

    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int {
        var at = offset
        let end = min(offset + limit, byteCount)
        var count = 0
        while at < end, count < vectors.count {
            let piece = min(pieceBytes - at % pieceBytes, end - at)
            unsafe vectors[count] = iovec(iov_base: storage.baseAddress! + at, iov_len: piece)
            at += piece
            count += 1
        }
        return count
    }
}

/// Bytes that nothing else has.
func segmentBytes(_ count: Int, _ seed: UInt64) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: count + 8) { room, initialized in
        var state = seed | 1
        let start = UnsafeMutableRawPointer(room.baseAddress!)
        var at = 0
        while at < count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            unsafe start.storeBytes(of: state ^ state >> 29, toByteOffset: at, as: UInt64.self)
            at += 8
        }
        initialized = count
    }
}

extension ObjectAttributes {
    static func sample(tags: [String] = ["a", "release-7"]) -> ObjectAttributes {
        ObjectAttributes(
            storageClass: .permanent, status: 206, storedAt: 1_700_000_001, expiresAt: -5,
            mediaType: Array("text/plain".utf8), tags: tags.map { Array($0.utf8) })
    }
}

extension PackedObject {
    static func sample(_ id: UInt64, body: Int, head: Int = 40, piece: Int = 1009) -> PackedObject {
        sample(id, SegmentTestBody(length: body, seed: id, piece: piece), head: head)
    }

    static func sample(_ id: UInt64, _ body: SegmentTestBody, head: Int = 40) -> PackedObject {
        PackedObject(
            id: ObjectID(rawValue: id), hash: id, key: Array("https://a.example/\(id)".utf8), attributes: .sample(),
            head: segmentBytes(head, id + 77), body: body)
    }

    var bodyBytes: [UInt8] { (body as? SegmentTestBody)?.bytes ?? [] }
}

extension SegmentFile {
    @discardableResult
    func append(_ objects: [PackedObject]) throws -> [Place] {
        var batch = RecordBatch(identity, at: end)
        let places = try objects.map { try batch.add($0) }
        try append(batch)
        return places
    }

    /// Head and body as they are read; what is thrown is a `DiskReadError`.
    func record(_ place: Place, waits: Bool = true) throws -> (head: StoredHead, body: [UInt8]) {
        var body = [UInt8](repeating: 0xEE, count: Int(place.bodyLength))
        let head = try unsafe body.withUnsafeMutableBytes { unsafe try readRecord(place, into: $0, waits: waits) }
        return (head, body)
    }

    func body(
        _ head: StoredHead, _ range: Range<Int>, waits: Bool = true
    ) -> (read: DiskRead, bytes: [UInt8]) {
        var bytes = [UInt8](repeating: 0xEE, count: range.count)
        let read = unsafe bytes.withUnsafeMutableBytes {
            unsafe readBody(
                of: head.place, checksums: head.checksums, offset: range.lowerBound, into: $0, waits: waits)
        }
        return (read, bytes)
    }
}

extension LargeFile {
    func bytes(_ range: Range<Int>, waits: Bool = true) -> (read: DiskRead, bytes: [UInt8]) {
        var bytes = [UInt8](repeating: 0xEE, count: range.count)
        let outcome = unsafe bytes.withUnsafeMutableBytes {
            unsafe read(from: range.lowerBound, into: $0, waits: waits)
        }
        return (outcome, bytes)
    }

    func fill(_ blocks: Range<Int>, from body: SegmentTestBody) throws {
        try publish(try blocks.map { try write(block: $0, from: body, at: $0 * blockBytes) })
    }
}

extension RecordScan {
    mutating func rest() throws -> [Found] {
        var all: [Found] = []
        while let found = try next() { all.append(found) }
        return all
    }
}

extension RecordScan.Found {
    var objectID: UInt64? {
        if case .object(let head) = self { head.id.rawValue } else { nil }
    }
}
