import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// A proxy whose users are in a directory, before an origin with one file. Whoever is in the group builders may have it.
private struct Listed {
    let place: Workplace
    let nginx: Nginx
    let slapd: Slapd
    let larder: Larder

    static let base = #"users: { base: "dc=example" }, groups: { base: "ou=groups,dc=example" }"#

    /// - Parameters:
    ///   - basic: the file of users of Basic has ali, whose password is sesame.
    ///   - directory: the keys of `directory`, for the server that was started.
    static func with(
        basic: Bool = false, rule: String = "group: [ builders ]",
        directory: @Sendable (Slapd, Workplace) async throws -> String = { slapd, _ in keys("\"\(slapd.plain)\"") },
        tls: String? = nil, more: String = "", _ body: (Listed) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            try place.write("www/file", Array("made for a test\n".utf8))
            let nginx = try await Nginx.start(in: place)
            var certificate: (certificate: String, key: String)?
            if let tls {
                certificate = try await TestAuthority.make("authority", in: place).issue("directory", for: tls)
            }
            let slapd = try await Slapd.start(in: place, tls: certificate)
            try place.write("password", "reader\n".utf8)
            #expect(unsafe chmod(place.path("password"), 0o600) == 0)
            var sections = "directory: { \(try await directory(slapd, place)) }"
            sections = sections.replacingOccurrences(of: "PASSWORD", with: place.path("password"))
            if basic {
                try place.write("word", "sesame\n".utf8)
                let made = try await place.run(
                    Larder.executable, ["passwd", place.path("users"), "ali"], input: place.path("word"))
                try #require(made.status == 0, "\(made)")
                sections += "\n    basic: { users: \(place.path("users")) }"
            }
            let larder = try await Larder.start(
                in: place,
                access: """
                    access:
                      authentication:
                        \(sections)
                      rules: [ allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ], \(rule) } ]
                    """, more: more)
            try await body(Listed(place: place, nginx: nginx, slapd: slapd, larder: larder))
            #expect(nginx.asked.allSatisfy { $0.contains("pa=\"-\"") }, "no credential goes to the origin")
            let said = larder.child.errors + larder.child.output
            for secret in ["secret", "hunter2", "reader"] { #expect(!said.contains(secret), "\(said)") }
        }
    }

    /// Keys of a directory in plain text, with an account.
    static func keys(_ urls: String, _ rest: String = base) -> String {
        "urls: [ \(urls) ], start_tls: no, bind_dn: \"cn=larder,dc=example\", password_file: PASSWORD, \(rest)"
    }

    var url: String { "\(nginx.url)/file" }

    func get(_ credentials: String, _ words: String..., path: String = "") async throws -> Workplace.Reply {
        try await place.curl(words + ["-U", credentials, url + path], through: larder)
    }
    /// The status of a request, or 0.
    func status(_ credentials: String, _ words: String..., path: String = "") async throws -> Int {
        try await place.curl(words + ["-U", credentials, url + path], through: larder).status
    }
}

@Suite(
    "Users of a directory",
    .enabled(
        if: installed("curl") != nil && Nginx.isInstalled && Slapd.isInstalled, "packages curl, nginx-light, slapd"))
