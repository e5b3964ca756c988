import Authentication
import Message
import Testing

@Suite("Files of Digest")
struct DigestFileTests {
    static let md5 = String(repeating: "0a", count: 16)
    static let sha256 = String(repeating: "0A", count: 32)

    @Test func `lines have user, realm, algorithm and hash, and other realms are skipped`() {
        let text =
            "# users\n\nann:larder:\(Self.md5)\r\nann:larder:SHA-256:\(Self.sha256)\n  \nbob:larder:\(Self.md5)\n"
            + "eve:elsewhere:\(Self.md5)\nzoë:larder:sha-512-256:\(Self.sha256)\n"
        let (file, errors) = DigestFile.parse(Array(text.utf8), realm: "larder")
        #expect(errors.isEmpty)
        #expect(file.users == ["ann", "bob", "zoë"])
        #expect(file.usersOfMD5Alone == ["bob"])
    }

    static let rows: [(line: String, problem: DigestFileError.Problem)] = [
        ("ann", .wrongParts), ("ann:larder", .wrongParts), ("ann:larder:SHA-256:\(sha256):x", .wrongParts),
        (":larder:\(md5)", .noUser), ("ann:larder:secret", .wrongHash), ("ann:larder:\(sha256)", .wrongHash),
        ("ann:larder:SHA-256:\(md5)", .wrongHash), ("ann:larder:\(md5.dropLast())g", .wrongHash),
        ("ann:larder:SHA-1:\(md5)", .unknownAlgorithm), ("ann:larder:MD5-sess:\(md5)", .unknownAlgorithm),
        ("ok:larder:MD5:\(md5)", .repeatedUser), ("a\u{1}:larder:\(md5)", .notText),
    ]
    @Test(arguments: rows) func `an error names the line but does not show it`(
        _ row: (line: String, problem: DigestFileError.Problem)
    ) {
        let (_, errors) = DigestFile.parse(Array("ok:larder:\(Self.md5)\n\(row.line)\n".utf8), realm: "larder")
        #expect(errors == [DigestFileError(line: 2, problem: row.problem)])
        #expect(errors.allSatisfy { "\($0)".hasPrefix("line 2: ") && !"\($0)".contains("secret") })
    }
}

@Suite("Files of groups")
struct GroupsFileTests {
    @Test func `a user has all groups that name it`() {
        let text = "# groups\nbuilders: ann bob\n\nadmins:ann\t carol\r\nbuilders: zoë ann\n empty :\n"
        let (file, wrong) = GroupsFile.parse(Array(text.utf8))
        #expect(wrong.isEmpty)
        #expect(file.groups(of: "ann") == ["admins", "builders"])
        #expect(file.groups(of: "zoë") == ["builders"])
        #expect(file.groups(of: "eve") == [])
        #expect(file.users == ["ann", "bob", "carol", "zoë"])
    }

    @Test(arguments: ["builders ann", ": ann", "a\u{1}: ann"]) func `other lines are wrong`(_ line: String) {
        #expect(GroupsFile.parse(Array("ok: ann\n\(line)\n".utf8)).wrongLines == [2])
    }
}

@Suite("Hashes that can be guessed fast")
struct WeakHashTests {
    /// Made with htpasswd -nbm and htpasswd -nbs.
    static let rows: [(password: String, hash: String)] = [
        ("secret", "$apr1$ccuYLZiL$xPMJa52ccfHQ9Qu8Ur8SZ/"),
        ("secret", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="),
        ("", "$apr1$u2W5pV8G$SNHpDfZNtiBg/d8.Sq2kq."),
        ("", "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
        ("a", "$apr1$rxTp60z4$T5bcNeAVj5O4j6YuURLIq1"),
        ("a", "{SHA}hvfkN/qlp/zhXR3cuerq6jd2Z7g="),
        ("a rather long password, longer than any digest", "$apr1$wlv3djWL$ThJPtRECwY1r3G31TPZeH0"),
        ("a rather long password, longer than any digest", "{SHA}hEhLsxjPGuHHI+0LzZaR+hh6fnU="),
        ("pässwörd", "$apr1$oy5q7rvj$QgCSbW6TvM6bo1rYwNQBs1"),
        ("pässwörd", "{SHA}9Rfd8dMqES/xrVXGbRsSyzjn6Pc="),
    ]
    @Test(arguments: rows) func `htpasswd's hashes are understood`(_ row: (password: String, hash: String)) {
        #expect(WeakHash.isOne(row.hash))
        #expect(WeakHash.matches(Array(row.password.utf8), row.hash, using: OpenSSLHashing()))
        #expect(!WeakHash.matches(Array("\(row.password)x".utf8), row.hash, using: OpenSSLHashing()))
    }

    @Test(arguments: ["$apr1$", "$apr1$x", "$apr1$toolongsalt$x", "{SHA}", "", "$1$salt$hash"])
    func `a hash that is none matches nothing`(_ hash: String) {
        #expect(!WeakHash.matches([], hash, using: OpenSSLHashing()))
    }

    @Test func `they are in a file only where that is allowed, and plain text never is`() {
        let lines = "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\nbob:$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/\n"
        #expect(HtpasswdFile.parse(Array(lines.utf8)).errors.map(\.problem) == [.sha1, .md5])
        #expect(HtpasswdFile.parse(Array(lines.utf8), allowsWeak: true).errors.isEmpty)
        let plain = HtpasswdFile.parse(Array("a:secret\nb:{SSHA}x\n".utf8), allowsWeak: true)
        #expect(plain.errors.map(\.problem) == [.plaintext, .sha1])
    }
}
