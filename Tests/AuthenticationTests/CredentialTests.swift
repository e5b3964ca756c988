import Authentication
import Message
import Testing

@Suite("RFC 7617 Basic")
struct BasicCredentialsTests {
    static let rows: [(String, user: String, password: String)] = [
        ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"), ("basic YTpi", "a", "b"),
        ("BASIC   YTpi", "a", "b"), ("Basic dGVzdDoxMjPCow==", "test", "123£"), ("Basic YTpiOmM=", "a", "b:c"),
        ("Basic YTo=", "a", ""), ("Basic OmI=", "", "b"),
    ]
    @Test(arguments: rows) func `the user name ends at the first colon`(
        _ value: String, _ user: String, _ password: String
    ) throws {
        let credentials = try #require(BasicCredentials(fieldValue: value.utf8))
        #expect(credentials == BasicCredentials(user: user, password: Array(password.utf8)))
    }

    static let refused = [
        "", "Basic", "Basic ", "Bearer YTpi", "Basi YTpi", "Basic\tYTpi", "Basic YTpi ", "Basic YTpi,", "Basic YT pi",
        "Basic YTo", "Basic YTp=", "Basic YTo==", "Basic YTq=", "Basic YWI=", "Basic ====", "Basic YTpi====",
        "Basic YTpi\n", "Basic YS1i", "Basic YToK", "Basic YTp/", "Basic YTr/", "Basic -_==", "Basic YQA6Yg==",
        "\u{02}asic YTpi",
    ]
    @Test(arguments: refused) func `is no credentials`(_ value: String) {
        #expect(BasicCredentials(fieldValue: value.utf8) == nil)
    }

    @Test func `the challenge quotes the realm`() {
        #expect(
            String(decoding: basicChallenge(realm: "the \"big\" \\ one\r\n"), as: UTF8.self)
                == #"Basic realm="the \"big\" \\ one", charset="UTF-8""#)
    }
}

@Suite("htpasswd files")
struct HtpasswdFileTests {
    static let bcrypt = "$2y$10$abcdefghijklmnopqrstuuKy2Qp0OYp0OYp0OYp0OYp0OYp0OYp0O"

    @Test func `lines have names and hashes, with comments and empty lines in between`() {
        let text =
            "# users\n\nalice:\(Self.bcrypt)\r\nbob:$6$salt$0123456789abcdef:extra\n  \ncarol:$y$j9T$salt$0123456789\n"
        let (file, errors) = HtpasswdFile.parse(Array(text.utf8))
        #expect(errors.isEmpty)
        #expect(file.users == ["alice", "bob", "carol"])
        #expect(file.hash(for: "alice") == Self.bcrypt)
        #expect(file.hash(for: "bob") == "$6$salt$0123456789abcdef")
        #expect(file.hash(for: "Alice") == nil)
        #expect(file.count == 3)
    }

    static let rows: [(line: String, problem: HtpasswdError.Problem)] = [
        ("alice", .noColon), (":\(bcrypt)", .noUser), ("a:secret", .plaintext), ("a:rl0uE4MCkYpLA", .plaintext),
        ("a:", .plaintext),
        ("a:$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/", .md5), ("a:$1$salt$0123456789abcdef", .md5),
        ("a:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", .sha1), ("a:{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", .sha1),
        ("a:$9$whatever-this-is-today", .unknownHash), ("a:$2y$10$short", .truncatedHash),
        ("a\u{1}:\(bcrypt)", .notText),
    ]
    @Test(arguments: rows) func `an error names the line but does not show it`(
        _ line: String, _ problem: HtpasswdError.Problem
    ) {
        let (_, errors) = HtpasswdFile.parse(Array("ok:\(Self.bcrypt)\n\(line)\n".utf8))
        #expect(errors == [HtpasswdError(line: 2, problem: problem)])
        #expect(errors.allSatisfy { "\($0)".hasPrefix("line 2: ") && !"\($0)".contains("secret") })
    }

    @Test func `all errors of a file are reported`() {
        let (_, errors) = HtpasswdFile.parse(Array("a:\(Self.bcrypt)\na:\(Self.bcrypt)\nb\nc".utf8) + [0xFF, 0x3A])
        #expect(errors.map(\.problem) == [.repeatedUser, .noColon, .notText])
        #expect(errors.map(\.line) == [2, 3, 4])
    }
}

