import Credentials
import Message
import Testing

private let text = Array("ghp_Qm7Zt0RkW2vLx9Bd4HsYc6NpEuJa1FgT3oXi".utf8)
private let other = Array("sk-live-3f9c2b7a1e5d8046aa17c3e9b2f4d681".utf8)

private func placeholder(
    _ text: [UInt8] = text, _ credential: String = "forge", endsAt: Expiry? = nil, isRevoked: Bool = false
) -> Placeholder {
    Placeholder(
        id: "p1", text: text, credential: credential, job: nil, issuedAt: WallTime(secondsSinceEpoch: 0),
        endsAt: endsAt,
        isRevoked: isRevoked)
}

private let index = PlaceholderIndex([placeholder(), placeholder(other, "model")])
private let now = Moment(uptime: .seconds(50), wallTime: WallTime(secondsSinceEpoch: 1000))
private let ending = Expiry(after: .zero, from: now)

extension Moment {
    /// - Parameter change: by how much the wall clock was set meanwhile.
    fileprivate func later(_ seconds: Int64, clockAhead change: Seconds = .zero) -> Moment {
        Moment(uptime: uptime + .seconds(seconds), wallTime: wallTime + Seconds(seconds) + change)
    }
}

private func makeFields(_ lines: [(String, String)]) -> Fields {
    var fields = Fields()
    for (name, value) in lines {
        fields.append(FieldName(spelling: Array(name.utf8)), spelling: Array(name.utf8), Array(value.utf8))
    }
    return fields
}

@Suite("placeholders: their shape") struct PlaceholderShapeTests {
    private func shape(_ secret: String, prefix: String? = nil) -> PlaceholderShape {
        PlaceholderShape(like: Secret(secret), prefix: prefix.map { Array($0.utf8) })
    }

    @Test(arguments: [
        ("ghp_Qm7Zt0RkW2vLx9Bd4HsYc6NpEuJa1FgT3oXi", "ghp_", 36, 62),
        ("glpat-Ab3dEf6hIj9LmN0pQrSt", "glpat-", 26, 62),
        ("sk-ant-api03-Ab3dEf6hIj9LmN0pQrStAb3dEf6hIj9LmN0pQrSt", "sk-ant-api03-", 40, 62),
        // The first word might be a part of the secret.
        ("aB3-dE6hIj9LmN0pQrStUvWxYz", "", 26, 62),
        ("3f9c2b7a1e5d8046aa17c3e9b2f4d681", "", 32, 16),
        ("AKIAIOSFODNN7EXAMPLE", "", 26, 36),
        ("short", "", 26, 36),
        ("--x", "", 26, 36),
    ])
    func keepsWordsLengthAndCharacters(secret: String, prefix: String, count: Int, alphabet: Int) {
        let shape = shape(secret)
        #expect(String(decoding: shape.prefix, as: UTF8.self) == prefix)
        #expect(shape.randomCount == count)
        #expect(shape.alphabet.count == alphabet)
    }

    @Test func nobodyGuessesIt() {
        for secret in ["ghp_0", "3f9c2b7a1e5d8046aa17c3e9b2f4d681", "ABCDEFGH", ""] {
            let shape = shape(secret)
            var bits = 0.0
            var combinations = Double(shape.alphabet.count)
            while combinations >= 2 { (combinations, bits) = (combinations / 2, bits + 1) }
            #expect(bits * Double(shape.randomCount) >= Double(PlaceholderShape.bitsMin))
        }
    }

    @Test func thePrefixOfTheConfigurationCounts() {
        #expect(String(decoding: shape("Ab-cdef", prefix: "tok.").prefix, as: UTF8.self) == "tok.")
    }

    @Test func allCharactersAreAsLikely() {
        let shape = shape("AKIAIOSFODNN7EXAMPLE")
        var next: UInt8 = 0
        var counts: [UInt8: Int] = [:]
        for _ in 0..<1000 {
            for byte in shape.make(randomByte: {
                next &+= 1; return next
            }) { counts[byte, default: 0] += 1 }
        }
        #expect(counts.count == 36)
        #expect(counts.values.max()! - counts.values.min()! < 30)
    }
}

