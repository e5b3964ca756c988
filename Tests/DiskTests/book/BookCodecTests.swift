import Testing

@testable import Disk

@Suite("The values of the book")
struct BookCodecTests {
    @Test(arguments: 0..<10) func `an entry is read as it was written`(_ seed: UInt64) {
        var random = BookRandom(seed)
        for id in 0..<500 {
            var entry = BookEntry.random(UInt64(id), using: &random)
            entry.hasRenewedHead = Bool.random(using: &random)
            let (key, value) = BookCodec.encode(entry)
            #expect(decode(key, value) == entry)
        }
    }

    @Test func `an entry at its limits is read as it was written`() {
        let attributes = ObjectAttributes(
            storageClass: .pinned, status: .max, storedAt: .min, expiresAt: .max,
            mediaType: Array(repeating: 0x61, count: 127),
            tags: Array(repeating: Array(repeating: 0x74, count: 255), count: 255))
        let entry = BookEntry(
            id: ObjectID(rawValue: .max), key: Array(repeating: 0xFF, count: 70_000),
            place: Place(
                kind: .large, segment: .max, offset: UInt64(UInt32.max) << 4, headLength: .max,
                bodyLength: UInt64(Int64.max) / 2),
            attributes: attributes, hasRenewedHead: true, isComplete: false)
        let (key, value) = BookCodec.encode(entry)
        #expect(decode(key, value) == entry)
    }

    @Test func `a value is small`() {
        let (_, value) = BookCodec.encode(.sample(1, "http://example.org/", mediaType: ""))
        #expect(value.count <= 48)
    }

    @Test(arguments: [false, true]) func `a flipped bit anywhere is detected`(_ isLong: Bool) {
        let path = isLong ? String(repeating: "p", count: 600) : "p"
        let (key, value) = BookCodec.encode(.sample(9, "http://example.org/\(path)", tags: ["a", "bc"]))
        for bit in 0..<8 * key.count {
            var key = key
            key[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(decode(key, value) == nil)
        }
        for bit in 0..<8 * value.count {
            var value = value
            value[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(decode(key, value) == nil)
        }
        for count in 0..<value.count { #expect(decode(key, Array(value.prefix(count))) == nil) }
        for count in 0..<key.count { #expect(decode(Array(key.prefix(count)), value) == nil) }
    }

    @Test(arguments: 0..<4) func `any bytes with a right checksum give an entry or none, without a trap`(_ seed: UInt64)
    {
        var random = BookRandom(seed)
        for _ in 0..<5000 {
            let (key, whole) = BookCodec.encode(.random(seed, using: &random))
            var value = Array(whole.dropLast(BookSeal.bytes))
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                value[Int.random(in: 0..<value.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            value.removeLast(Int.random(in: 0...value.count, using: &random) / 4)
            BookSeal.append(to: &value, key: key)
            _ = decode(key, value)
            _ = unsafe key.withUnsafeBytes { key in
                unsafe value.withUnsafeBytes { value in
                    unsafe (
                        BookCodec.renewal(bookKey: key, value: value), BookCodec.segment(bookKey: key, value: value)
                    )
                }
            }
        }
    }

    @Test func `unknown flags are no entry`() {
        let (key, whole) = BookCodec.encode(.sample(1, "http://example.org/"))
        var value = Array(whole.dropLast(BookSeal.bytes))
        value[0] |= 0x20
        BookSeal.append(to: &value, key: key)
        #expect(decode(key, value) == nil)
    }

    @Test func `a renewed head is read as it was written, and a flipped bit is detected`() {
        let renewal = BookRenewal(
            attributes: BookEntry.sample(3, "x", tags: ["t"]).attributes, head: Array("HTTP/1.1 200 OK".utf8))
        let key = BookCodec.renewalKey(ObjectID(rawValue: 3))
        let value = BookCodec.encode(renewal, bookKey: key)
        func decode(_ value: [UInt8]) -> BookRenewal? {
            unsafe key.withUnsafeBytes { key in
                unsafe value.withUnsafeBytes { unsafe BookCodec.renewal(bookKey: key, value: $0) }
            }
        }
        #expect(decode(value) == renewal)
        for bit in 0..<8 * value.count {
            var value = value
            value[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(decode(value) == nil)
        }
    }

    private func decode(_ key: [UInt8], _ value: [UInt8]) -> BookEntry? {
        var shared = BookShared()
        return unsafe key.withUnsafeBytes { key in
            unsafe value.withUnsafeBytes { unsafe BookCodec.entry(bookKey: key, value: $0, sharing: &shared) }
        }
    }
}
