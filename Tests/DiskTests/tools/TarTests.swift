import Foundation
import Testing

@testable import Disk
@testable import DiskTools

@Suite("Tar headers (POSIX ustar and pax)")
struct TarTests {
    static let members: [Tar.Member] = [
        .init(name: Array("larder-export".utf8), size: 0, modifiedAt: 0),
        .init(name: Array("objects/1/http:/a.record".utf8), size: 1, modifiedAt: 1_700_000_000),
        .init(name: [UInt8](repeating: 0x61, count: 100), size: 511, modifiedAt: 1),
        .init(name: [UInt8](repeating: 0x61, count: 101), size: 512, modifiedAt: 1),
        .init(name: [UInt8](repeating: 0x62, count: 900), size: 513, modifiedAt: (1 << 33) - 1),
        .init(name: Array("a".utf8), size: (1 << 33) - 1, modifiedAt: 1),
        .init(name: Array("a".utf8), size: 1 << 33, modifiedAt: 1),
        .init(name: [UInt8](repeating: 0x63, count: 300), size: 1 << 40, modifiedAt: 1),
    ]

    /// Name and size as the blocks say.
    static func read(_ header: [UInt8]) throws -> (name: [UInt8], size: UInt64) {
        var (name, size): ([UInt8]?, UInt64?) = (nil, nil)
        var rest = header[...]
        while !rest.isEmpty {
            let block = Array(rest.prefix(512))
            rest = rest.dropFirst(512)
            switch try Tar.readHeader(block) {
            case .extended(let bytes):
                (name, size) = try Tar.readRecords(Array(rest.prefix(Int(bytes))))
                rest = rest.dropFirst(Int(Tar.padded(bytes)))
            case .file(let short, let plain, _):
                #expect(rest.isEmpty)
                return (name ?? short, size ?? plain)
            case .other, .end: Issue.record("a header of a file is one")
            }
        }
        throw Tar.Failure.noHeader
    }

    @Test(arguments: members) func `what is written is read`(_ member: Tar.Member) throws {
        let header = Tar.header(of: member)
        #expect(header.count % 512 == 0)
        let (name, size) = try Self.read(header)
        #expect(name == member.name && size == member.size)
    }

    @Test func `a changed byte in a header is detected`() throws {
        let header = Tar.header(of: Self.members[1])
        for index in header.indices {
            var damaged = header
            damaged[index] ^= 0x10
            // A sum in another spelling may say the same; a header that is taken says what was written.
            guard let found = try? Tar.readHeader(damaged) else { continue }
            #expect(try found == Tar.readHeader(header), "byte \(index)")
        }
    }

    @Test func `the headers of GNU tar for large files are read`() throws {
        var block = Tar.header(of: .init(name: Array("a".utf8), size: 0, modifiedAt: 0))
        block.replaceSubrange(124..<136, with: [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 5])
        Self.seal(&block)
        #expect(try Tar.readHeader(block) == .file(name: Array("a".utf8), size: 2 << 32 | 5, modifiedAt: 0))
        block.replaceSubrange(124..<136, with: [0x80, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5])
        Self.seal(&block)
        #expect(throws: Tar.Failure.contradiction) { try Tar.readHeader(block) }
    }

    /// Puts the sum of a header right that was changed.
    static func seal(_ block: inout [UInt8]) {
        block.replaceSubrange(148..<156, with: [UInt8](repeating: 0x20, count: 8))
        let sum = String(block.reduce(0) { $0 + Int($1) }, radix: 8)
        block.replaceSubrange(
            148..<156, with: Array((String(repeating: "0", count: 6 - sum.count) + sum).utf8) + [0, 0x20])
    }

    static let records = [
        "", "6 a=b\n", "11 path=abc\n\n", "5 a=b\n", "7 a=b\n", "99 path=a\n", "x path=a\n", "8 pathab\n",
        "18446744073709551616 a=b\n",
        "10 size=1x\n", "28 size=9223372036854775808\n", "1 ", "2 \n", "0 a=b\n", "-6 a=b\n",
    ]
    @Test(arguments: records) func `contradictory records are an error`(_ text: String) {
        do throws(Tar.Failure) {
            let (name, size) = try Tar.readRecords(Array(text.utf8))
            #expect(name == nil && size == nil, "\(text)")
        } catch { #expect(error == .contradiction) }
    }

    @Test(arguments: 0..<50 as Range<UInt64>) func `any bytes give a value or an error`(_ seed: UInt64) {
        var random = Numbers(seed: seed)
        for _ in 0..<50 {
            var block = Tar.header(of: Self.members[Int(random.next() % 4)]).suffix(512).map { $0 }
            for _ in 0..<random.next() % 8 {
                block[Int(random.next() % 512)] = UInt8(truncatingIfNeeded: random.next())
            }
            Self.seal(&block)
            _ = try? Tar.readHeader(block)
            let length = Int(random.next() % 40)
            let pieces = Array("0123456789 =path size\n\u{0}".utf8)
            _ = try? Tar.readRecords((0..<length).map { _ in pieces[Int(random.next() % UInt64(pieces.count))] })
        }
    }
}

/// SplitMix64.
struct Numbers: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }
}
