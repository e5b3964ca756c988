import Testing

@testable import Fleet

@Suite("Fleet: keys and records in Redis") struct SharedRecordTests {
    static let id = SharedRecordID(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10)
    static let key = Array("GET http://a.example/x".utf8)
    static let position = place("e")

    static func place(_ epoch: String) -> StreamPosition {
        StreamPosition(epoch: StreamEpoch(Array(epoch.utf8))!, id: StreamID(milliseconds: 12, sequence: 3))
    }

    static func record(
        id: SharedRecordID = id, zone: String = "default", key: [UInt8] = key, status: UInt16 = 200,
        mediaType: [UInt8] = Array("text/plain".utf8), tags: [[UInt8]] = [Array("a".utf8), Array("bc".utf8)],
        head: [UInt8] = Array("HEAD".utf8), bodyLength: Int = 5, position: StreamPosition = position
    ) -> SharedRecord? {
        SharedRecord(
            id: id, zone: zone, key: key, status: status, storedAt: 1_700_000_000, expiresAt: -1,
            written: .init(byServer: 1_700_000_005_000, byNode: 1_700_000_001_000), position: position,
            mediaType: mediaType, tags: tags, head: head, bodyLength: bodyLength,
            shortBody: bodyLength <= SharedRecord.shortBodyBytesMax
                ? Array(repeating: 7, count: max(bodyLength, 0)) : [])
    }

    static func decode(
        _ bytes: [UInt8], zone: String = "default", key: [UInt8] = key, _ secret: SecretHash = hash
    ) -> Result<SharedRecord, SharedRecordError> {
        do { return .success(try SharedRecord.decode(bytes, zone: zone, key: key, hash: secret)) } catch {
            return .failure(error)
        }
    }

    /// With the code that belongs to the bytes.
    static func sealed(_ content: some Collection<UInt8>) -> [UInt8] {
        Array(content) + hash.code(Array("record\0".utf8) + content)
    }

    static let clocks: [(what: String, server: Int64, node: Int64, ahead: Int64)] = [
        ("at once, by the same clock", 1_700_000_005_000, 1_700_000_001_000, 0),
        ("an hour later, by the same clock", 1_700_003_605_000, 1_700_003_601_000, 0),
        ("at once, by a clock that is 10 s ahead", 1_700_000_005_000, 1_700_000_011_000, 10),
        ("at once, by a clock that is an hour behind", 1_700_000_005_000, 1_699_996_401_000, -3600),
        ("an hour later, by a clock that is an hour behind", 1_700_003_605_000, 1_700_000_001_000, -3600),
        ("parts of a second are rounded down: ahead", 1_700_000_005_000, 1_700_000_002_999, 1),
        ("and behind", 1_700_000_005_000, 1_700_000_000_999, -1),
        ("a server whose clock was set back", 1_600_000_000_000, 1_700_000_001_000, 0),
    ]
    @Test(arguments: clocks) func `a reader knows by how much its clock differs`(
        _ row: (what: String, server: Int64, node: Int64, ahead: Int64)
    ) throws {
        let record = try #require(Self.record())
        #expect(record.clockAhead(serverNow: row.server, now: row.node) == row.ahead, "\(row.what)")
    }

    // MARK: keys

    @Test func `names hide the URL, and depend on zone, key and secret`() {
        let name = SharedKeys.record(zone: "default", key: Self.key, hash: hash)
        let text = String(decoding: name, as: UTF8.self)
        #expect(text.wholeMatch(of: /larder:1:r:default:[0-9a-f]{32}/) != nil, "\(text)")
        #expect(name == SharedKeys.record(zone: "default", key: Self.key, hash: hash))
        let others = [
            SharedKeys.record(zone: "defaul", key: Array("t".utf8) + Self.key, hash: hash),
            SharedKeys.record(zone: "default", key: Self.key + [0], hash: hash),
            SharedKeys.record(zone: "default", key: Self.key, hash: otherHash),
        ]
        let digits = others.map { $0.suffix(32) }
        #expect(Set(digits + [name.suffix(32)]).count == 4)
    }