@Suite("Remembered credentials")
struct VerifiedCredentialsTests {
    static let alice = BasicCredentials(user: "alice", password: Array("secret".utf8))
    static let wrong = BasicCredentials(user: "alice", password: Array("wrong".utf8))
    /// Not a digest, but tells its inputs apart.
    static func make(
        countMax: Int = 4096, _ change: (inout FailureCounts.Bounds) -> Void = { _ in }
    ) -> VerifiedCredentials {
        var failures = FailureCounts.Bounds()
        change(&failures)
        var bounds = VerifiedCredentials.Bounds()
        bounds.countMax = countMax
        return VerifiedCredentials(
            bounds: bounds, attempts: OwnAttempts(Attempts(FailureCounts(failures))), digest: { $0.reversed() })
    }

    @Test func `right credentials are accepted for a minute, wrong ones refused for two seconds`() {
        var known = Self.make()
        #expect(known.answer(for: Self.alice, client: ip("127.0.0.1"), now: .seconds(100)) == .unknown)
        known.record(Self.alice, isValid: true, client: nil, now: .seconds(100))
        known.record(Self.wrong, isValid: false, client: nil, now: .seconds(100))
        #expect(
            known.answer(for: Self.alice, client: ip("127.0.0.1"), now: .seconds(159))
                == .verified(until: .seconds(160)))
        #expect(known.answer(for: Self.alice, client: ip("127.0.0.1"), now: .seconds(160)) == .unknown)
        #expect(known.answer(for: Self.wrong, client: ip("127.0.0.1"), now: .seconds(101)) == .refused)
        #expect(known.answer(for: Self.wrong, client: ip("127.0.0.1"), now: .seconds(102)) == .unknown)
    }

    @Test func `different pairs of user and password have different digests`() {
        var known = Self.make()
        known.record(BasicCredentials(user: "ab", password: [0x63]), isValid: true, client: nil, now: .zero)
        let shifted = BasicCredentials(user: "a", password: [0x62, 0x63])
        #expect(known.answer(for: shifted, client: nil, now: .zero) == .unknown)
    }

    @Test func `a client that fails too often has to wait, and other clients do not`() {
        var known = Self.make { $0.perSourceMax = 3 }
        known.record(Self.alice, isValid: true, client: nil, now: .zero)
        for second in 0..<3 {
            #expect(
                known.answer(for: Self.alice, client: ip("192.0.2.1"), now: .seconds(second))
                    == .verified(until: .seconds(60)))
            known.record(Self.wrong, isValid: false, client: ip("192.0.2.1"), now: .seconds(second))
        }
        #expect(
            known.answer(for: Self.alice, client: ip("192.0.2.1"), now: .seconds(4))
                == .tooManyFailures(wait: .seconds(6)))
        #expect(
            known.answer(for: Self.alice, client: ip("192.0.2.2"), now: .seconds(4)) == .verified(until: .seconds(60)))
        #expect(
            known.answer(for: Self.alice, client: ip("192.0.2.1"), now: .seconds(10)) == .verified(until: .seconds(60)))
    }

    @Test func `the addresses of one IPv6 network count as one client`() {
        var known = Self.make { $0.perSourceMax = 1 }
        known.record(Self.wrong, isValid: false, client: ip("2001:db8::1"), now: .zero)
        #expect(
            known.answer(for: Self.alice, client: ip("2001:db8::2"), now: .zero) == .tooManyFailures(wait: .seconds(10))
        )
        #expect(known.answer(for: Self.alice, client: ip("2001:db8:0:1::2"), now: .zero) == .unknown)
    }

    @Test func `the table never exceeds its bound, and drops the oldest entries first`() {
        var known = Self.make(countMax: 3)
        let users = (0..<5).map { BasicCredentials(user: "user\($0)", password: []) }
        for (index, user) in users.enumerated() {
            known.record(user, isValid: true, client: nil, now: .seconds(index))
        }
        #expect(
            users.map { known.answer(for: $0, client: nil, now: .seconds(5)) }
                == [.unknown, .unknown] + (62...64).map { .verified(until: .seconds($0)) })
        // Renewed a hundred times, it is still one.
        for _ in 0..<100 { known.record(users[2], isValid: true, client: nil, now: .seconds(6)) }
        #expect(known.answer(for: users[2], client: nil, now: .seconds(60)) == .verified(until: .seconds(66)))
    }

    @Test func `all credentials are forgotten when the users change`() {
        var known = Self.make()
        known.record(Self.alice, isValid: true, client: nil, now: .zero)
        known.record(Self.wrong, isValid: false, client: nil, now: .zero)
        known.forgetAll()
        #expect(known.answer(for: Self.alice, client: nil, now: .zero) == .unknown)
        #expect(known.answer(for: Self.wrong, client: nil, now: .zero) == .unknown)
    }
}
