import Glibc
import Storage

/// A record with a name, so that a failed expectation says which one it was.
final class TestRecord: StoredRecord {
    let variant: String

    init(_ name: String, variant: String = "", body: Body) {
        self.variant = variant
        super.init(key: key(name), keyBytes: Array(name.utf8), head: Array("head of \(name)".utf8), body: body)
    }

    override func replaces(_ other: StoredRecord) -> Bool { (other as? TestRecord)?.variant == variant }

    var name: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// A key as Server makes them: any 128 bits that depend on the name.
func key(_ name: String) -> StorageKey {
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
        Array(name.utf8).withUnsafeBytes { unsafe lookup(key(name), $0) }.compactMap { $0 as? TestRecord }
    }

    func invalidate(_ name: String) -> Int { Array(name.utf8).withUnsafeBytes { unsafe invalidate(key(name), $0) } }

    func lead(_ name: String, knownNewest: StoredRecord? = nil) -> Leadership {
        Array(name.utf8).withUnsafeBytes { unsafe lead(key(name), $0, knownNewest: knownNewest) }
    }

    /// Stores a complete response; nil where there was no room.
    @discardableResult
    func store(_ name: String, variant: String = "", bytes count: Int) -> TestRecord? {
        guard let body = makeBody(expectedLength: count), body.append(pattern(0..<count)) == .appended, body.finish()
        else { return nil }
        let record = TestRecord(name, variant: variant, body: body)
        return insert(record) ? record : nil
    }
}

extension Body {
    func append(_ bytes: [UInt8]) -> AppendResult { bytes.withUnsafeBytes { unsafe append($0) } }

    /// All published bytes from an offset, as a reader sees them.
    func bytes(from offset: Int = 0, vectorCount: Int = 4) -> [UInt8] {
        var all: [UInt8] = []
        let vectors = UnsafeMutableBufferPointer<iovec>.allocate(capacity: vectorCount)
        defer { unsafe vectors.deallocate() }
        while true {
            let used = unsafe self.vectors(from: offset + all.count, limit: .max / 2, into: vectors)
            guard used > 0 else { return all }
            for vector in unsafe vectors.prefix(used) {
                unsafe all.append(contentsOf: UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
            }
        }
    }
}

/// Bytes that tell their offset, so that a byte from elsewhere shows.
func pattern(_ offsets: Range<Int>) -> [UInt8] {
    offsets.map { UInt8(truncatingIfNeeded: $0 &* 31 &+ ($0 >> 8) &* 17 &+ ($0 >> 16)) }
}

extension Body {
    /// nil: no vector was given.
    func firstVectorLength(from offset: Int, limit: Int) -> Int? {
        let vectors = UnsafeMutableBufferPointer<iovec>.allocate(capacity: 1)
        defer { unsafe vectors.deallocate() }
        return unsafe self.vectors(from: offset, limit: limit, into: vectors) == 0 ? nil : vectors[0].iov_len
    }
}