@Suite("placeholders: the book") struct PlaceholderBookTests {
    @Test func revokesByEachSelection() throws {
        let cases: [(PlaceholderBook.Selection, [String])] = [
            (.id("p1"), ["p1"]), (.text(other), ["p2"]), (.credential("forge", job: nil), ["p1"]),
            (.credential("forge", job: "x"), []), (.credential("model", job: "nightly"), ["p2"]),
            (.job("nightly"), ["p2"]), (.id("p3"), []),
        ]
        for (selection, ids) in cases {
            var book = PlaceholderBook()
            try book.issue(placeholder(), now: now)
            try book.issue(
                Placeholder(
                    id: "p2", text: other, credential: "model", job: "nightly", issuedAt: now.wallTime, endsAt: nil),
                now: now)
            #expect(book.revoke(selection, now: now).map(\.id) == ids)
            #expect(book.revoke(selection, now: now).isEmpty)
            #expect(book.placeholders.filter { !$0.holds(at: now) }.map(\.id) == ids)
        }
    }

    @Test func holdsUntilItsEnd() {
        let one = placeholder(endsAt: ending)
        #expect(one.holds(at: now.later(-1)))
        #expect(!one.holds(at: now))
        // The clock was set back by a day, and forward by a day.
        let day = Seconds(86_400)
        let hour = placeholder(endsAt: Expiry(after: Seconds(3600), from: now))
        #expect(hour.holds(at: now.later(3599, clockAhead: Seconds(-86_400))))
        #expect(!hour.holds(at: now.later(3600, clockAhead: Seconds(-86_400))))
        #expect(!hour.holds(at: now.later(1, clockAhead: day)))
    }

    @Test func forgetsTheEndedAfterADay() throws {
        var book = PlaceholderBook([placeholder(endsAt: ending)])
        let next = Placeholder(id: "n", text: other, credential: "model", job: nil, issuedAt: now.wallTime, endsAt: nil)
        try book.issue(next, now: now.later(86_399))
        #expect(book.placeholders.count == 2)
        try book.issue(next, now: now.later(86_400))
        #expect(book.placeholders.map(\.id) == ["n", "n"])
    }

    @Test func isBounded() throws {
        var book = PlaceholderBook([Placeholder](repeating: placeholder(), count: PlaceholderBook.countMax))
        #expect(throws: PlaceholderBook.Failure.full) { try book.issue(placeholder(), now: now) }
    }
}

@Suite("placeholders: found in every encoding") struct PlaceholderScannerTests {
    private func findings(in pieces: [[UInt8]], _ index: PlaceholderIndex = index) -> [String] {
        var scanner = PlaceholderScanner()
        var found: [String] = []
        for piece in pieces {
            var offset = 0
            while let position = scanner.next(in: piece.span, from: &offset, index) {
                found.append(index.placeholders[position].credential)
            }
            #expect(offset == piece.count)
        }
        return found
    }

    private static func percent(_ text: [UInt8], where isEncoded: (Int) -> Bool, lower: Bool = false) -> [UInt8] {
        text.enumerated().flatMap { index, byte -> [UInt8] in
            guard isEncoded(index) else { return [byte] }
            let digits = String(byte, radix: 16, uppercase: !lower)
            return Array("%\(digits)".utf8)
        }
    }

