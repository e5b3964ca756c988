import Access
import Learning
import Message
import Rules
import Testing

@Suite("Learning: what a journal keeps")
struct JournalTests {
    @Test func `a rule names host, port, method and path, and nothing else`() throws {
        let journal = Journal([Observation(try request("mirror.example.org", "/pool/a.deb?x=1"), .allowed)])
        #expect(journal.summary == ["mirror.example.org:80 GET /pool/a.deb"])
        let rule = try #require(journal.neededRules.first)
        #expect(rule.conditions.users == [])
        #expect(rule.conditions.clients == [])
        #expect(rule.intercept == nil)
    }

    @Test func `the client and the user of the job are conditions of its rules`() throws {
        let client = try #require(AddressRange("10.2.0.17"))
        let journal = Journal(
            [Observation(try request("a.example.org", user: "builder"), .allowed)],
            scope: JobScope(client: client, user: "builder"))
        #expect(journal.neededRules.first?.conditions.clients == [client])
        #expect(journal.neededRules.first?.conditions.users == ["builder"])
    }

    @Test func `methods with the same paths share a rule, others do not`() throws {
        let journal = Journal([
            Observation(try request("a.example.org", "/x"), .allowed),
            Observation(try request("a.example.org", "/x", method: .head), .allowed),
            Observation(try request("a.example.org", "/y", method: .post), .allowed),
        ])
        #expect(journal.summary == ["a.example.org:80 GET,HEAD /x", "a.example.org:80 POST /y"])
    }

    @Test func `a tunnel that stayed one needs CONNECT, an opened one needs it opened`() throws {
        let tunnel = try request("a.example.org", port: 443, method: .connect)
        #expect(Journal([Observation(tunnel, .allowed)]).neededRules.first?.intercept == nil)
        let opened = Journal([
            Observation(tunnel, .allowed, isOpened: true),
            Observation(try request("a.example.org", "/v1", port: 443, method: .post), .allowed),
        ])
        #expect(opened.neededRules.map(\.intercept) == [true, nil])
        #expect(opened.summary == ["a.example.org:443 CONNECT", "a.example.org:443 POST /v1"])
        let both = Journal([Observation(tunnel, .allowed, isOpened: true), Observation(tunnel, .allowed)])
        #expect(both.neededRules.first?.intercept == nil)
    }

    @Test func `the end of a tunnel adds its bytes and no request`() throws {
        let tunnel = try request("a.example.org", port: 443, method: .connect)
        let journal = Journal([
            Observation(tunnel, .allowed),
            Observation(tunnel, .allowed, isEndOfTunnel: true, requestBytes: 10, responseBytes: 2000),
        ])
        let evidence = try #require(journal.neededRules.first?.evidence)
        #expect(evidence.requests == 1)
        #expect(evidence.requestBytesMax == 10)
        #expect(evidence.responseBytesMax == 2000)
        #expect(journal.runs.last?.requests == 1)
    }

    @Test func `rules count the runs in which they were needed`() throws {
        let always = Observation(try request("a.example.org", "/always"), .allowed, credential: "forge")
        let once = Observation(try request("b.example.org", "/once"), .allowed, requestBytes: 7, responseBytes: 9)
        var journal = Journal([always, always])
        journal.run([always, once])
        journal.run([always])
        let evidence = journal.neededRules.map(\.evidence)
        #expect(evidence.map(\.runs) == [3, 1])
        #expect(evidence.map(\.runsMax) == [3, 3])
        #expect(evidence.map(\.requests) == [4, 1])
        #expect(evidence.map(\.credentials) == [["forge"], []])
        #expect(evidence.map(\.requestBytesMax) == [0, 7])
    }

    @Test func `only the latest runs are kept`() throws {
        let early = Observation(try request("early.example.org"), .allowed)
        let late = Observation(try request("late.example.org"), .allowed)
        var journal = Journal([early])
        for _ in 0..<Journal.runsMax { journal.run([late]) }
        #expect(journal.runs.count == Journal.runsMax)
        #expect(journal.summary == ["late.example.org:80 GET /"])
        #expect(journal.neededRules.first?.evidence.runs == Journal.runsMax)
    }

    @Test func `what was denied is not among what is needed`() throws {
        let journal = Journal([
            Observation(try request("a.example.org"), .allowed),
            Observation(try request("evil.example", "/x", method: .post), .denied(.hostNotAllowed, rule: 3)),
            Observation(try request("new.example"), .permitted),
        ])
        #expect(journal.summary == ["a.example.org:80 GET /", "new.example:80 GET /"])
        #expect(journal.deniedRules.map(\.evidence.reason) == [.hostNotAllowed])
        #expect(journal.deniedRules.map(\.evidence.rule) == [3])
        #expect(journal.neededRules.map(\.evidence.permitted) == [0, 1])
    }