    @Test func `names of parts have the id of the record and their number`() {
        #expect(
            String(decoding: SharedKeys.part(zone: "z", of: Self.id, number: 3), as: UTF8.self)
                == "larder:1:b:z:100f0e0d0c0b0a090807060504030201:3")
        for name in [
            SharedKeys.purges, SharedKeys.nodes, SharedKeys.epoch, SharedKeys.part(zone: "z", of: Self.id, number: 0),
        ] {
            #expect(name.starts(with: SharedKeys.prefix))
        }
    }

    @Test func `a code for one purpose is none for another`() {
        let bytes = Array("x".utf8)
        let codes = [CodePurpose.key, .record, .part, .purge].map { hash.code(for: $0, bytes) }
        #expect(Set(codes).count == 4)
        #expect(codes[0] == hash.code(Array("key\0x".utf8)))
    }

    @Test func `codes are equal if all bytes are`() {
        #expect(areEqualCodes([1, 2], [1, 2]) && areEqualCodes([UInt8](), [UInt8]()))
        #expect(!areEqualCodes([1, 2], [1, 3]) && !areEqualCodes([1, 2], [0, 2]) && !areEqualCodes([1], [1, 2]))
    }

    // MARK: records

    static let good: [Named<SharedRecord?>] = [
        Named("usual", record()),
        Named("no body", record(bodyLength: 0)),
        Named("as little as possible", record(zone: "z", key: [], status: 100, mediaType: [], tags: [], head: [])),
        Named(
            "as much as possible",
            record(
                zone: String(repeating: "z", count: 32), key: Array(repeating: 1, count: 64 << 10), status: 999,
                mediaType: Array(repeating: 2, count: 255),
                tags: Array(repeating: Array(repeating: 3, count: 255), count: 64),
                head: Array(repeating: 4, count: 256 << 10), bodyLength: 16 << 10,
                position: place(String(repeating: "e", count: 250)))
        ),
        Named("a body in parts", record(bodyLength: (16 << 10) + 1)),
        Named("the longest body", record(bodyLength: 1 << 20)),
    ]

    @Test(arguments: good) func `what is encoded is decoded`(_ row: Named<SharedRecord?>) throws {
        let record = try #require(row.value)
        let (head, parts) = record.encode(hash: hash)
        #expect(Self.decode(head, zone: record.zone, key: record.key) == .success(record))
        #expect(parts.isEmpty == (record.bodyLength <= 16 << 10))
        #expect(parts == record.parts)
    }

    static let tooLarge: [Named<SharedRecord?>] = [
        Named("zone", record(zone: String(repeating: "z", count: 33))),
        Named("no zone", record(zone: "")),
        Named("key", record(key: Array(repeating: 1, count: (64 << 10) + 1))),
        Named("status 99", record(status: 99)),
        Named("status 1000", record(status: 1000)),
        Named("media type", record(mediaType: Array(repeating: 2, count: 256))),
        Named("tags", record(tags: Array(repeating: [1], count: 65))),
        Named("a long tag", record(tags: [Array(repeating: 1, count: 256)])),
        Named("an empty tag", record(tags: [[]])),
        Named("position", record(position: place(String(repeating: "e", count: 251)))),
        Named("head", record(head: Array(repeating: 4, count: (256 << 10) + 1))),
        Named("body", record(bodyLength: (1 << 20) + 1)),
        Named("a negative body", record(bodyLength: -1)),
    ]

    @Test(arguments: tooLarge) func `what is beyond its bound makes no record`(_ row: Named<SharedRecord?>) {
        #expect(row.value == nil)
    }

    @Test func `the layout is the one that is written down`() throws {
        let (head, _) = try #require(Self.record(tags: [])).encode(hash: hash)
        let fixed: [UInt8] = [
            0x4C, 0x53, 0x48, 0x52, 2, 0, 200, 0, UInt8(head.count), 0, 0, 0,
            0x10, 0x0F, 0x0E, 0x0D, 0x0C, 0x0B, 0x0A, 0x09, 8, 7, 6, 5, 4, 3, 2, 1,
            0x00, 0xF1, 0x53, 0x65, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
            0x88, 0x7B, 0xE5, 0xCF, 0x8B, 0x01, 0x00, 0x00, 0xE8, 0x6B, 0xE5, 0xCF, 0x8B, 0x01, 0x00, 0x00,
            5, 0, 0, 0, 22, 0, 0, 0, 4, 0, 0, 0, 7, 10, 0, 6,
        ]
        let rest = Array("default12-3 etext/plain".utf8) + Self.key + Array("HEAD".utf8) + [7, 7, 7, 7, 7]
        #expect(head == Self.sealed(fixed + rest))
    }

    @Test func `every prefix is truncated, and more bytes are too many`() throws {
        let (head, _) = try #require(Self.record()).encode(hash: hash)
        #expect(Self.decode([]) == .failure(.notARecord))
        for count in 1..<head.count {
            #expect(Self.decode(Array(head[..<count])) == .failure(.truncated), "\(count) bytes")
        }
        #expect(Self.decode(head + [0]) == .failure(.trailingBytes))
    }

    @Test func `every bit that is flipped is found`() throws {
        let (head, _) = try #require(Self.record()).encode(hash: hash)
        for index in head.indices {
            for bit in 0..<8 {
                var bytes = head
                bytes[index] ^= 1 << UInt8(bit)
                let expected: [SharedRecordError] =
                    switch index {
                    case 0..<4: [.notARecord]
                    case 4: [.unknownVersion]
                    case 8..<12: [.truncated, .trailingBytes]
                    default: [.wrongCode]
                    }
                guard case .failure(let error) = Self.decode(bytes), expected.contains(error) else {
                    Issue.record("bit \(bit) of byte \(index): \(Self.decode(bytes))")
                    continue
                }
            }
        }
    }

    @Test func `each fault has its own error`() throws {
        let (head, _) = try #require(Self.record()).encode(hash: hash)
        #expect(Self.decode(head, otherHash) == .failure(.wrongCode))
        #expect(Self.decode(head, key: Self.key + [0]) == .failure(.wrongKey))
        #expect(Self.decode(head, zone: "other") == .failure(.wrongKey))
        #expect(Self.decode(Array("some text".utf8)) == .failure(.notARecord))
        #expect(Self.decode(Array("LS".utf8)) == .failure(.truncated))
        var later = head
        later[4] = 3
        #expect(Self.decode(Self.sealed(later.dropLast(32))) == .failure(.unknownVersion))
    }

    /// What only somebody with the secret can write.
    static let malformed: [(String, Int, [UInt8])] = [
        ("the byte behind the version", 5, [1]),
        ("a status of two digits", 6, [99, 0]),
        ("written before 1970, by the server", 44, [UInt8](repeating: 0xFF, count: 8)),
        ("written after the end of time, by the node", 52, [UInt8](repeating: 0x7F, count: 8)),
        ("a body that is not there", 60, [6, 0, 0, 0]),
        ("a body that is shorter", 60, [4, 0, 0, 0]),
        ("a body beyond the bound", 60, [1, 0, 16, 0]),
        ("a key that is longer", 64, [23, 0, 0, 0]),
        ("a key of 4 GiB", 64, [0xFF, 0xFF, 0xFF, 0xFF]),
        ("a head that is longer", 68, [5, 0, 0, 0]),
        ("no zone", 72, [0]),
        ("a zone of 255 bytes", 72, [255]),
        ("a longer media type", 73, [255]),
        ("more tags", 74, [3]),
        ("fewer tags", 74, [1]),
        ("a shorter position", 75, [5]),
        ("a longer position", 75, [255]),
        ("no position", 75, [0]),
        ("a zone that is not UTF-8", 76, [0xFF]),
        ("a position whose id is no number", 83, Array("x".utf8)),
        ("a position whose id has a leading zero", 83, Array("02".utf8)),
        ("a position without a space", 87, Array("-".utf8)),
        ("an empty tag", 99, [0]),
        ("a longer tag", 99, [0xFF]),
    ]

    @Test(arguments: malformed) func `a record with a right code and a wrong length is malformed`(
        _ name: String, _ offset: Int, _ bytes: [UInt8]
    ) throws {
        var content = Array(try #require(Self.record()).encode(hash: hash).head.dropLast(32))
        content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        #expect(Self.decode(Self.sealed(content)) == .failure(.malformed), "\(name)")
    }

    @Test func `a record that is shorter than its fixed fields is malformed`() {
        let bytes = SharedRecord.magic + [2, 0, 200, 0, 40, 0, 0, 0] + [UInt8](repeating: 0, count: 28)
        #expect(Self.decode(bytes) == .failure(.malformed))
    }

    // MARK: parts

    static let plans: [(Int, [Range<Int>])] = [
        (0, []), (16 << 10, []), ((16 << 10) + 1, [0..<(16 << 10) + 1]), (256 << 10, [0..<(256 << 10)]),
        ((256 << 10) + 1, [0..<(256 << 10), (256 << 10)..<(256 << 10) + 1]),
        (1 << 20, (0..<4).map { ($0 << 18)..<(($0 + 1) << 18) }),
    ]

    @Test(arguments: plans) func `a long body is in parts of 256 KiB`(_ length: Int, _ ranges: [Range<Int>]) throws {
        let parts = try #require(Self.record(bodyLength: length)).parts
        #expect(parts.map(\.range) == ranges)
        #expect(parts.map(\.number) == Array(0..<ranges.count))
    }

    @Test func `a part is opened as it was sealed, and nothing else is`() throws {
        let record = try #require(Self.record(bodyLength: 1 << 20))
        let part = record.parts[1]
        let bytes = (0..<part.range.count).map { UInt8(truncatingIfNeeded: $0 >> 8 ^ $0) }
        let value = record.sealPart(part, bytes, hash: hash)
        #expect(try record.openPart(part, value, hash: hash) == bytes[...])

        let other = try #require(Self.record(id: SharedRecordID(high: 1, low: 2), bodyLength: 1 << 20))
        #expect(
            errorOf { () throws(SharedRecordError) in _ = try other.openPart(part, value, hash: hash) } == .wrongCode)
        var damaged = value
        damaged[value.count - 1] ^= 1
        let rows: [(String, SharedPart, [UInt8], SecretHash, SharedRecordError)] = [
            ("another part", record.parts[2], value, hash, .wrongCode),
            ("damage", part, damaged, hash, .wrongCode),
            ("another secret", part, value, otherHash, .wrongCode),
            ("cut", part, Array(value.dropLast()), hash, .truncated),
            ("nothing", part, [], hash, .truncated),
            ("more", part, value + [0], hash, .trailingBytes),
        ]
        for (name, part, value, secret, expected) in rows {
            let error = errorOf { () throws(SharedRecordError) in
                _ = try record.openPart(part, value, hash: secret)
            }
            #expect(error == expected, "\(name)")
        }
    }

    // MARK: expiry

    /// Stored at, expires at, now, grace, seconds.
    static let expiries: [(String, Int64, Int64, Int64, Int64, Int64?)] = [
        ("fresh", 100, 160, 100, 0, 60),
        ("fresh, with a grace", 100, 160, 100, 3600, 3660),
        ("a second is left", 100, 160, 159, 0, 1),
        ("just over", 100, 160, 160, 0, nil),
        ("long over", 100, 160, 10_000, 0, nil),
        ("in its grace", 100, 160, 170, 60, 50),
        ("the grace is over", 100, 160, 220, 60, nil),
        ("stale from the beginning, can be validated", 100, 0, 100, 60, 60),
        ("stale from the beginning, cannot be validated", 100, 0, 100, 0, nil),
        ("fresh for a year", 100, 31_536_100, 100, 0, 30 * 86_400),
        ("the clock of the writer is ahead", 1_000_000_000, 0, 100, 60, 30 * 86_400),
        ("the last second of all", 0, .max, 0, .max, 30 * 86_400),
        ("the first second of all", .min, .max, .min, 0, 30 * 86_400),
        ("before all", .min, .min, 0, 0, nil),
    ]

    @Test(arguments: expiries) func `a record is kept while it is fresh, and for its grace`(
        _ name: String, _ storedAt: Int64, _ expiresAt: Int64, _ now: Int64, _ grace: Int64, _ expected: Int64?
    ) {
        #expect(
            SharedExpiry.seconds(storedAt: storedAt, expiresAt: expiresAt, now: now, grace: grace) == expected,
            "\(name)")
    }
}