struct UserDirectoryTests {
    static let ways: [(name: String, keys: @Sendable (Slapd, Workplace) -> String)] = [
        (
            "ldaps",
            { slapd, place in
                "urls: \"\(slapd.secured)\", ca_file: \(place.path("authority.pem")), bind_dn: \"cn=larder,dc=example\", password_file: PASSWORD, \(Listed.base)"
            }
        ),
        (
            "StartTLS",
            { slapd, place in
                "urls: \"\(slapd.plain)\", ca_file: \(place.path("authority.pem")), bind_dn: \"cn=larder,dc=example\", password_file: PASSWORD, \(Listed.base)"
            }
        ),
        ("plain text on loopback", { slapd, _ in Listed.keys("\"\(slapd.plain)\"") }),
        (
            "the name of the entry from the settings",
            { slapd, _ in
                "urls: \"\(slapd.plain)\", start_tls: no, users: { dn: \"uid={user},ou=people,dc=example\" }, groups: { base: \"ou=groups,dc=example\" }"
            }
        ),
    ]
    @Test(arguments: ways.indices) func `a user gets through by GET, CONNECT and SOCKS5, and nobody else does`(
        _ index: Int
    ) async throws {
        let way = Self.ways[index]
        try await Listed.with(directory: { way.keys($0, $1) }, tls: "IP:127.0.0.1") {
            (s: Listed) async throws -> Void in
            let right = try await s.get("ann:secret")
            #expect(
                right.status == 200 && right.text == "made for a test\n",
                "\(way.name): \(right)\n\(s.larder.child.errors)")
            #expect(try await s.get("ann:secret", "-p").text == "made for a test\n")
            let socks = ["--socks5-hostname", "127.0.0.1:\(s.larder.port)", "--proxy-user"]
            #expect(try await s.place.curl(socks + ["ann:secret", s.url], through: nil).text == "made for a test\n")
            #expect(try await s.status("ann:wrong") == 407)
            #expect(try await s.get("ann:wrong", "-p").heads.contains("407"))
            #expect(try await s.place.curl(socks + ["ann:wrong", s.url], through: nil).exit == 97)
            // He proves himself, but is in no group.
            #expect(try await s.status("bob:hunter2") == 403)
            #expect(try await s.larder.statistic("authentication", "directory_accepted") >= 1)
            #expect(try await s.larder.statistic("authentication", "directory_refused") >= 1)
        }
    }

    @Test func `groups may come from an attribute of the user`() async throws {
        try await Listed.with(
            rule: "group: [ night ]",
            directory: { slapd, _ in
                Listed.keys("\"\(slapd.plain)\"", #"users: { base: "dc=example" }, groups: { attribute: seeAlso }"#)
            }
        ) { (s: Listed) async throws -> Void in
            #expect(try await s.status("ann:secret") == 200)
            #expect(try await s.status("bob:hunter2") == 403)
        }
    }

    @Test func `a user in the file is never asked of the directory, by whatever spelling`() async throws {
        try await Listed.with(basic: true, rule: "user: [ ali, ann ]") { (s: Listed) async throws -> Void in
            #expect(try await s.status("ali:sesame") == 200)
            #expect(try await s.status("ali:other") == 407)
            #expect(!s.slapd.log.contains("uid=ali"))
            // The directory accepts this, but its ali is somebody else.
            #expect(try await s.status("ALI:other") == 407)
            #expect(s.slapd.binds("uid=ali,ou=people,dc=example") == 1)
            // Names are compared without regard to case there, and exactly in rules.
            #expect(try await s.status("ANN:secret") == 200)
            func log() -> String { String(decoding: s.place.bytes("access.jsonl"), as: UTF8.self) }
            try await eventually("the log has the user") { log().contains("\"user\":\"ann\"") }
            #expect(!log().contains("ANN"), "\(log())")
        }
    }

    @Test func `names cannot change what is searched for, and empty passwords prove nothing`() async throws {
        try await Listed.with(rule: #"user: [ "a*(b)\\c", ann ]"#) { (s: Listed) async throws -> Void in
            #expect(try await s.status(#"a*(b)\c:odd"#) == 200)
            let hostile = [
                "*:secret", "ann*:secret", ")(uid=*:secret", "ann)(|(uid=*:secret", #"\2a:secret"#, "twin:secret",
                "ann:",
            ]
            for credentials in hostile.prefix(4) { #expect(try await s.status(credentials) == 407, "\(credentials)") }
            #expect(s.slapd.log.contains(#"filter="(uid=\29\28uid=\2A)""#) || s.slapd.log.contains(#"\29\28uid=\2a"#))
            for credentials in hostile.dropFirst(4) {
                #expect(try await s.status(credentials) == 407, "\(credentials)")
            }
            #expect(s.slapd.binds("uid=ann,ou=people,dc=example") == 0, "\(s.slapd.log)")
            #expect(s.slapd.binds("uid=twin,ou=people,dc=example") == 0)
            #expect(!s.slapd.log.contains("BIND dn=\"\""))
        }
    }

    @Test func `a password that was right is remembered, while no directory answers as well`() async throws {
        try await Listed.with { (s: Listed) async throws -> Void in
            for number in 0..<4 { #expect(try await s.status("ann:secret", path: "?\(number)") == 200) }
            #expect(s.slapd.binds("uid=ann,ou=people,dc=example") == 1)
            s.slapd.child.signal(SIGTERM)
            _ = try await s.slapd.child.end(within: .seconds(20))
            #expect(try await s.status("ann:secret", path: "?known") == 200)
            for number in 0..<3 {
                let unknown = try await s.get("bob:hunter2", path: "?\(number)")
                #expect(unknown.status == 503, "\(unknown)")
                #expect(unknown.fields["proxy-status"]?.contains("directory-unavailable") == true, "\(unknown)")
                #expect(
                    unknown.fields["retry-after"] == "5" && unknown.fields["proxy-authenticate"] == nil, "\(unknown)")
            }
            // Somebody else's password is not right because nobody can say that it is wrong.
            #expect(try await s.status("ann:wrong") == 503)
            let socks = ["--socks5-hostname", "127.0.0.1:\(s.larder.port)", "--proxy-user", "bob:hunter2", s.url]
            #expect(try await s.place.curl(socks, through: nil).exit == 97)
            let said = s.larder.child.errors.components(separatedBy: "\(s.slapd.plain) cannot be used: ").count - 1
            #expect(said == 1, "\(s.larder.child.errors)")
            #expect(try await s.larder.statistic("authentication", "directory_failures") >= 4)

            _ = try await Slapd.start(in: s.place, ports: (s.slapd.port, s.slapd.tlsPort))
            try await eventually("the directory is asked again", within: .seconds(60)) {
                try await s.status("bob:hunter2") == 403
            }
            #expect(s.larder.child.errors.contains("\(s.slapd.plain) answers again"))
        }
    }

    @Test func `lifetime 0 has every request asked`() async throws {
        try await Listed.with(directory: { slapd, _ in Listed.keys("\"\(slapd.plain)\"") + ", lifetime: 0s" }) {
            (s: Listed) async throws -> Void in
            for number in 0..<3 { #expect(try await s.status("ann:secret", path: "?\(number)") == 200) }
            #expect(s.slapd.binds("uid=ann,ou=people,dc=example") == 3)
        }
    }

    @Test func `a directory that hangs holds up neither users of the file nor those who are known`() async throws {
        try await Listed.with(
            basic: true, rule: "user: [ ali, ann, bob ]",
            directory: { slapd, _ in Listed.keys("\"\(slapd.plain)\"") + ", timeout: 50s" }
        ) { (s: Listed) async throws -> Void in
            #expect(try await s.status("ann:secret") == 200)
            s.slapd.child.signal(SIGSTOP)
            defer { s.slapd.child.signal(SIGCONT) }
            // As many as there are threads, and more.
            async let waiting = withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<12 {
                    group.addTask { try await s.status("bob:hunter2\(number == 0 ? "" : "-\(number)")") }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(try await s.status("ali:sesame") == 200)
            #expect(try await s.status("ann:secret", path: "?known") == 200)
            s.slapd.child.signal(SIGCONT)
            // Wrong ones from one address are too many in the end.
            let statuses = try await waiting
            #expect(statuses.count == 12 && statuses.allSatisfy { [200, 407, 429].contains($0) }, "\(statuses)")
            #expect(statuses.contains(200) || statuses.contains(429), "\(statuses)")
        }
    }

    @Test(arguments: ["stopped", "paused"])
    func `the next directory is asked where the first one fails`(_ how: String) async throws {
        try await Workplace.with { place in
            try place.write("www/file", Array("made for a test\n".utf8))
            let nginx = try await Nginx.start(in: place)
            let first = try await Slapd.start(in: place, name: "first")
            let second = try await Slapd.start(in: place, name: "second")
            try place.write("password", "reader\n".utf8)
            let keys = Listed.keys("\"\(first.plain)\", \"\(second.plain)\"") + ", timeout: 300ms"
            let larder = try await Larder.start(
                in: place,
                access: """
                    access:
                      authentication:
                        directory: { \(keys.replacingOccurrences(of: "PASSWORD", with: place.path("password"))) }
                      rules: [ allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ], user: [ ann, bob ] } ]
                    """)
            if how == "paused" {
                first.child.signal(SIGSTOP)
            } else {
                first.child.signal(SIGTERM)
                _ = try await first.child.end(within: .seconds(20))
            }
            defer { first.child.signal(SIGCONT) }
            // A busy machine may let the second one miss its time as well: then it is asked again.
            try await eventually("the second directory answers; \(larder.child.errors)", within: .seconds(60)) {
                try await place.curl(["-U", "ann:secret", "\(nginx.url)/file"], through: larder).status == 200
            }
            #expect(second.binds("uid=ann,ou=people,dc=example") >= 1)
            #expect(first.binds("uid=ann,ou=people,dc=example") == 0)
            #expect(larder.child.errors.contains("\(first.plain) cannot be used: "), "\(larder.child.errors)")
        }
    }

    static let untrusted: [(names: String, authority: String, scheme: String)] = [
        ("IP:127.0.0.1", "other", "ldaps"), ("IP:127.0.0.1", "other", "ldap"),
        ("DNS:elsewhere.example", "authority", "ldaps"), ("DNS:elsewhere.example", "authority", "ldap"),
    ]
    @Test(arguments: untrusted) func `a certificate of another authority or name opens nothing, whatever ldaprc says`(
        _ row: (names: String, authority: String, scheme: String)
    ) async throws {
        try await Listed.with(
            directory: { slapd, place in
                _ = try await TestAuthority.make("other", in: place)
                // Other programs with this library would not verify.
                try place.write("home/.ldaprc", "TLS_REQCERT never\nREFERRALS on\n".utf8)
                let url = row.scheme == "ldap" ? slapd.plain : slapd.secured
                return
                    "urls: \"\(url)\", ca_file: \(place.path("\(row.authority).pem")), bind_dn: \"cn=larder,dc=example\", password_file: PASSWORD, \(Listed.base)"
            }, tls: row.names
        ) { (s: Listed) async throws -> Void in
            let reply = try await s.get("ann:secret")
            #expect(reply.status == 503, "\(reply)")
            #expect(s.slapd.binds("cn=larder,dc=example") == 0, "the password went out")
            #expect(s.larder.child.errors.contains("its certificate is not accepted"), "\(s.larder.child.errors)")
        }
    }

    @Test func `a wrong password of the account is a fault of the directory, and read again when it changes`()
        async throws
    {
        try await Listed.with { (s: Listed) async throws -> Void in
            try s.place.write("password", "wrong\n".utf8, age: 0)
            try await eventually("the file is read", within: .seconds(30)) {
                s.larder.child.errors.contains("a file has changed and was read")
            }
            #expect(try await s.status("ann:secret") == 503)
            #expect(
                s.larder.child.errors.contains("the bind of bind_dn is refused with result code 49"),
                "\(s.larder.child.errors)")
        }
    }

    static let checks: [(change: @Sendable (Workplace) throws -> Void, said: String)] = [
        ({ try FileManager.default.removeItem(atPath: $0.path("password")) }, "directory.password_file: "),
        ({ try $0.write("password", "\n".utf8) }, "its first line is empty"),
        ({ try FileManager.default.removeItem(atPath: $0.path("authority.pem")) }, "directory.ca_file: "),
        ({ try $0.write("authority.pem", "nothing".utf8) }, "directory.ca_file: "),
    ]
    @Test(arguments: checks.indices) func `check and serve name the file that is missing or wrong`(
        _ index: Int
    ) async throws {
        try await Workplace.with { place in
            _ = try await TestAuthority.make("authority", in: place)
            try place.write("password", "reader\n".utf8)
            try Self.checks[index].change(place)
            let keys =
                "urls: \"ldaps://localhost:1\", ca_file: \(place.path("authority.pem")), bind_dn: \"cn=larder,dc=example\", password_file: \(place.path("password")), \(Listed.base)"
            let file = try place.write(
                "larder.yaml", "access: { authentication: { directory: { \(keys) } } }\n".utf8)
            for command in ["check", "serve"] {
                let output = try await place.run(Larder.executable, [command, "--config", file])
                #expect(output.status != 0, "\(command): \(output)")
                #expect((output.out + output.err).contains(Self.checks[index].said), "\(command): \(output)")
            }
        }
    }
}