    private static let encodings: [(String, [UInt8])] = {
        let plain = String(decoding: text, as: UTF8.self)
        var list: [(String, [UInt8])] = [
            ("raw", text),
            ("percent, all", percent(text) { _ in true }),
            ("percent, lower case", percent(text, where: { _ in true }, lower: true)),
            ("percent, every other", percent(text) { $0 % 2 == 0 }),
            ("percent, the last", percent(text) { $0 == text.count - 1 }),
            ("JSON, all", text.flatMap { Array("\\u00".utf8) + Array(String($0, radix: 16).utf8) }),
            ("JSON, the first", Array("\\u0067".utf8) + text.dropFirst()),
            ("behind a percent that is none", Array("100%".utf8) + text),
            ("behind a backslash", Array("\\".utf8) + text),
            ("behind half an escape", Array("\\u00".utf8) + text),
            ("behind two percents", Array("%%".utf8) + text),
        ]
        for (number, front) in ["", "x", "xy", "user:", "a:b:"].enumerated() {
            let pair = Array((front + plain).utf8)
            list.append(("base64 \(number)", encodeBase64(pair)))
            list.append(("base64 with more \(number)", encodeBase64(pair + Array("@host".utf8))))
            list.append(("base64, percent \(number)", percent(encodeBase64(pair)) { _ in true }))
            let safe = encodeBase64(pair).map { $0 == 0x2B ? UInt8(0x2D) : $0 == 0x2F ? 0x5F : $0 }
            list.append(("base64url \(number)", safe.filter { $0 != 0x3D }))
        }
        return list
    }()

    @Test(arguments: encodings) func finds(name: String, bytes: [UInt8]) {
        #expect(findings(in: [bytes]) == ["forge"])
        #expect(findings(in: [Array("{\"a\": \"".utf8) + bytes + Array("\"}".utf8)]) == ["forge"])
    }

    @Test(arguments: encodings) func findsAcrossEveryBorder(name: String, bytes: [UInt8]) {
        for border in 0...bytes.count {
            #expect(findings(in: [Array(bytes[..<border]), Array(bytes[border...])]) == ["forge"])
        }
        #expect(findings(in: bytes.map { [$0] }) == ["forge"])
    }

    @Test func findsEachOfSeveral() {
        #expect(findings(in: [text + other + text]) == ["forge", "model", "forge"])
        #expect(findings(in: [text + text]) == ["forge", "forge"])
    }

    @Test func findsNothingElse() {
        let almost = text.dropLast() + [UInt8(ascii: "x")]
        for bytes in [
            Array(almost), Array(text.dropLast()), Array(text.reversed()), [], Array("%".utf8), Array("\\u".utf8),
        ] {
            #expect(findings(in: [bytes]).isEmpty)
        }
        #expect(findings(in: [text], PlaceholderIndex()).isEmpty)
        var random = SystemRandomNumberGenerator()
        #expect(findings(in: [(0..<100_000).map { _ in UInt8.random(in: 0...255, using: &random) }]).isEmpty)
    }

    @Test func findsAmongThousands() {
        let many = (0..<3000).map { number in
            placeholder(
                Array("t_\(String(UInt64(number) &* 0x9E37_79B9_7F4A_7C15, radix: 36))ABCDEFGHIJ\(number + 1000)".utf8),
                "\(number)")
        }
        let index = PlaceholderIndex(many)
        for number in [0, 1, 1499, 2999] { #expect(findings(in: [many[number].text], index) == ["\(number)"]) }
    }
}

@Suite("placeholders: where they are replaced") struct PlaceholderExaminationTests {
    private static let plain = String(decoding: text, as: UTF8.self)
    private static let secret = Secret("real/secret+1")

    private func verdict(
        _ fields: [(String, String)], target: String = "/", at time: Moment = now,
        _ places: PlaceholderPlaces? = PlaceholderPlaces(), _ index: PlaceholderIndex = index
    ) -> Result<PlaceholderUse.Change?, PlaceholderFault> {
        let examination = PlaceholderExamination(makeFields(fields), target: Array(target.utf8)[...], index)
        do throws(PlaceholderFault) {
            return .success(try examination.use(places, now: time)?.change(to: Self.secret))
        } catch {
            return .failure(error)
        }
    }

