import Testing

@testable import Disk

@Suite("RFC 3720 appendix B.4 CRC-32C")
struct ChecksumTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        let value: UInt32
    }
    static let rows = [
        Row(testDescription: "nothing", bytes: [], value: 0),
        Row(testDescription: "32 zeros", bytes: .init(repeating: 0, count: 32), value: 0x8A91_36AA),
        Row(testDescription: "32 ones", bytes: .init(repeating: 0xFF, count: 32), value: 0x62A8_AB43),
        Row(testDescription: "rising", bytes: Array(0..<32), value: 0x46DD_794E),
        Row(testDescription: "falling", bytes: Array((0..<32).reversed()), value: 0x113F_DB5C),
        Row(testDescription: "digits", bytes: Array("123456789".utf8), value: 0xE306_9283),
    ]

    @Test(arguments: rows) func `the examples of the RFC, and the check value`(_ row: Row) {
        #expect(Checksum.crc32c(row.bytes) == row.value)
    }

    @Test func `pieces have the same checksum as the whole`() {
        let bytes = segmentBytes(5000, 3)
        for first in [0, 1, 15, 16, 17, 2499, 4999, 5000] {
            var checksum = Checksum()
            checksum.add(Array(bytes[..<first]))
            var rest = Checksum(seed: checksum.value)
            rest.add(Array(bytes[first...]))
            checksum.add(Array(bytes[first...]))
            #expect(checksum.value == Checksum.crc32c(bytes))
            #expect(rest.value == checksum.value)
        }
    }

    @Test func `the checksums of a body do not depend on how it lies in memory`() {
        let bytes = segmentBytes(2 * blockBytes + 77, 5)
        let expected = stride(from: 0, to: bytes.count, by: blockBytes).map {
            Checksum.crc32c(Array(bytes[$0..<min($0 + blockBytes, bytes.count)]))
        }
        #expect(expected.count == 3)
        for piece in [1, 509, blockBytes, 1 << 20] {
            #expect(SegmentTestBody(bytes, piece: piece).blockChecksums() == expected)
        }
        #expect(SegmentTestBody([]).blockChecksums() == [])
    }
}
