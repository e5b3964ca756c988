import Authentication
import Credentials
import Message
import Rules
import Testing

@Suite("RFC 4515, RFC 4514: names in filters and in distinguished names")
struct DirectoryTextTests {
    static let values: [(value: String, inFilter: String, inName: String)] = [
        ("ann", "ann", "ann"),
        ("*", #"\2a"#, "*"),
        (")(uid=*", #"\29\28uid=\2a"#, #")(uid\=*"#),
        (#"a\b"#, #"a\5cb"#, #"a\\b"#),
        ("a\u{0}b", #"a\00b"#, #"a\00b"#),
        ("a,dc=b", "a,dc=b", #"a\,dc\=b"#),
        ("a+b;c<d>e\"f", "a+b;c<d>e\"f", #"a\+b\;c\<d\>e\"f"#),
        (" a b ", " a b ", #"\ a b\ "#),
        ("#a#", "#a#", "\\#a#"),
        ("Müller", "Müller", "Müller"),
    ]
    @Test(arguments: values) func `what a client sends stays one value`(
        _ row: (value: String, inFilter: String, inName: String)
    ) throws {
        #expect(escapedForFilter(row.value) == row.inFilter)
        #expect(escapedForName(row.value) == row.inName)
        let filter = try #require(DirectoryTemplate("(&(uid={user})(objectClass=person))", .filter))
        #expect(filter.filled(user: row.value) == "(&(uid=\(row.inFilter))(objectClass=person))")
        let name = try #require(DirectoryTemplate("uid={user},dc=example", .name))
        #expect(name.filled(user: row.value) == "uid=\(row.inName),dc=example")
        // Unescaping gives the value back.
        if !row.value.hasPrefix("#") { #expect(firstValue(ofName: name.filled(user: row.value)) == row.value) }
    }

    static let templates: [(text: String, form: DirectoryTemplate.Form, isValid: Bool)] = [
        ("(uid={user})", .filter, true),
        ("(|(uid={user})(mail={user}))", .filter, true),
        ("(&(objectClass=person)(!(uid={user})))", .filter, true),
        ("(member:1.2.840.113556.1.4.1941:={dn})", .filter, true),
        (#"(&(cn=a\2ab)(uid={user}))"#, .filter, true),
        ("(age>={user})", .filter, true),
        ("uid={user}", .filter, false),
        ("(uid={user}", .filter, false),
        ("(uid={user}))", .filter, false),
        ("(uid={user})(a=b)", .filter, false),
        ("(&)({user}=b)", .filter, false),
        ("(={user})", .filter, false),
        ("({user})", .filter, false),
        ("(uid=ann)", .filter, false),
        ("(uid={name})", .filter, false),
        ("(uid={user)", .filter, false),
        (#"(&(cn=a\xx)(uid={user}))"#, .filter, false),
        (String(repeating: "(!", count: 17) + "(uid={user})" + String(repeating: ")", count: 17), .filter, false),
        ("uid={user},ou=people,dc=example", .name, true),
        ("cn={user}+sn=x,dc=example", .name, true),
        ("cn=a\\,b {user},dc=example", .name, true),
        ("{user}", .name, false),
        ("uid={user},,dc=example", .name, false),
        ("uid={dn},dc=example", .name, false),
        ("uid=ann,dc=example", .name, false),
    ]
    @Test(arguments: templates) func `a template has the form that it is used in`(
        _ row: (text: String, form: DirectoryTemplate.Form, isValid: Bool)
    ) {
        let template = DirectoryTemplate(row.text, row.form)
        #expect((template != nil) == row.isValid, "\(row.text)")
        if let template { #expect("\(template)" == row.text) }
    }

    static let names: [(name: String, value: String?)] = [
        ("cn=builders,ou=groups,dc=example", "builders"),
        ("CN=Domain Admins,DC=corp", "Domain Admins"),
        (#"cn=a\,b,dc=example"#, "a,b"),
        (#"cn=a\2cb,dc=example"#, "a,b"),
        ("cn=a+sn=b,dc=example", "a"),
        ("cn= a , dc=example", "a"),
        (#"cn=a\ ,dc=example"#, "a "),
        ("cn=#0401,dc=example", nil),
        (#"cn=\ff,dc=example"#, nil),
        (#"cn=a\"#, nil),
        ("builders", nil), ("=b", nil), ("cn=", nil), ("", nil),
    ]
    @Test(arguments: names) func `the name of a group is the first value of the name of its entry`(
        _ row: (name: String, value: String?)
    ) { #expect(firstValue(ofName: row.name) == row.value, "\(row.name)") }

    static let urls: [(text: String, isSecured: Bool, shown: String?)] = [
        ("ldaps://ldap.example", true, "ldaps://ldap.example"),
        ("LDAP://LDAP.example:3389", false, "ldap://ldap.example:3389"),
        ("ldap://127.0.0.1/", false, "ldap://127.0.0.1"),
        ("ldaps://[::1]:636", true, "ldaps://[::1]:636"),
        ("ldap://[127.0.0.1]", false, nil), ("ldap://::1", false, nil),
        ("ldap://", false, nil), ("ldap://a:", false, nil), ("ldap://a:0", false, nil), ("ldap://a:65536", false, nil),
        ("ldap://a:+1", false, nil),
        ("ldap://a/dc=example", false, nil), ("ldap://u@a", false, nil), ("ldap://a?x", false, nil),
        ("ldapi://x", false, nil), ("http://a", false, nil), ("ldap://a b", false, nil), ("ldap.example", false, nil),
    ]
    @Test(arguments: urls) func `the URL of a directory is a scheme, a host and a port`(
        _ row: (text: String, isSecured: Bool, shown: String?)
    ) {
        let url = DirectoryURL(row.text)
        #expect(url.map { "\($0)" } == row.shown, "\(row.text)")
        if let url { #expect(url.isSecured == row.isSecured) }
    }

    @Test func `loopback is a name or an address of this machine`() {
        let texts = [
            "ldap://localhost", "ldap://127.0.0.2", "ldap://[::1]", "ldap://10.0.0.1", "ldap://localhost.example",
        ]
        #expect(texts.compactMap { DirectoryURL($0)?.isLoopback } == [true, true, true, false, false])
    }
}

@Suite("RFC 4511: what a directory is asked")
struct DirectoryDialogueTests {
    static let ann = DirectoryEntry(dn: "uid=ann,dc=example", attributes: ["uid": [Array("ann".utf8)]])
    static let group = DirectoryEntry(dn: "cn=builders,dc=example", attributes: ["cn": [Array("builders".utf8)]])

    static func settings(_ change: (inout DirectorySettings) -> Void = { _ in }) -> DirectorySettings {
        var settings = DirectorySettings()
        settings.usersBase = "dc=example"
        change(&settings)
        return settings
    }
    static let withAccount = settings {
        $0.accountName = "cn=larder"
        $0.groupsBase = "ou=groups"
    }
    static let anonymous = settings { $0.groupsBase = "ou=groups" }
    static let direct = settings {
        $0.usersBase = nil
        $0.userName = DirectoryTemplate("uid={user},dc=example", .name)
        $0.memberAttribute = "memberOf"
    }

    /// Plays a dialogue, and says what was asked and what came of it.
    static func play(_ settings: DirectorySettings, _ replies: [DirectoryReply], user: String = "Ann") -> [String] {
        var dialogue = DirectoryDialogue(
            settings, user: user, password: Secret("secret"),
            accountPassword: settings.accountName.map { _ in Secret("reader") })
        var said: [String] = []
        var replies = replies[...]
        var action = dialogue.start()
        while true {
            switch action {
            case .bind(let name, let password):
                said.append("bind \(name) \(String(decoding: password.bytes, as: UTF8.self))")
            case .search(let search):
                said.append("\(search.scope) \(search.base) \(search.filter) \(search.attributes) \(search.countMax)")
            case .finish(let outcome):
                switch outcome {
                case .accepted(let user): said.append("accepted \(user.name) \(user.groups)")
                case .refused(let refusal): said.append("refused: \(refusal.text)")
                case .failed(let fault): said.append("failed: \(fault.text)")
                }
                return said
            }
            guard let reply = replies.popFirst() else { return said }
            action = dialogue.on(reply)
        }
    }

    static let ok = DirectoryReply(.success)
    static func code(_ number: Int) -> DirectoryReply { DirectoryReply(DirectoryCode(number)) }

    @Test func `an account searches, and nothing counts before the user's bind`() {
        let said = Self.play(
            Self.withAccount,
            [
                Self.ok, DirectoryReply(.success, [Self.ann]), DirectoryReply(.success, [Self.group, Self.group]),
                Self.ok,
            ])
        #expect(
            said == [
                "bind cn=larder reader", #"subtree dc=example (uid=Ann) ["uid"] 2"#,
                #"subtree ou=groups (member=uid=ann,dc=example) ["cn"] 1000"#, "bind uid=ann,dc=example secret",
                #"accepted ann ["builders"]"#,
            ])
    }

    @Test func `without an account the user reads its groups`() {
        let said = Self.play(
            Self.anonymous,
            [DirectoryReply(.success, [Self.ann]), Self.ok, DirectoryReply(.success, [Self.group])])
        #expect(
            said == [
                #"subtree dc=example (uid=Ann) ["uid"] 2"#, "bind uid=ann,dc=example secret",
                #"subtree ou=groups (member=uid=ann,dc=example) ["cn"] 1000"#, #"accepted ann ["builders"]"#,
            ])
    }

    @Test func `a name that follows from the settings is bound first, and read`() {
        let entry = DirectoryEntry(
            dn: "uid=ann,dc=example",
            attributes: [
                "UID": [Array("ann".utf8)], "memberof": ["cn=b,dc=x", "cn=a,dc=x"].map { Array($0.utf8) },
            ])
        let said = Self.play(Self.direct, [Self.ok, DirectoryReply(.success, [entry])])
        #expect(
            said == [
                "bind uid=Ann,dc=example secret",
                #"base uid=Ann,dc=example (objectClass=*) ["uid", "memberOf"] 1"#, #"accepted ann ["a", "b"]"#,
            ])
    }

    private static func entry(_ values: [[UInt8]]) -> DirectoryReply {
        DirectoryReply(.success, [DirectoryEntry(dn: "x=y", attributes: ["uid": values])])
    }

    static let ends: [(settings: DirectorySettings, replies: [DirectoryReply], end: String)] = [
        (withAccount, [code(49)], "failed: the bind of bind_dn is refused with result code 49"),
        (withAccount, [ok, code(32)], "failed: the search for the user ended with result code 32"),
        (withAccount, [ok, ok], "refused: no entry matches"),
        (withAccount, [ok, DirectoryReply(.success, [ann, ann])], "refused: more than one entry matches"),
        (withAccount, [ok, DirectoryReply(.sizeLimitExceeded, [ann])], "refused: more than one entry matches"),
        (
            withAccount, [ok, DirectoryReply(DirectoryCode(10), [ann])],
            "failed: the search for the user ended with result code 10"
        ),
        (withAccount, [ok, entry([])], "refused: its entry does not show exactly one value of users.name"),
        (
            withAccount, [ok, entry([[0x61], [0x62]])],
            "refused: its entry does not show exactly one value of users.name"
        ),
        (withAccount, [ok, entry([[0xFF]])], "refused: its entry does not show exactly one value of users.name"),
        (
            withAccount, [ok, entry([[0x61, 0x0A]])], "refused: its entry does not show exactly one value of users.name"
        ),
        (
            withAccount, [ok, DirectoryReply(.success, [ann]), code(32)],
            "failed: the search for groups ended with result code 32"
        ),
        (
            withAccount, [ok, DirectoryReply(.success, [ann]), DirectoryReply(.sizeLimitExceeded, [group])],
            "failed: a user is in more than 1000 groups, or in more than the directory tells"
        ),
        (
            withAccount, [ok, DirectoryReply(.success, [ann]), DirectoryReply(.success, [ann])],
            "failed: the name of a group cannot be read"
        ),
        (
            withAccount, [ok, DirectoryReply(.success, [ann]), ok, code(49)],
            "refused: its bind is refused with result code 49"
        ),
        (
            withAccount, [ok, DirectoryReply(.success, [ann]), ok, code(53)],
            "refused: its bind is refused with result code 53"
        ),
        (
            withAccount, [ok, DirectoryReply(.success, [ann]), ok, code(51)],
            "failed: the bind of the user ended with result code 51"
        ),
        (
            withAccount, [ok, DirectoryReply(.success, [ann]), ok, code(10)],
            "failed: the bind of the user ended with result code 10"
        ),
        (direct, [code(34)], "refused: its bind is refused with result code 34"),
        (direct, [ok, code(32)], "refused: no entry matches"),
        (direct, [ok, code(50)], "failed: the search for the user ended with result code 50"),
    ]
    @Test(arguments: ends) func `what a directory answers decides`(
        _ row: (settings: DirectorySettings, replies: [DirectoryReply], end: String)
    ) { #expect(Self.play(row.settings, row.replies).last == row.end) }

    @Test func `nobody brings it about that a directory is avoided by a name that makes it fail`() {
        let faults: [DirectoryFault] = [
            .connection("x"), .account(DirectoryCode(49)), .userSearch(.busy), .userBind(.unavailable),
            .userSearch(DirectoryCode(80)), .userBind(DirectoryCode(1)), .groupSearch(.noSuchObject), .tooManyGroups,
            .groupUnreadable,
        ]
        #expect(faults.map(\.isOfDirectory) == [true, true, true, true, false, false, false, false, false])
    }
}

@Suite("Which directory is asked")
struct DirectoryServersTests {
    static let urls = ["ldap://a", "ldap://b"].compactMap { DirectoryURL($0) }

    private func next(
        _ servers: inout DirectoryServers, after tried: Set<DirectoryURL> = [], at second: Int
    ) -> String? {
        servers.next(of: Self.urls, after: tried, now: .seconds(second), limit: .seconds(20)).map { "\($0)" }
    }

    private func told(_ servers: inout DirectoryServers, _ body: (inout DirectoryServers) -> Bool) -> Bool {
        body(&servers)
    }

    @Test func `the first that works is asked, and one that failed is avoided, longer each time`() {
        var servers = DirectoryServers()
        let (a, b) = (Self.urls[0], Self.urls[1])
        #expect(next(&servers, at: 100) == "ldap://a")
        #expect(next(&servers, after: [a], at: 100) == "ldap://b")
        #expect(next(&servers, after: [a, b], at: 100) == nil)
        #expect(told(&servers) { $0.failed(a, now: .seconds(100)) })
        // What was under way fails too, and counts once.
        #expect(!told(&servers) { $0.failed(a, now: .seconds(100)) })
        #expect(next(&servers, at: 101) == "ldap://b")
        // One attempt at a time tries it again.
        #expect(next(&servers, at: 102) == "ldap://a")
        #expect(next(&servers, at: 102) == "ldap://b")
        #expect(!told(&servers) { $0.failed(a, now: .seconds(103)) })
        #expect(next(&servers, at: 106) == "ldap://b")
        #expect(next(&servers, at: 107) == "ldap://a")
        #expect(told(&servers) { $0.succeeded(a) })
        #expect(!told(&servers) { $0.succeeded(a) })
        #expect(next(&servers, at: 107) == "ldap://a")
        #expect(next(&servers, at: 107) == "ldap://a")
    }

    @Test func `an attempt that never ends does not close a directory for ever`() {
        var servers = DirectoryServers()
        _ = servers.failed(Self.urls[0], now: .seconds(0))
        _ = servers.failed(Self.urls[1], now: .seconds(0))
        #expect(next(&servers, at: 1) == nil)
        #expect(next(&servers, at: 2) == "ldap://a")
        #expect(next(&servers, at: 2) == "ldap://b")
        #expect(next(&servers, at: 21) == nil)
        #expect(next(&servers, at: 22) == "ldap://a")
    }

    @Test func `the pause has an end`() {
        var servers = DirectoryServers()
        var second = 0
        for _ in 0..<70 {
            _ = servers.failed(Self.urls[0], now: .seconds(second))
            second += 30
            #expect(next(&servers, at: second) == "ldap://a")
        }
    }
}

@Suite("Basic with users of a directory")
struct DirectoryUserTests {
    static let settings: DirectorySettings = {
        var settings = DirectorySettings()
        settings.usersBase = "dc=example"
        return settings
    }()
    static let scheme = Basic(
        realm: "r",
        users: HtpasswdFile.parse(Array("ali:$2b$04$abcdefghijklmnopqrstuuJ9Tl4kT0qR5Yx6aC6q2dJ5QG8JmYbHe\n".utf8))
            .file,
        groups: GroupsFile.parse(Array("night: ann\nother: bob\n".utf8)).file, directory: settings)

    static func memory() -> VerifiedCredentials {
        VerifiedCredentials(attempts: OwnAttempts(), digest: { $0 })
    }

    static func attempt(_ user: String, _ password: String, at second: Int = 100) -> AuthenticationAttempt {
        AuthenticationAttempt(
            credentials: Array(BearerTests.basic(user, password).utf8), client: ip("192.0.2.1"), now: .seconds(second))
    }

    private func ask(
        _ attempt: AuthenticationAttempt, _ answer: DirectoryAnswer, _ memory: inout VerifiedCredentials
    ) throws -> AuthenticationStep {
        guard case .ask(let question)? = Self.scheme.examine(attempt, &memory), case .directory = question else {
            throw Unasked()
        }
        return Self.scheme.conclude(question, .directory(answer), attempt, &memory)
    }
    private struct Unasked: Error {}

    @Test func `a user in the file is never asked of the directory`() {
        var memory = Self.memory()
        guard case .ask(.password(_, hash: .some))? = Self.scheme.examine(Self.attempt("ali", "x"), &memory) else {
            Issue.record("the directory was asked")
            return
        }
    }

    @Test func `another spelling of a name in the file is refused, whatever the directory says`() throws {
        var memory = Self.memory()
        let accepted = DirectoryAnswer.accepted(DirectoryUser(name: "ali", groups: []))
        #expect(try ask(Self.attempt("ALI", "x"), accepted, &memory) == .refused(.wrong))
        #expect(Self.scheme.examine(Self.attempt("ALI", "x", at: 101), &memory) == .refused(.wrong))
    }

    @Test
    func `who was accepted is remembered for lifetime, under the name and in the groups of the directory and the file`()
        throws
    {
        var memory = Self.memory()
        let accepted = DirectoryAnswer.accepted(DirectoryUser(name: "ann", groups: ["builders"]))
        let known = Identity(name: "ann", scheme: .basic, groups: ["builders", "night"], expiry: .seconds(400))
        #expect(try ask(Self.attempt("Ann", "x"), accepted, &memory) == .known(known))
        #expect(Self.scheme.examine(Self.attempt("Ann", "x", at: 399), &memory) == .known(known))
        guard case .ask? = Self.scheme.examine(Self.attempt("Ann", "y", at: 399), &memory) else {
            Issue.record("another password was not asked for")
            return
        }
        guard case .ask? = Self.scheme.examine(Self.attempt("Ann", "x", at: 400), &memory) else {
            Issue.record("it was remembered for too long")
            return
        }
    }

    @Test func `every worker remembers who was accepted`() throws {
        let attempts = OwnAttempts()
        var (first, second) = (
            VerifiedCredentials(attempts: attempts, digest: { $0 }),
            VerifiedCredentials(attempts: attempts, digest: { $0 })
        )
        _ = try ask(Self.attempt("ann", "x"), .accepted(DirectoryUser(name: "ann", groups: [])), &first)
        guard case .known? = Self.scheme.examine(Self.attempt("ann", "x"), &second) else {
            Issue.record("the other worker asks")
            return
        }
    }

    @Test func `what one directory has accepted says nothing about another`() throws {
        var memory = Self.memory()
        _ = try ask(Self.attempt("ann", "x"), .accepted(DirectoryUser(name: "ann", groups: [])), &memory)
        var other = Self.settings
        other.usersBase = "dc=other"
        let scheme = Basic(realm: "r", users: HtpasswdFile(), directory: other)
        guard case .ask? = scheme.examine(Self.attempt("ann", "x"), &memory) else {
            Issue.record("it was not asked again")
            return
        }
    }

    static let impossible: [(user: String, password: String)] = [
        ("ann", ""), ("", "x"), ("", ""), (String(repeating: "a", count: 257), "x"),
    ]
    @Test(arguments: impossible) func `an empty password, no name and a long one are refused without a bind`(
        _ row: (user: String, password: String)
    ) {
        var memory = Self.memory()
        #expect(Self.scheme.examine(Self.attempt(row.user, row.password), &memory) == .refused(.wrong))
    }

    @Test func `a NUL in a name or a password is no Basic at all`() {
        var memory = Self.memory()
        for (user, password) in [("ann\u{0}", "x"), ("ann", "\u{0}"), ("ann", "x\u{0}y")] {
            #expect(Self.scheme.examine(Self.attempt(user, password), &memory) == nil)
        }
    }

    @Test func `a directory that cannot be asked is no failure of the client`() throws {
        var memory = Self.memory()
        for _ in 0..<20 {
            #expect(try ask(Self.attempt("ann", "x"), .unavailable, &memory) == .refused(.directoryUnavailable))
        }
        #expect(memory.takeDelay() == .zero)
    }

    @Test func `failures under all spellings of a name count together`() throws {
        var memory = Self.memory()
        for number in 0..<50 {
            let name = ["ann", "ANN", "aNn", " ann"][number % 4]
            let attempt = AuthenticationAttempt(
                credentials: Array(BearerTests.basic(name, "guess\(number)").utf8),
                client: IPAddress(v4: 0xC000_0200 + UInt32(number)), now: .seconds(100))
            #expect(try ask(attempt, .refused, &memory) == .refused(.wrong))
        }
        #expect(Self.scheme.examine(Self.attempt("Ann", "x"), &memory) == .refused(.tooManyFailures))
    }
}