    private func fault(
        _ fields: [(String, String)], target: String = "/", _ places: PlaceholderPlaces? = PlaceholderPlaces()
    ) -> String? {
        if case .failure(let fault) = verdict(fields, target: target, places) { fault.text } else { nil }
    }

    private static let authorizations: [(String, String)] = [
        ("Bearer \(plain)", "Bearer real/secret+1"),
        ("token \(plain)", "token real/secret+1"),
        ("Bearer   \(plain)", "Bearer real/secret+1"),
        (plain, "real/secret+1"),
        ("Basic " + base64("user:\(plain)"), "Basic " + base64("user:real/secret+1")),
        ("basic " + base64("\(plain):x-oauth-basic"), "Basic " + base64("real/secret+1:x-oauth-basic")),
        ("Basic " + base64("\(plain):"), "Basic " + base64("real/secret+1:")),
    ]

    @Test(arguments: authorizations) func inAuthorization(value: String, sent: String) {
        #expect(verdict([("Authorization", value)]) == .success(.authorization(Secret(sent))))
    }

    private static func base64(_ text: String) -> String {
        String(decoding: encodeBase64(Array(text.utf8)), as: UTF8.self)
    }

    private static let others: [String] = [
        "Bearer x\(plain)", "Bearer \(plain)x", "Digest username=\"\(plain)\"", "Basic " + base64("a:b\(plain)"),
        "Bearer " + base64(plain), "Basic " + base64(plain), "Bearer %67" + plain.dropFirst(),
    ]

    @Test(arguments: others) func notAsAPartOfSomethingElse(value: String) {
        #expect(
            fault([("Authorization", value)])
                == "the placeholder of the credential forge stands in the field Authorization, where it is not replaced"
        )
    }