    @Test func `the addresses of the rule that allowed a name go with it`() throws {
        let addresses = [try #require(AddressRange("10.20.0.5"))]
        let journal = Journal([
            Observation(try request("internal.example"), .allowed, addresses: addresses)
        ])
        #expect(journal.neededRules.first?.conditions.addresses == addresses)
    }

    @Test(arguments: ["nightly", "a", "build-17.x_y", "9"]) func `names of jobs`(_ name: String) {
        #expect(isJobName(name))
    }

    @Test(arguments: ["", ".hidden", "-x", "a/b", "a b", "ä", "../x", String(repeating: "a", count: 65)])
    func `what is no name of a job`(_ name: String) { #expect(!isJobName(name)) }
}

@Suite("Learning: paths")
struct LearntPathTests {
    private func paths(_ paths: [String], _ recipes: RecipePaths = RecipePaths()) throws -> [String] {
        let journal = Journal(
            try paths.map { Observation(try request("a.example.org", $0), .allowed) }, recipes: recipes)
        return journal.neededRules.flatMap { $0.conditions.paths.map { "\($0)" } }
    }

    @Test func `eight paths in a directory are eight, nine are the directory`() throws {
        let eight = (1...8).map { "/files/\($0)" }
        #expect(try paths(eight) == eight)
        #expect(try paths(eight + ["/files/9"]) == ["/files/*"])
        #expect(try paths(eight + ["/files/9", "/files/10/deep", "/other"]) == ["/files/*", "/other"])
    }

    @Test func `the root never becomes a wildcard, and what does not fit is left out`() throws {
        let observations = try (0..<200).map { Observation(try request("a.example.org", "/\($0)"), .allowed) }
        let journal = Journal(observations)
        #expect(journal.neededRules.first?.conditions.paths.count == 64)
        #expect(journal.leftOut == 136)
        #expect(!journal.yaml.contains("\"/*\""))
        #expect(journal.yaml.contains("# 136 requests left out"))
    }

    @Test func `too many directories join in their deepest common one`() throws {
        let many = (0..<65).map { "/a/\($0 % 5)/\($0)/file" }
        #expect(try paths(many) == (0..<5).map { "/a/\($0)/*" })
        #expect(try paths(many + ["/b/x"]) == (0..<5).map { "/a/\($0)/*" } + ["/b/x"])
    }

    @Test func `a recipe says which part of a path matters`() throws {
        let recipes = RecipePaths([
            recipe("npm", ["*/{package}/-/{file}.tgz"]), recipe("npm", ["/{package}"]),
            recipe("oci", ["/v2/*/manifests/{tag}"]), recipe("python", ["*.{whl|zip}"]),
            recipe("debian", ["*/pool/*.{deb|dsc}"]),
        ])
        #expect(try paths(["/left-pad", "/right-pad"], recipes) == ["/{package}"])
        #expect(try paths(["/left-pad/-/left-pad-1.tgz"], recipes) == ["/{package}/-/{file}.tgz"])
        // What stands for whole segments stays as it was observed.
        #expect(try paths(["/v2/library/tool/manifests/1"], recipes) == ["/v2/library/tool/manifests/{tag}"])
        #expect(try paths(["/mirror/npm/tool/-/tool-1.tgz"], recipes) == ["/mirror/npm/{package}/-/{file}.tgz"])
        #expect(try paths(["/packages/a/b-1.whl"], recipes) == ["/packages/a/*.{whl|zip}"])
        #expect(try paths(["/debian/pool/main/a/a.deb"], recipes) == ["/debian/pool/*.{deb|dsc}"])
        #expect(try paths(["/some/thing/else"], recipes) == ["/some/thing/else"])
    }

    @Test func `a recipe for other hosts or other methods says nothing`() throws {
        let recipes = RecipePaths([recipe("npm", ["/{package}"], methods: ["POST"])])
        #expect(try paths(["/left-pad"], recipes) == ["/left-pad"])
        let other = Journal(
            [Observation(try request("elsewhere.example", "/left-pad"), .allowed)],
            recipes: RecipePaths([recipe("npm", ["/{package}"])]))
        #expect(other.summary == ["elsewhere.example:80 GET /left-pad"])
    }

    @Test func `bytes that a pattern cannot spell stand for one byte each`() throws {
        #expect(try paths(["/a*b"]) == ["/a{byte:1}b"])
        #expect(try paths(["/a{b}"]) == ["/a{byte:1}b{byte:1}"])
        #expect(try paths(["/%7Ea", "/a%2fb"]) == ["/%7Ea", "/a%2fb"])
    }

    @Test(arguments: ["/a/../b", "/a/%2e%2e/b", "/./x", "/x/..;y/z"])
    func `no rule is made for paths that origins resolve`(_ path: String) throws {
        let journal = Journal([Observation(try request("a.example.org", path), .allowed)])
        #expect(journal.neededRules == [])
        #expect(journal.leftOut == 1)
    }

    @Test func `places are bounded`() throws {
        let journal = Journal(try (0..<600).map { Observation(try request("h\($0).example.org"), .allowed) })
        #expect(journal.needed.places.count == 512)
        #expect(journal.leftOut == 88)
    }
}
