import Testing

@testable import Disk

@Suite("A record as bytes")
struct RecordTests {
    static let home = SegmentIdentity(
        store: StoreID(high: 0x1111_2222_3333_4444, low: 0x5555_6666_7777_8888), number: 3)

    static func encoded(
        key: [UInt8] = Array("https://a.example/".utf8), attributes: ObjectAttributes = .sample(),
        head: [UInt8] = Array("head".utf8), checksums: [UInt32] = [1, 2], bodyLength: Int = 70_000,
        offset: UInt64 = 4096
    ) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try RecordCodec.append(
            packed: ObjectID(rawValue: 99), key: key, attributes: attributes, head: head, checksums: checksums,
            bodyLength: bodyLength, in: home, at: offset, to: &bytes)
        return bytes
    }

    static func decode(
        _ bytes: [UInt8], in segment: SegmentIdentity = home, at offset: UInt64 = 4096
    ) -> Result<RecordCodec.Content, RecordError> {
        Result { () throws(RecordError) in
            try RecordCodec.decode(unsafe bytes.span.bytes, in: segment, at: offset).content
        }
    }

    static func error(
        _ bytes: [UInt8], in segment: SegmentIdentity = home, at offset: UInt64 = 4096
    ) -> RecordError? {
        if case .failure(let error) = decode(bytes, in: segment, at: offset) { error } else { nil }
    }

    @Test func `what was written is read`() throws {
        let bytes = try RecordTests.encoded()
        #expect(bytes.count % 16 == 0)
        guard case .object(let head) = try RecordTests.decode(bytes).get() else {
            Issue.record("no object")
            return
        }
        #expect(head.id == ObjectID(rawValue: 99))
        #expect(head.key == Array("https://a.example/".utf8))
        #expect(head.attributes == .sample())
        #expect(head.head == Array("head".utf8))
        #expect(head.checksums == [1, 2])
        let place = Place(
            kind: .packed, segment: 3, offset: 4096, headLength: UInt32(bytes.count), bodyLength: 70_000)
        #expect(head.place == place)
    }

    static let sizes: [(key: Int, type: Int, tags: [Int], head: Int, body: Int)] = [
        (0, 0, [], 0, 0), (1, 127, [0], 1, 1), (16, 3, [255, 1], 15, 65_536),
        (8000, 10, .init(repeating: 9, count: 300), 5000, 65_537),
    ]

    @Test func `a head part has the computed length, at any sizes`() throws {
        for size in RecordTests.sizes {
            var attributes = ObjectAttributes.sample(tags: [])
            attributes.mediaType = segmentBytes(size.type, 1)
            attributes.tags = size.tags.map { segmentBytes($0, 2) }
            attributes.storageClass = .pinned
            let (key, part) = (segmentBytes(size.key, 3), segmentBytes(size.head, 4))
            let checksums = (0..<(size.body + blockBytes - 1) / blockBytes).map { UInt32($0) }
            let bytes = try RecordTests.encoded(
                key: key, attributes: attributes, head: part, checksums: checksums, bodyLength: size.body)
            let foretold = RecordCodec.headPartLength(
                kind: .packed, key: key, attributes: attributes, head: part, bodyLength: size.body)
            #expect(foretold == bytes.count)
            guard case .object(let head) = try RecordTests.decode(bytes).get() else {
                Issue.record("no object")
                continue
            }
            #expect(head.key == key && head.head == part && head.attributes == attributes)
            #expect(head.checksums == checksums && head.place.bodyLength == UInt64(size.body))
        }
    }

    @Test func `every flipped bit is detected`() throws {
        let bytes = try RecordTests.encoded()
        for bit in 0..<bytes.count * 8 {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(RecordTests.error(damaged) != nil, "bit \(bit)")
        }
    }

    @Test func `every length that is too short is detected`() throws {
        let bytes = try RecordTests.encoded()
        for count in 0..<bytes.count {
            let needs = count < RecordHeader.byteCount ? RecordHeader.byteCount : bytes.count
            #expect(RecordTests.error(Array(bytes[..<count])) == .incomplete(needs: needs))
        }
    }

    @Test func `bytes from another place or store are no record`() throws {
        let bytes = try RecordTests.encoded()
        #expect(RecordTests.error(bytes, at: 4112) == .wrongPlace)
        let other = SegmentIdentity(store: RecordTests.home.store, number: 4)
        #expect(RecordTests.error(bytes, in: other) == .wrongPlace)
        let low = StoreID(high: RecordTests.home.store.high, low: 1)
        #expect(RecordTests.error(bytes, in: SegmentIdentity(store: low, number: 3)) == .wrongPlace)
        let high = StoreID(high: 1, low: RecordTests.home.store.low)
        #expect(RecordTests.error(bytes, in: SegmentIdentity(store: high, number: 3)) == .checksum)
    }

    @Test func `a head part can be moved to another place`() throws {
        var bytes: [UInt8] = [1, 2, 3]
        bytes += try RecordTests.encoded()
        let home = SegmentIdentity(store: .random(), number: 5)
        RecordCodec.seal(&bytes, from: 3, in: home, at: 1 << 35)
        guard case .object(let head) = try RecordTests.decode(Array(bytes[3...]), in: home, at: 1 << 35).get() else {
            Issue.record("no object")
            return
        }
        #expect(head.place.segment == 5 && head.place.offset == 1 << 35)
        #expect(bytes[..<3] == [1, 2, 3])
    }

    /// Bytes whose checksum is right, so that the rules behind it are met.
    static func resealed(_ bytes: [UInt8], _ change: (inout [UInt8]) -> Void) -> [UInt8] {
        var bytes = bytes
        change(&bytes)
        RecordCodec.seal(&bytes, from: 0, in: home, at: 4096)
        return bytes
    }

    @Test func `each rule has its own error, even with a right checksum`() throws {
        let bytes = try RecordTests.encoded()
        let resealed = { change in RecordTests.error(RecordTests.resealed(bytes, change)) }
        #expect(resealed { _ in } == nil)
        #expect(resealed { $0[0] = 0 } == .notARecord)
        #expect(resealed { $0[4] = 2 } == .unknownVersion(2))
        #expect(resealed { $0[5] = 9 } == .unknownKind(9))
        #expect(resealed { $0[6] = 0 } == .unknownClass(0))
        #expect(resealed { $0[6] = 77 } == .unknownClass(77))
        #expect(resealed { $0[7] = 1 } == .unknownFlags(1))
        #expect(resealed { $0.put(number: UInt64.max, at: 24) } == .lengths)
        #expect(resealed { $0.put(number: UInt32.max, at: 32) } == .lengths)
        #expect(resealed { $0.put(number: UInt32.max, at: 36) } == .lengths)
        #expect(resealed { $0.put(number: UInt32.max, at: 44) } == .lengths)
        #expect(resealed { $0[$0.count - 1] = 1 } == .padding)
        let attributes = RecordHeader.byteCount + "https://a.example/".utf8.count
        #expect(resealed { $0[attributes + 10] = 128 } == .attributes)
        #expect(resealed { $0[attributes + 10] = 127 } == .attributes)
        #expect(resealed { $0[attributes + 10] = 9 } == .attributes)
        let tags = attributes + 11 + "text/plain".utf8.count
        #expect(resealed { $0.put(number: UInt32.max, at: tags) } == .attributes)
        #expect(resealed { $0.put(number: UInt32(1), at: tags) } == .attributes)
        #expect(resealed { $0.put(number: UInt32(3), at: tags) } == .attributes)
        #expect(resealed { $0[tags + 4] = 255 } == .attributes)
    }

    @Test func `drops are read as they were written`() throws {
        let drops = (0..<5).map { DroppedObject(id: ObjectID(rawValue: UInt64($0) << 40), segment: UInt32($0)) }
        for count in 0...5 {
            var bytes: [UInt8] = []
            try RecordCodec.append(
                drops: drops.prefix(count), storedAt: 8, in: RecordTests.home, at: 4096, to: &bytes)
            #expect(bytes.count == RecordHeader.byteCount + count * DroppedObject.byteCount)
            guard case .drops(let found) = try RecordTests.decode(bytes).get() else {
                Issue.record("no drops")
                continue
            }
            #expect(found == Array(drops.prefix(count)))
        }
    }

    @Test func `rules for drops`() throws {
        var bytes: [UInt8] = []
        let drops = [DroppedObject(id: ObjectID(rawValue: 1), segment: 2)]
        try RecordCodec.append(drops: drops, storedAt: 8, in: RecordTests.home, at: 4096, to: &bytes)
        let resealed = { change in RecordTests.error(RecordTests.resealed(bytes, change)) }
        #expect(resealed { $0[6] = 1 } == .unknownClass(1))
        #expect(resealed { $0[RecordHeader.byteCount + 12] = 1 } == .padding)
        #expect(resealed { $0.put(number: UInt64(2), at: 24) } == .lengths)
        #expect(resealed { $0.put(number: UInt64(0), at: 24) } == .lengths)
        // A key in place of the drop: the lengths add up.
        let key = resealed {
            $0.put(number: UInt64(0), at: 24)
            $0.put(number: UInt32(16), at: 32)
        }
        #expect(key == .lengths)
    }

    @Test func `a head part that is too long is refused, and nothing is appended`() throws {
        let max = RecordHeader.headPartBytesMax - RecordHeader.byteCount - 15
        var attributes = ObjectAttributes.sample(tags: [])
        attributes.mediaType = []
        let most = try RecordTests.encoded(
            key: [], attributes: attributes, head: segmentBytes(max, 1), checksums: [], bodyLength: 0)
        #expect(most.count == RecordHeader.headPartBytesMax && RecordTests.error(most) == nil)

        var bytes: [UInt8] = [1]
        #expect(throws: RecordError.tooLarge) {
            try RecordCodec.append(
                packed: ObjectID(rawValue: 1), key: [], attributes: attributes, head: segmentBytes(max + 1, 1),
                checksums: [],
                bodyLength: 0, in: RecordTests.home, at: 0, to: &bytes)
        }
        #expect(throws: RecordError.tooLarge) {
            let drops = [DroppedObject](
                repeating: .init(id: ObjectID(rawValue: 1), segment: 1), count: RecordCodec.dropsMax + 1)
            try RecordCodec.append(drops: drops, storedAt: 0, in: RecordTests.home, at: 0, to: &bytes)
        }
        attributes.mediaType = segmentBytes(128, 1)
        #expect(throws: RecordError.attributes) { try RecordTests.encoded(attributes: attributes) }
        attributes.mediaType = []
        attributes.tags = [segmentBytes(256, 1)]
        #expect(throws: RecordError.attributes) { try RecordTests.encoded(attributes: attributes) }
        #expect(bytes == [1])
    }

    @Test func `a large object's head fills pages`() throws {
        var bytes: [UInt8] = []
        try RecordCodec.append(
            large: ObjectID(rawValue: 5), key: [1], attributes: .sample(), head: [2], bodyLength: 5 << 30,
            in: RecordTests.home, to: &bytes)
        #expect(bytes.count == 4096)
        guard case .object(let head) = try RecordTests.decode(bytes, at: 0).get() else {
            Issue.record("no object")
            return
        }
        #expect(head.place.kind == .large && head.place.bodyLength == 5 << 30 && head.checksums == [])
    }

    @Test func `a store's name is 32 digits`() {
        let id = StoreID(high: 0xAB, low: 1)
        #expect(id.description == "00000000000000ab0000000000000001")
        #expect(StoreID(id.description) == id)
        for wrong in [
            "", "ab", "+0000000000000ab0000000000000001", id.description + "0", "x" + id.description.dropFirst(),
        ] {
            #expect(StoreID(wrong) == nil)
        }
        #expect(StoreID.random() != StoreID.random())
    }

    @Test func `arbitrary bytes give an error`() throws {
        let good = try RecordTests.encoded()
        for seed in 0..<20_000 as Range<UInt64> {
            var bytes = good
            let noise = segmentBytes(12, seed &* 0x9E37_79B9)
            for index in 0..<3 {
                let at = (Int(noise[index * 4]) << 8 | Int(noise[index * 4 + 1])) % bytes.count
                bytes[at] = noise[index * 4 + 2]
            }
            if seed % 3 == 0 { bytes.removeLast(Int(noise[11]) % bytes.count) }
            if bytes.count >= good.count { bytes = RecordTests.sealedIfPossible(bytes) }
            _ = RecordTests.decode(bytes)
        }
    }

    static func sealedIfPossible(_ bytes: [UInt8]) -> [UInt8] {
        let length = Int(unsafe bytes.span.bytes.number(at: 40, as: UInt32.self))
        guard length >= RecordHeader.byteCount, length <= bytes.count else { return bytes }
        return resealed(bytes) { _ in }
    }
}
