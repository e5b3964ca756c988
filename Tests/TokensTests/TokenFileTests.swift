import Message
import Testing
import Tokens

@Suite("Files with tokens")
struct TokenFileTests {
    static let one = String(repeating: "0a", count: 32)
    static let two = String(decoding: encodeBase64URL([UInt8](repeating: 11, count: 32)), as: UTF8.self)

    @Test func `lines have a name, a digest, groups and an expiry`() {
        let text =
            "# tokens\n\nci:\(Self.one)\r\nci: \(Self.two) expires=2027-01-01  groups=a,b c\n".replacing(
                " c\n", with: "\n")
        let (file, errors) = TokenFile.parse(Array(text.utf8))
        #expect(errors.isEmpty && file.count == 2 && file.names == ["ci"])
        #expect(file.entry([UInt8](repeating: 10, count: 32)) == TokenFile.Entry(name: "ci"))
        #expect(
            file.entry([UInt8](repeating: 11, count: 32))
                == TokenFile.Entry(
                    name: "ci", groups: ["a", "b"], expiry: WallTime(secondsSinceEpoch: 1_798_761_600)))
        #expect(file.entry([UInt8](repeating: 12, count: 32)) == nil)
    }

    static let rows: [(line: String, problem: TokenFileError.Problem)] = [
        ("ci", .noColon), (":\(one)", .noName), ("ci:", .notADigest), ("ci:secret-token", .notADigest),
        ("ci:\(one.dropLast())", .notADigest), ("ci:\(one)0", .notADigest), ("ci:\(one) x", .unknownWord),
        ("ci:\(one) group=a", .unknownWord), ("ci:\(one) groups", .unknownWord),
        ("ci:\(one) groups=a groups=b", .unknownWord), ("ci:\(one) groups=a,,b", .emptyGroup),
        ("ci:\(one) groups=", .emptyGroup), ("ci:\(one) expires=tomorrow", .notADate),
        ("ci:\(one) expires=", .notADate), ("c\u{1}:\(one)", .notText),
    ]
    @Test(arguments: rows) func `an error names the line but does not show it`(
        _ row: (line: String, problem: TokenFileError.Problem)
    ) {
        let (_, errors) = TokenFile.parse(Array("# first\n\(row.line)\n".utf8))
        #expect(errors == [TokenFileError(line: 2, problem: row.problem)], "\(row.line)")
        #expect(!"\(errors)".contains(Self.one))
    }

    @Test func `a token is in the file once`() {
        let (_, errors) = TokenFile.parse(Array("a:\(Self.one)\nb:\(Self.one.uppercased())\n".utf8))
        #expect(errors == [TokenFileError(line: 2, problem: .repeatedToken)])
    }

    @Test func `the line of a new token can be read`() {
        let entry = TokenFile.Entry(
            name: "ci job", groups: ["a", "b"], expiry: WallTime(secondsSinceEpoch: 1_800_000_000))
        let digest = [UInt8](0..<32)
        let (file, errors) = TokenFile.parse(Array(TokenFile.line(entry, digest: digest).utf8))
        #expect(errors.isEmpty && file.entry(digest) == entry)
    }
}