    @Test func inListedPlaces() {
        var places = PlaceholderPlaces()
        places.fields = ["X-Api-Key"]
        places.query = ["key"]
        #expect(
            verdict([("x-api-key", "v1 \(Self.plain)!")], places)
                == .success(.field(name: Array("x-api-key".utf8), Secret("v1 real/secret+1!"))))
        #expect(
            verdict([], target: "/a?x=1&key=\(Self.plain)&y=2", places)
                == .success(.target(Secret("/a?x=1&key=real%2Fsecret%2B1&y=2"))))
        #expect(
            fault([], target: "/a?other=\(Self.plain)", places)
                == "the placeholder of the credential forge stands in the target, where it is not replaced")
        #expect(fault([], target: "/bot\(Self.plain)/send", places) != nil)
        places.path = true
        #expect(
            verdict([], target: "/a/\(Self.plain)/b?key=1", places)
                == .success(.target(Secret("/a/real%2Fsecret%2B1/b?key=1"))))
        #expect(fault([], target: "/bot\(Self.plain)/send", places) != nil)
    }

    @Test(arguments: [
        "User-Agent", "Referer", "Cookie", "X-Request-Id", "Traceparent", "Accept", "If-None-Match", "X-Other", "From",
    ])
    func nowhereElse(name: String) {
        #expect(
            fault([(name, "a \(Self.plain) b")])
                == "the placeholder of the credential forge stands in the field \(name), where it is not replaced")
    }

    @Test func notAtAnotherHost() {
        #expect(
            fault([("Authorization", "Bearer \(Self.plain)")], nil)
                == "the placeholder of the credential forge was sent to where that credential does not belong")
    }

    @Test func onlyOnce() {
        let more: [[(String, String)]] = [
            [("X-Other", Self.plain)], [("Authorization", "Bearer \(Self.plain)")],
            [("Cookie", String(decoding: other, as: UTF8.self))], [(Self.plain, "as the name of a field")],
        ]
        for lines in more {
            #expect(
                fault([("Authorization", "Bearer \(Self.plain)")] + lines)
                    == "the request contains the placeholder of the credential forge more than once")
        }
        #expect(fault([("Authorization", "Bearer \(Self.plain)")], target: "/?q=\(Self.plain)") != nil)
    }

    @Test func notInTheNameOfAField() {
        #expect(fault([(Self.plain, "x")]) != nil)
    }

    @Test func notAfterItsEnd() {
        let ended = PlaceholderIndex([placeholder(endsAt: ending)])
        let revoked = PlaceholderIndex([placeholder(isRevoked: true)])
        let lines = [("Authorization", "Bearer \(Self.plain)")]
        #expect(verdict(lines, at: now.later(-1), PlaceholderPlaces(), ended) != .success(nil))
        guard case .failure(let fault) = verdict(lines, PlaceholderPlaces(), ended) else { Issue.record(); return }
        #expect(fault.text == "the placeholder of the credential forge has expired")
        guard case .failure(let fault) = verdict(lines, PlaceholderPlaces(), revoked) else { Issue.record(); return }
        #expect(fault.text == "the placeholder of the credential forge was revoked")
    }

    @Test func whatIsForLarderItselfIsNotExamined() {
        #expect(verdict([("Proxy-Authorization", "Bearer \(Self.plain)")]) == .success(nil))
    }

    /// Why a request is refused that has to have no credential of its own. Nil: it is not.
    private func ownCredential(_ fields: [(String, String)], target: String = "/", isRequired: Bool = true) -> String? {
        var places = PlaceholderPlaces()
        places.isRequired = isRequired
        places.fields = ["X-Mine"]
        places.query = ["mine"]
        let examination = PlaceholderExamination(makeFields(fields), target: Array(target.utf8)[...], index)
        do throws(PlaceholderFault) {
            let use = try examination.use(places, now: now)
            try examination.requirePlaceholder(places, credential: "forge", beside: use)
            return nil
        } catch {
            return error.text
        }
    }

    @Test func credentialsOfTheClientsOwnAreRefusedIfAskedFor() {
        #expect(
            ownCredential([("Authorization", "Bearer attacker")])
                == "the field Authorization holds a credential of the client's own, and only placeholders of the credential forge are allowed here"
        )
        for name in ["Cookie", "X-API-Key", "PRIVATE-TOKEN", "x-mine"] {
            #expect(ownCredential([(name, "x")]) != nil)
        }
        for query in ["access_token", "mine", "%61ccess_token", "X-Amz-Signature"] {
            #expect(ownCredential([], target: "/a?b=c&\(query)=x") != nil)
        }
        #expect(ownCredential([("Accept", "*/*")], target: "/a?page=2") == nil)
        // Larder keeps it for itself.
        #expect(ownCredential([("Proxy-Authorization", "Basic YTpi")]) == nil)
        #expect(ownCredential([("Authorization", "Bearer attacker")], isRequired: false) == nil)
    }

    @Test func noneGoesAlongWithAPlaceholder() {
        let good = ("Authorization", "Bearer \(Self.plain)")
        #expect(ownCredential([good]) == nil)
        for (name, value) in [
            ("Cookie", "session=own"), ("X-API-Key", "own"), ("x-mine", "own"), ("Authorization", "own"),
        ] {
            #expect(ownCredential([good, (name, value)]) != nil, "\(name)")
            #expect(ownCredential([(name, value), good]) != nil, "\(name)")
        }
        #expect(ownCredential([good], target: "/a?access_token=own") != nil)
        #expect(ownCredential([("X-Mine", Self.plain), ("Authorization", "Bearer own")]) != nil)
        #expect(ownCredential([], target: "/a?mine=\(Self.plain)") == nil)
        #expect(ownCredential([], target: "/a?mine=\(Self.plain)&mine=own") != nil)
        #expect(ownCredential([], target: "/a?mine=own&mine=\(Self.plain)") != nil)
    }

    @Test(arguments: [
        ("Authorization", "Basic " + base64("\(plain):x-oauth-basic"), true),
        ("Authorization", "Basic " + base64("\(plain):"), true),
        ("Authorization", "Basic " + base64("git:\(plain)"), true),
        ("Authorization", "Basic " + base64("\(plain):own-token"), false), ("X-Mine", plain, true),
        ("X-Mine", "Bearer \(plain)", true), ("X-Mine", "\(plain), own", false), ("X-Mine", "own, \(plain)", false),
    ])
    func norWithinItsField(name: String, value: String, isAllowed: Bool) {
        #expect((ownCredential([(name, value)]) == nil) == isAllowed)
    }

    @Test(arguments: [
        ("User-Agent", true), ("referer", true), ("X-Forwarded-For", true), ("Accept-Language", true),
        ("if-match", true),
        ("Sec-CH-UA", true), ("Content-Type", true), ("Authorization", true), ("X-Api-Key", false),
        ("Private-Token", false),
    ])
    func fieldsThatServersShowAreExcluded(name: String, isExcluded: Bool) {
        #expect(PlaceholderPlaces.isExcluded(field: name) == isExcluded)
    }
}

