import Glibc
import Storage

/// A record with a name, so that a failed expectation says which one it was.
final class TestRecord: StoredRecord, @unchecked Sendable {
    let variant: String

    init(_ name: String, variant: String = "", body: Body, isCopy: Bool = false) {
        self.variant = variant
        super.init(
            key: storageKey(name), keyBytes: Array(name.utf8), head: Array("head of \(name)".utf8), body: body,
            isCopy: isCopy)
    }

    override func replaces(_ other: StoredRecord) -> Bool { (other as? TestRecord)?.variant == variant }

    var name: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// A key as Server makes them: any 128 bits that depend on the name.
func storageKey(_ name: String) -> StorageKey {
    var high: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in name.utf8 { high = (high ^ UInt64(byte)) &* 0x100_0000_01B3 }
    var mixer = SeededGenerator(seed: high)
    return StorageKey(high: mixer.next(), low: mixer.next())
}

/// SplitMix64: the same numbers on every run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension MemoryTier {
    func lookup(_ name: String) -> [TestRecord] {
        find(name, under: storageKey(name)).compactMap { $0 as? TestRecord }
    }

    /// Looks key bytes up under a hash that may be another's.
    func find(_ name: String, under key: StorageKey) -> [StoredRecord] {
        unsafe Array(name.utf8).withUnsafeBytes { unsafe lookup(key, $0) }
    }

    func newest(_ name: String, under key: StorageKey? = nil) -> StoredRecord? {
        unsafe Array(name.utf8).withUnsafeBytes { unsafe newest(key ?? storageKey(name), $0) }
    }

    func invalidate(_ name: String) -> Int {
        unsafe Array(name.utf8).withUnsafeBytes { unsafe invalidate(storageKey(name), $0) }
    }

    func lead(_ name: String, knownNewest: StoredRecord? = nil, askedAt now: Duration? = nil) -> Leadership {
        lead(storageKey(name), Array(name.utf8), knownNewest: knownNewest, askedAt: now)
    }

    /// Stores a complete response; nil where there was no room.
    @discardableResult
    func store(_ name: String, variant: String = "", bytes count: Int, isCopy: Bool = false) -> TestRecord? {
        guard let body = makeBody(expectedLength: count), body.append(pattern(0..<count)) == .appended, body.finish()
        else { return nil }
        let record = TestRecord(name, variant: variant, body: body, isCopy: isCopy)
        return insert(record) ? record : nil
    }
}

extension Body {
    func append(_ bytes: [UInt8]) -> AppendResult { unsafe bytes.withUnsafeBytes { unsafe append($0) } }

    /// All published bytes from an offset, as a reader sees them.
    func bytes(from offset: Int = 0, vectorCount: Int = 4) -> [UInt8] {
        var all: [UInt8] = []
        let vectors = UnsafeMutableBufferPointer<iovec>.allocate(capacity: vectorCount)
        defer { unsafe vectors.deallocate() }
        while true {
            let used = unsafe self.vectors(from: offset + all.count, limit: .max / 2, into: vectors)
            guard used > 0 else { return all }
            for index in 0..<used {
                let part = unsafe UnsafeRawBufferPointer(start: vectors[index].iov_base, count: vectors[index].iov_len)
                unsafe all.append(contentsOf: part)
            }
        }
    }
}

/// Bytes that tell their offset, so that a byte from elsewhere shows: random, with a period of a prime number of bytes.
func pattern(_ offsets: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(offsets.count)
    while bytes.count < offsets.count {
        let start = (offsets.lowerBound + bytes.count) % period.count
        bytes.append(contentsOf: period[start..<min(period.count, start + offsets.count - bytes.count)])
    }
    return bytes
}

private let period: [UInt8] = {
    var generator = SeededGenerator(seed: 3)
    return (0..<65_521).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
}()

extension Body {
    /// Plays read(2) into the page: as many bytes as there is room for. Returns the room; nil: none.
    func read(_ bytes: [UInt8], hint: Int) -> Int? {
        guard let room = unsafe writable(hint) else { return nil }
        let count = min(room.count, bytes.count)
        unsafe room.copyBytes(from: bytes.prefix(count))
        commit(count)
        return room.count
    }

    /// nil: no vector was given.
    func firstVectorLength(from offset: Int, limit: Int) -> Int? {
        let vectors = UnsafeMutableBufferPointer<iovec>.allocate(capacity: 1)
        defer { unsafe vectors.deallocate() }
        return unsafe self.vectors(from: offset, limit: limit, into: vectors) == 0 ? nil : vectors[0].iov_len
    }
}

extension Body {
    /// Bytes of room up to the end of the page; nil: none.
    func room() -> Int? { unsafe writable(.max)?.count }
}

/// `rank` to the 0.9th.
func power(_ rank: Double) -> Double { pow(rank, 0.9) }
