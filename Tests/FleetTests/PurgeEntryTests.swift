import Testing

@testable import Fleet

@Suite("Fleet: purges on the stream") struct PurgeEntryTests {
    static func entry(
        node: String = "a", number: UInt64 = 7, issuedAt: Int64 = 1_700_000_000, purge: [UInt8] = Array("tag=x".utf8)
    ) -> PurgeEntry? { PurgeEntry(node: node, number: number, issuedAt: issuedAt, purge: purge) }

    static func decode(_ fields: [[UInt8]], _ secret: SecretHash = hash) -> Result<PurgeEntry, PurgeEntryError> {
        do { return .success(try PurgeEntry(fields: fields, hash: secret)) } catch { return .failure(error) }
    }

    /// With the code that belongs to the fields.
    static func sealed(_ fields: [[UInt8]]) -> [[UInt8]] {
        var message = Array("purge\0".utf8)
        for field in fields {
            message.appendLittleEndian(UInt32(field.count))
            message += field
        }
        let code = hash.code(message).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return fields + [Array("code".utf8), Array(code.utf8)]
    }

    static func fields(_ text: String...) -> [[UInt8]] { text.map { Array($0.utf8) } }

    static let good: [Named<PurgeEntry?>] = [
        Named("usual", entry()),
        Named("the largest numbers", entry(node: String(repeating: "n", count: 255), number: .max, issuedAt: .max)),
        Named("as little as possible", entry(number: 0, issuedAt: 0, purge: [])),
        Named("as much as possible", entry(purge: Array(repeating: 0xFF, count: 16 << 10))),
    ]

    @Test(arguments: good) func `what is written is read`(_ row: Named<PurgeEntry?>) throws {
        let entry = try #require(row.value)
        #expect(Self.decode(entry.fields(hash: hash)) == .success(entry))
    }

    @Test func `the fields are those that are written down`() throws {
        let fields = try #require(Self.entry()).fields(hash: hash)
        #expect(
            fields
                == Self.sealed(
                    Self.fields("version", "1", "node", "a", "number", "7", "at", "1700000000", "purge", "tag=x")))
    }

    @Test func `what is beyond its bound makes no entry`() {
        #expect(Self.entry(node: "") == nil && Self.entry(node: String(repeating: "n", count: 256)) == nil)
        #expect(Self.entry(issuedAt: -1) == nil)
        #expect(Self.entry(purge: Array(repeating: 0, count: (16 << 10) + 1)) == nil)
    }

    struct Fault: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let fields: [[UInt8]]
        let error: PurgeEntryError

        init(_ name: String, _ fields: [[UInt8]], _ error: PurgeEntryError) {
            testDescription = name
            self.fields = fields
            self.error = error
        }
    }

    static let faults = [
        Fault("nothing", [], .notAPurge),
        Fault("an odd number", fields("code"), .notAPurge),
        Fault("no code", fields("version", "1"), .notAPurge),
        Fault("the code before the end", fields("code", "x", "version", "1"), .notAPurge),
        Fault("too long", [Array(repeating: 0, count: 32 << 10)] + fields("x", "code", ""), .tooLong),
        Fault("a wrong code", fields("version", "1", "code", String(repeating: "0", count: 64)), .wrongCode),
        Fault("a short code", fields("version", "1", "code", ""), .wrongCode),
        Fault("another version", sealed(fields("version", "2", "other", "x")), .unknownVersion),
        Fault("a code alone", sealed([]), .malformed),
        Fault("no version", sealed(fields("node", "a")), .malformed),
        Fault("fields missing", sealed(fields("version", "1", "node", "a")), .malformed),
        Fault(
            "a leading zero",
            sealed(fields("version", "1", "node", "a", "number", "07", "at", "1", "purge", "")), .malformed
        ),
        Fault(
            "a time beyond 63 bits",
            sealed(fields("version", "1", "node", "a", "number", "7", "at", "9223372036854775808", "purge", "")),
            .malformed
        ),
        Fault(
            "another order",
            sealed(fields("version", "1", "number", "7", "node", "a", "at", "1", "purge", "")), .malformed
        ),
        Fault(
            "a field more",
            sealed(fields("version", "1", "node", "a", "number", "7", "at", "1", "purge", "", "x", "y")), .malformed
        ),
        Fault(
            "a name that is not UTF-8",
            sealed(
                fields("version", "1", "node") + [[0xFF]] + fields("number", "7", "at", "1", "purge", "")), .malformed
        ),
    ]

    @Test(arguments: faults) func `each fault has its own error`(_ fault: Fault) {
        #expect(Self.decode(fault.fields) == .failure(fault.error))
    }

    @Test func `whatever is changed, the code is wrong`() throws {
        let fields = try #require(Self.entry()).fields(hash: hash)
        for field in fields.indices.dropLast(2) {
            for index in fields[field].indices {
                var changed = fields
                changed[field][index] ^= 1
                #expect(Self.decode(changed) == .failure(.wrongCode), "byte \(index) of field \(field)")
            }
        }
        #expect(Self.decode(fields, otherHash) == .failure(.wrongCode))
        // A byte that moves from one field to the next.
        var moved = fields
        moved[9] = Array("ag=x".utf8)
        moved[8] = Array("purget".utf8)
        #expect(Self.decode(moved) == .failure(.wrongCode))
    }

    @Test func `only entries of the fleet are authentic`() {
        #expect(PurgeEntryError.allCases.filter(\.isAuthentic) == [.unknownVersion, .malformed])
    }

    // MARK: ids and positions

    static let ids: [(String, StreamID?)] = [
        ("0-0", .zero), ("1700000000000-5", StreamID(milliseconds: 1_700_000_000_000, sequence: 5)),
        ("18446744073709551615-18446744073709551615", StreamID(milliseconds: .max, sequence: .max)),
        ("18446744073709551616-0", nil), ("0-18446744073709551616", nil), ("5", nil), ("5-", nil), ("-5", nil),
        ("", nil), ("-", nil), ("1-2-3", nil), ("05-0", nil), ("5-00", nil), ("+5-0", nil), (" 5-0", nil),
        ("5-0 ", nil),
        ("5-*", nil), ("$", nil), ("a-b", nil), ("--", nil),
    ]

    @Test(arguments: ids) func `an id is read as a server writes it, and not otherwise`(_ text: String, _ id: StreamID?)
    {
        #expect(StreamID(Array(text.utf8)) == id)
        if let id { #expect(id.text == Array(text.utf8)) }
    }

    @Test func `ids are ordered by time, then by number`() {
        let ids = ["0-0", "0-1", "1-0", "1-2", "1-10", "9-0", "10-0"].compactMap { StreamID(Array($0.utf8)) }
        #expect(ids.count == 7 && ids.shuffled().sorted() == ids)
    }

    @Test func `a position is kept as text`() throws {
        let epoch = try #require(StreamEpoch(Array("run 1".utf8)))
        let position = StreamPosition(epoch: epoch, id: StreamID(milliseconds: 5, sequence: 1))
        #expect(String(decoding: position.bytes, as: UTF8.self) == "5-1 run 1")
        #expect(StreamPosition(position.bytes) == position)
        for text in ["", "5-1", "5-1 ", " run", "x run", "5 run"] {
            #expect(StreamPosition(Array(text.utf8)) == nil, "\(text)")
        }
        #expect(StreamEpoch([]) == nil && StreamEpoch(Array(repeating: 1, count: 257)) == nil)
    }
}