@Suite("placeholders: in bodies") struct PlaceholderBodyTests {
    private static let plain = String(decoding: text, as: UTF8.self)
    private static let places: PlaceholderPlaces = {
        var places = PlaceholderPlaces()
        places.json = [["auth", "token"], ["key"]]
        places.form = ["client_secret"]
        return places
    }()

    private func replaced(_ body: String, _ form: MemberSyntax, secret: String = "re\"al &\\") -> String {
        do throws(PlaceholderFault) {
            let found = try PlaceholderBody(
                Array(body.utf8), form, Self.places, credential: "forge", index, now: now)
            return found.map { String(decoding: $0.replacing(by: Secret(secret)), as: UTF8.self) } ?? "none"
        } catch {
            return error.text
        }
    }

    private static let texts: [(String, String)] = [
        (#"{"auth": {"token": "\#(plain)", "x": 1}}"#, #"{"auth": {"token": "re\"al &\\", "x": 1}}"#),
        (
            #"{ "a":[1,{"key":"no"}], "key" : "\u0067\#(plain.dropFirst())" }"#,
            #"{ "a":[1,{"key":"no"}], "key" : "re\"al &\\" }"#
        ),
        (#"{"key": "x"}"#, "none"),
    ]

    @Test(arguments: texts)
    func ofJSON(body: String, sent: String) { #expect(replaced(body, .json) == sent) }

    @Test func ofForms() {
        #expect(replaced("a=b&client_secret=\(Self.plain)&c", .form) == "a=b&client_secret=re%22al%20%26%5C&c")
        #expect(replaced("client%5Fsecret=%67\(Self.plain.dropFirst())", .form) == "client%5Fsecret=re%22al%20%26%5C")
    }

    private static let elsewhere: [String] = [
        #"{"other": "\#(plain)"}"#, #"{"token": "\#(plain)"}"#, #"{"auth": {"token": "x\#(plain)"}}"#,
        #"{"auth": {"token": ["\#(plain)"]}}"#, #"{"auth": {"token": {"token": "\#(plain)"}}}"#, "no JSON: \(plain)",
        #"{"\#(plain)": 1}"#, #"{"key": "\#(plain)"} x"#,
    ]

    @Test(arguments: elsewhere) func nowhereElse(body: String) {
        #expect(
            replaced(body, .json)
                == "the placeholder of the credential forge stands in the body, where it is not replaced")
    }

    @Test func onlyOnce() {
        #expect(
            replaced(#"{"key": "\#(Self.plain)", "auth": {"token": "\#(Self.plain)"}}"#, .json)
                == "the request contains the placeholder of the credential forge more than once")
    }

    @Test func onlyOfTheCredential() {
        #expect(replaced(#"{"key": "\#(String(decoding: other, as: UTF8.self))"}"#, .json).contains("does not belong"))
    }

    @Test(
        arguments: [
            ("application/json", MemberSyntax.json), ("application/problem+json; charset=utf-8", .json),
            ("Application/X-WWW-Form-Urlencoded;charset=utf-8", .form), ("text/json", .json), ("text/plain", nil),
            (nil, nil),
        ] as [(String?, MemberSyntax?)])
    func byType(type: String?, syntax: MemberSyntax?) {
        let types = [type].compactMap { $0.map { Array($0.utf8)[...] } }
        #expect(PlaceholderBody.syntax(types: types, Self.places) == syntax)
        #expect(PlaceholderBody.syntax(types: types, PlaceholderPlaces()) == nil)
        #expect(PlaceholderBody.syntax(types: types + types + [[0x78]], Self.places) == nil)
    }
}

@Suite("placeholders: the secret in what comes back") struct SecretMaskTests {
    private static let secret = Secret("ghp_realSecret/with+signs\"0123456789abcd")
    private static let standIn = Array("ghp_Vw2Kd8sLq0ZxCv5Bn7Mj3Hg6Tf9RyUe1IoPa".utf8)

    private func masked(_ pieces: [[UInt8]], standIn: [UInt8]? = standIn) -> String {
        var mask = SecretMask(Self.secret, standIn: standIn)
        let bytes = pieces.flatMap { mask.take($0) } + mask.finish()
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func showsThePlaceholder() throws {
        try #require(Self.standIn.count == Self.secret.bytes.count)
        let body = Array("a ".utf8) + Self.secret.bytes + Array(" b ".utf8) + Self.secret.bytes
        let expected =
            "a \(String(decoding: Self.standIn, as: UTF8.self)) b \(String(decoding: Self.standIn, as: UTF8.self))"
        #expect(masked([body]) == expected)
        for border in 0...body.count {
            #expect(masked([Array(body[..<border]), Array(body[border...])]) == expected)
        }
        #expect(masked(body.map { [$0] }) == expected)
    }

    @Test func keepsTheLengthIfThePlaceholderHasAnother() {
        #expect(masked([Self.secret.bytes], standIn: [0x41]) == String(repeating: "*", count: Self.secret.bytes.count))
        #expect(masked([Self.secret.bytes], standIn: nil) == String(repeating: "*", count: Self.secret.bytes.count))
    }

    @Test func hidesEncodings() {
        let plain = String(decoding: Self.secret.bytes, as: UTF8.self)
        let encodings = [
            "ghp_realSecret%2Fwith%2Bsigns%220123456789abcd", "ghp_realSecret%2fwith%2bsigns%220123456789abcd",
            #"ghp_realSecret/with+signs\"0123456789abcd"#, #"ghp_realSecret\/with+signs\"0123456789abcd"#,
        ]
        for text in encodings {
            #expect(masked([Array("<\(text)>".utf8)]) == "<\(String(repeating: "*", count: text.utf8.count))>")
        }
        for front in ["", "x", "xy", "user:"] {
            let text = encodeBase64(Array((front + plain).utf8))
            let shown = masked([text])
            #expect(shown.utf8.count == text.count)
            #expect(shown.filter { $0 == "*" }.count >= text.count - 12)
        }
    }

    @Test func leavesEverythingElse() {
        for text in ["ghp_", "ghp_realSecret", "", "a ghp_realSecret/with+signs\"0123456789abc b"] {
            #expect(masked([Array(text.utf8)]) == text)
            #expect(masked(text.utf8.map { [$0] }) == text)
        }
    }

    @Test func showsTheBasicCredentialsOfTheClient() throws {
        let plain = String(decoding: Self.standIn, as: UTF8.self)
        let index = PlaceholderIndex([placeholder(Self.standIn)])
        let own = encodeBase64(Array("user:\(plain)".utf8))
        let fields = makeFields([("Authorization", "Basic \(String(decoding: own, as: UTF8.self))")])
        let use = try PlaceholderExamination(fields, target: [], index).use(PlaceholderPlaces(), now: now)
        guard let use, case .authorization(let sent) = use.change(to: Self.secret) else { Issue.record(); return }
        var mask = use.mask(Self.secret, showsPlaceholder: true)
        #expect(mask.apply(to: sent.bytes) == Array("Basic ".utf8) + own)
    }
}

@Suite("placeholders: new secrets in answers") struct RenewedSecretsTests {
    private static let listed = [
        PlaceholderRenewal(member: ["refresh_token"], credential: "refresh"),
        PlaceholderRenewal(member: ["data", "access"], credential: "forge"),
    ]

    private func shown(
        _ body: String, _ syntax: MemberSyntax = .json, with placeholder: String = "PPPPPPPPPPPP",
        keepingLength: Bool = true
    ) -> String {
        do throws(RenewedSecrets.Fault) {
            let renewed = try RenewedSecrets(Array(body.utf8), syntax, Self.listed)
            let placeholders = renewed.renewals.map { _ in Array(placeholder.utf8) }
            return String(
                decoding: try renewed.body(with: placeholders, keepingLength: keepingLength), as: UTF8.self)
        } catch {
            return error.text
        }
    }

    private static let rows: [(body: String, shown: String)] = [
        (#"{"refresh_token":"0123456789ab"}"#, #"{"refresh_token":"PPPPPPPPPPPP"}"#),
        (
            #"{"a":1,"data":{"access":"0123456789ab\/c"},"b":[]}"#,
            #"{"a":1,"data":{"access":"PPPPPPPPPPPP"   },"b":[]}"#
        ),
        (
            #"{"data":{"access":"0123456789ab"},"refresh_token":"0123456789cd"}"#,
            #"{"data":{"access":"PPPPPPPPPPPP"},"refresh_token":"PPPPPPPPPPPP"}"#
        ),
        // Not the members that are listed.
        (#"{"access":"0123456789ab","data":{"refresh_token":"0123456789ab"}}"#, ""),
        (#"{"refresh_token":12345678,"data":["0123456789ab"]}"#, ""),
        (#"{"error":"invalid_grant"}"#, ""), ("no JSON", ""), ("", ""),
        (#"{"refresh_token":"short"}"#, "refresh_token has fewer than 8 characters, or some that no field can have"),
        (
            #"{"refresh_token":"0123\r\n6789ab"}"#,
            "refresh_token has fewer than 8 characters, or some that no field can have"
        ),
        (
            #"{"refresh_token":"0123456789a"}"#,
            "the placeholder for refresh_token is not as long as the secret, and the length has been announced"
        ),
    ]

    @Test(arguments: rows) func ofJSON(body: String, shown expected: String) {
        #expect(shown(body) == (expected.isEmpty ? body : expected))
    }

    @Test func whereTheLengthIsNotAnnouncedAPlaceholderMayBeLonger() {
        #expect(
            shown(#"{"refresh_token":"0123456789a"}"#, keepingLength: false) == #"{"refresh_token":"PPPPPPPPPPPP"}"#)
    }

    @Test func ofForms() {
        #expect(shown("a=b&data.access=0123456789%61b", .form, keepingLength: false) == "a=b&data.access=PPPPPPPPPPPP")
        #expect(shown("refresh_token=0123456789ab&x", .form) == "refresh_token=PPPPPPPPPPPP&x")
        // A form has no white space to make up for a difference.
        #expect(
            shown("refresh_token=0123456789abc", .form)
                == "the placeholder for refresh_token is not as long as the secret, and the length has been announced")
    }

    @Test func saysWhoseTheSecretsAre() throws {
        let renewed = try RenewedSecrets(
            Array(#"{"data":{"access":"0123456789ab"},"refresh_token":"0123456789cd"}"#.utf8), .json, Self.listed)
        #expect(renewed.renewals.map(\.credential) == ["forge", "refresh"])
        #expect(renewed.renewals.map(\.secret) == [Secret("0123456789ab"), Secret("0123456789cd")])
    }
}
