import Access
import Learning
import Message
import Rules
import Testing

@Suite("Learning: the rules as text")
struct RuleTextTests {
    private func example() throws -> Journal {
        var journal = Journal(
            [
                Observation(try request("models.example", port: 443, method: .connect), .allowed, isOpened: true),
                Observation(
                    try request("models.example", "/v1/messages", port: 443, method: .post), .allowed,
                    requestBytes: 2000, responseBytes: 1_300_000, credential: "models"),
                Observation(try request("evil.example", "/x\"y\\z"), .denied(.noRule, rule: nil)),
            ], scope: JobScope(client: AddressRange("10.2.0.17")))
        journal.run([
            Observation(try request("mirror.example.org", "/a"), .allowed),
            Observation(try request("mirror.example.org", "/b"), .allowed),
            Observation(try request("mirror.example.org", "/c"), .allowed),
        ])
        return journal
    }

    @Test func `hosts, ports, methods and paths, and what they rest on`() throws {
        #expect(
            try example().yaml == """
                # Job nightly, 2 runs of client 10.2.0.17, 6 requests.
                access:
                  default: deny
                  rules:
                    # seen in 1 of 2 runs, 3 requests; at most 0 B sent and 0 B received
                    - allow:
                        host: [ "mirror.example.org" ]
                        port: [ 80 ]
                        method: [ GET ]
                        path:
                          - "/a"
                          - "/b"
                          - "/c"
                        client: [ "10.2.0.17" ]
                    # seen in 1 of 2 runs, 1 request; at most 0 B sent and 0 B received
                    - allow: { host: [ "models.example" ], port: [ 443 ], method: [ CONNECT ], client: [ "10.2.0.17" ], intercept: yes }
                    # seen in 1 of 2 runs, 1 request; at most 1.9 KiB sent and 1.2 MiB received; credential models
                    - allow: { host: [ "models.example" ], port: [ 443 ], method: [ POST ], path: [ "/v1/messages" ], client: [ "10.2.0.17" ] }
                    # Denied meanwhile. Only who needs these has to take the marks away:
                    # seen in 1 of 2 runs, 1 request, denied by default: no-rule
                    # - allow: { host: [ "evil.example" ], port: [ 80 ], method: [ GET ], path: [ "/x\\"y\\\\z" ], client: [ "10.2.0.17" ] }

                """)
    }

    @Test func `the order of the observations does not matter`() throws {
        let observations = try (0..<300).map { index in
            Observation(
                try request("h\(index % 7).example.org", "/d\(index % 3)/f\(index)", port: UInt16(80 + index % 2)),
                .allowed)
        }
        var generator = SeededGenerator(seed: 7)
        let text = Journal(observations).yaml
        for _ in 0..<5 { #expect(Journal(observations.shuffled(using: &generator)).yaml == text) }
    }

    @Test func `without requests nothing is allowed`() throws {
        let settings = try accessRules(Journal([]).yaml)
        #expect(settings.rules == [])
        #expect(settings.defaultEffect == .deny)
    }

    @Test func `a journal survives its file`() throws {
        var journal = try example()
        journal.run([
            Observation(
                try request("internal.example", "/%41\u{9}b", user: "a\tb"), .allowed,
                addresses: [try #require(AddressRange("10.20.0.0/16"))]),
            Observation(try request("[fd00::1]", "/v6", port: 8080), .allowed),
            Observation(try request("a.example.org", "/../x"), .allowed),
        ])
        let read = try #require(JournalFile.journal(from: JournalFile.text(of: journal)))
        #expect(read == journal)
        #expect(read.yaml == journal.yaml)
    }

    @Test(arguments: [
        "9223372036854775807", "9007199254740992", "9223372036854775808", "999999999999999999999999999999", "-1", "1.0",
        "1e3", "",
    ]) func `a count to which nothing can be added is damage`(_ number: String) throws {
        let text = String(decoding: JournalFile.text(of: try example()), as: UTF8.self)
        let lines = text.split(separator: "\n").map { $0.split(separator: "\t", omittingEmptySubsequences: false) }
        for (index, line) in lines.enumerated() {
            let counts: [Int] =
                switch line[0] {
                case "left-out": [1]
                case "run": [3]
                case "needed", "denied": [8, 9, 10]
                default: []
                }
            for place in counts {
                var damaged = lines
                damaged[index][place] = Substring(number)
                let text = damaged.map { $0.joined(separator: "\t") + "\n" }.joined()
                #expect(JournalFile.journal(from: Array(text.utf8)) == nil, "\(line[0]) \(place)")
            }
        }
    }

    @Test func `a file that is damaged is not read`() throws {
        let text = JournalFile.text(of: try example())
        for length in stride(from: 0, to: text.count, by: 13) {
            #expect(JournalFile.journal(from: Array(text[..<length])) == nil)
        }
        let without = text.split(separator: 0x0A).enumerated().filter { $0.offset != 5 }.map(\.element)
        #expect(JournalFile.journal(from: Array(without.joined(separator: [0x0A])) + [0x0A]) == nil)
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<500 {
            var damaged = text
            damaged[Int.random(in: damaged.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            _ = JournalFile.journal(from: damaged)
        }
    }
}

@Suite("Learning: the difference to the rules in force")
struct DifferenceTests {
    private func difference(_ yaml: String, _ observations: [Observation]) throws -> Difference {
        let settings = try accessRules(yaml)
        return Difference(
            of: Journal(observations), from: AccessPolicy(from: settings), rules: settings.rules)
    }

    private let yaml = """
        access:
          rules:
            - allow: { host: a.example, path: [ "/x" ] }
            - allow: { host: b.example }
            - deny: { host: c.example }
            - allow: { address: [ 10.0.0.0/8 ] }
        """

    @Test func `rules that nothing needed are superfluous, and deny rules never are`() throws {
        let found = try difference(yaml, [Observation(try request("a.example", "/x"), .allowed)])
        #expect(found.missing == [])
        // The address of a.example is of no interest: the first rule decides.
        #expect(found.superfluous == [2, 4])
    }

    @Test func `what the rules deny now is missing`() throws {
        let found = try difference(
            yaml,
            [
                Observation(try request("a.example", "/other"), .permitted),
                Observation(try request("b.example"), .allowed),
            ])
        // The rule about addresses may allow it.
        #expect(found.missing == [])
        let closed = try difference(
            "access: { rules: [ { allow: { host: b.example } } ] }",
            [
                Observation(try request("a.example", "/other"), .permitted),
                Observation(try request("b.example"), .allowed),
            ])
        #expect(closed.missing.map { "\($0.conditions.hosts[0])" } == ["a.example"])
        #expect(closed.superfluous == [])
    }

    @Test func `what was denied is shown as long as it would be denied again`() throws {
        let observation = Observation(try request("d.example"), .denied(.noRule, rule: nil))
        let rules = "access: { rules: [ { allow: { host: b.example } } ] }"
        #expect(try difference(rules, [observation]).denied.count == 1)
        #expect(try difference("access: { rules: [ { allow: { host: d.example } } ] }", [observation]).denied == [])
    }
}
