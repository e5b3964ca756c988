import Access
import EventLoop
import Foundation
import Learning
import Message
import Passwords
import Routing
import Origins
import Rules
import Server
import Settings
import Storage
import TLS
import Testing
import YAML

extension Scenario {
    /// Begins a run of a job.
    fileprivate func learn(
        _ job: String = "nightly", client: String? = nil, user: String? = nil, allows: Bool = false,
        until end: Expiry? = nil
    ) throws {
        let scope = JobScope(client: client.flatMap { AddressRange($0) }, user: user)
        _ = try proxy.startLearning(
            ActiveJob(job: job, scope: scope, allows: allows, endsAt: end ?? (allows ? Self.later : nil)))
    }

    private static var later: Expiry { Expiry(after: Seconds(600), from: .read()) }

    fileprivate func journal(_ job: String = "nightly") throws -> Journal {
        guard let journal = proxy.journal(of: job) else { throw WireError("there is no journal of \(job)") }
        return journal
    }

    /// `host METHOD path` for each path of each learnt rule, without the port of the scripted origin.
    fileprivate func learnt(_ job: String = "nightly") throws -> [String] {
        try journal(job).neededRules.flatMap { rule -> [String] in
            let methods = rule.conditions.methods.joined(separator: ",")
            let start = "\(rule.conditions.hosts[0]) \(methods)"
            return rule.conditions.paths.isEmpty ? [start] : rule.conditions.paths.map { "\(start) \($0)" }
        }
    }

    /// Puts the learnt rules in force, as their reader would.
    fileprivate func adoptLearnt(
        _ job: String = "nightly", _ configure: (inout Configuration, Files) throws -> Void = { _, _ in }
    ) throws {
        let yaml = try journal(job).yaml
        try adopt { configuration, files in
            try configure(&configuration, files)
            let extra =
                (configuration.access.authentication.basic.usersFile.map {
                    "  authentication: { basic: { users: \"\($0)\" } }\n"
                } ?? "")
            var text = yaml.replacing("access:\n", with: "access:\n" + extra)
            if let certificate = configuration.intercept.certificateFile, let key = configuration.intercept.keyFile {
                text += "intercept: { ca: { certificate: \"\(certificate)\", key: \"\(key)\" } }\n"
            }
            let loaded = loadConfiguration(
                try parseYAML(Array(text.utf8)).map { ConfigurationNode($0) }, file: "learnt.yaml")
            guard let rules = loaded.configuration?.access.rules else { throw WireError("\(loaded.errors)\n\(text)") }
            configuration.access.rules = rules
            // Nothing is open that a rule does not open.
            configuration.access.privateDestinations = .deny
            configuration.access.connectPorts = []
        }
    }
}

@Suite("Learning")
struct LearningScenarios {
    @Test func `a job of one listener is told from what comes by others`() throws {
        try scenario({ configuration, _ in
            configuration.listen[0].writtenName = "jobs"
        }) { s in
            #expect(throws: LearningBook.Refusal.unknownListener(among: ["jobs"])) {
                try s.proxy.startLearning(ActiveJob(job: "nightly", scope: JobScope(listener: "job")))
            }
            _ = try s.proxy.startLearning(ActiveJob(job: "nightly", scope: JobScope(listener: "jobs")))
            s.origin.expects("GET /a").replies(200, body: "a")
            #expect(try s.client().get("/a").status == 200)
            let journal = try s.journal()
            #expect(journal.requests == 1 && journal.scope.text == "listener jobs")
            #expect(journal.yaml.contains("listener: [ \"jobs\" ]"), "\(journal.yaml)")
            #expect(JournalFile.journal(from: JournalFile.text(of: journal))?.scope == journal.scope)
        }
    }

    @Test func `a scope covers what it names`() {
        func asked(_ listener: String?) -> AccessRequest {
            var request = AccessRequest(
                client: IPAddress(v4: 1), method: .get, destination: .name("a.example"), port: 80, isTunnel: false)
            request.listener = listener
            return request
        }
        let scope = JobScope(listener: "jobs")
        #expect(scope.covers(asked("jobs")) && !scope.covers(asked("other")) && !scope.covers(asked(nil)))
        #expect(!scope.isEverybody && JobScope().covers(asked(nil)))
    }

    // MARK: rules of what was observed

    @Test func `the learnt rules allow the next run, and nothing else`() throws {
        try scenario { s in
            s.origin.expects("GET /pool/a.deb").replies(200, "Cache-Control: no-store", body: "a")
            s.origin.expects("POST /api/search").replies(200, body: "found")
            try s.learn()
            let job = try s.client()
            #expect(try job.get("/pool/a.deb").status == 200)
            #expect(try job.request("POST", "/api/search", body: "query").status == 200)
            #expect(s.proxy.stopLearning("nightly"))
            #expect(try s.learnt() == ["127.0.0.1 GET /pool/a.deb", "127.0.0.1 POST /api/search"])
            let evidence = try s.journal().neededRules.map(\.evidence)
            #expect(evidence.map(\.requestBytesMax) == [0, 5])
            #expect(evidence.map(\.responseBytesMax) == [1, 5])

            try s.adoptLearnt()
            s.origin.expects("GET /pool/a.deb").replies(200, "Cache-Control: no-store", body: "a")
            s.origin.expects("POST /api/search").replies(200, body: "found")
            let again = try s.client()
            #expect(try again.get("/pool/a.deb").status == 200)
            #expect(try again.request("POST", "/api/search", body: "query").status == 200)
            #expect(try s.client().get("/pool/b.deb")["Larder-Deny"]?.hasPrefix("reason=path-not-allowed") == true)
            #expect(try s.client().request("PUT", "/pool/a.deb", body: "x").status == 403)
            #expect(try s.client().get("http://elsewhere.example/pool/a.deb").status == 403)
            #expect(try s.client().request("CONNECT", s.origin.authority).status == 403)
        }
    }

    @Test func `hits are noted, and go the short way again afterwards`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "stored")
            s.origin.expects("GET /b").replies(200, "Cache-Control: max-age=60", body: "stored")
            let client = try s.client()
            for path in ["/a", "/b"] { #expect(try client.get(path).status == 200) }
            try s.learn()
            for _ in 0..<5 { #expect(try client.get("/a").cacheStatus.hasPrefix("larder; hit")) }
            #expect(s.proxy.stopLearning("nightly"))
            #expect(try client.get("/b").cacheStatus.hasPrefix("larder; hit"))
            #expect(try s.learnt() == ["127.0.0.1 GET /a"])
            #expect(try s.journal().neededRules.first?.evidence.requests == 5)
        }
    }

    @Test func `hits behind rules are noted, although one before them had proven its access`() throws {
        try scenario({ configuration, _ in configuration.access.rules = [AccessRule(effect: .allow, number: 1)] }) {
            s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "stored")
            let client = try s.client()
            for _ in 0..<4 { #expect(try client.get("/a").status == 200) }
            // They are counted behind their answers.
            try s.expect(.hitsByEarlierDecision, 2)
            let before = s.count(.hitsByEarlierDecision)
            try s.learn()
            for _ in 0..<3 { #expect(try client.get("/a").status == 200) }
            #expect(s.count(.hitsByEarlierDecision) == before)
            #expect(try s.journal().neededRules.first?.evidence.requests == 3)
            #expect(s.proxy.stopLearning("nightly"))
            for _ in 0..<3 { #expect(try client.get("/a").status == 200) }
            try s.expect(.hitsByEarlierDecision, before + 2)
        }
    }

    @Test func `a job is told from others by its client`() throws {
        try scenario({ configuration, _ in
            configuration.access.namedClients = ["127.0.0.0/8"].compactMap { AddressRange($0) }
        }) { s in
            s.origin.expects("GET /mine").replies(200)
            s.origin.expects("GET /theirs").replies(200)
            try s.learn(client: "127.0.0.2")
            #expect(try s.client(from: 0x7F00_0002).get("/mine").status == 200)
            #expect(try s.client(from: 0x7F00_0003).get("/theirs").status == 200)
            #expect(try s.learnt() == ["127.0.0.1 GET /mine"])
            #expect(try s.journal().neededRules.first?.conditions.clients.map { "\($0)" } == ["127.0.0.2"])
        }
    }

    @Test func `a job is told from others by its user, and its rules are for that user`() throws {
        func users(_ configuration: inout Configuration, _ files: Scenario.Files) throws {
            let lines = try ["ann", "ben"].map { "\($0):\(try hash(password: Array("secret".utf8)))\n" }
            configuration.access.authentication.basic.usersFile = try files.write("users", lines.joined())
        }
        func logIn(_ name: String) -> String {
            "Proxy-Authorization: Basic \(Data("\(name):secret".utf8).base64EncodedString())"
        }
        try scenario({ try users(&$0, $1) }) { s in
            s.origin.expects("GET /a").replies(200)
            s.origin.expects("GET /b").replies(200)
            try s.learn(user: "ann")
            let client = try s.client()
            // Who has not proven to be somebody is nobody's.
            #expect(try client.get("/a").status == 407)
            #expect(try client.get("/a", logIn("ann")).status == 200)
            #expect(try client.get("/b", logIn("ben")).status == 200)
            #expect(try s.learnt() == ["127.0.0.1 GET /a"])
            #expect(try s.journal().neededRules.first?.evidence.requests == 1)
            try s.adoptLearnt { try users(&$0, $1) }
            s.origin.expects("GET /a").replies(200)
            let next = try s.client()
            #expect(try next.get("/a", logIn("ann")).status == 200)
            #expect(try next.get("/a", logIn("ben")).status == 403)
        }
    }

    @Test func `two jobs learn side by side`() throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200)
            s.origin.expects("GET /b").replies(200)
            s.origin.expects("GET /c").replies(200)
            let client = try s.client()
            try s.learn("one")
            try client.get("/a")
            try s.learn("two")
            try client.get("/b")
            #expect(throws: LearningBook.Refusal.running) { try s.learn("two") }
            #expect(s.proxy.stopLearning("one"))
            try client.get("/c")
            #expect(try s.learnt("one") == ["127.0.0.1 GET /a", "127.0.0.1 GET /b"])
            #expect(try s.learnt("two") == ["127.0.0.1 GET /b", "127.0.0.1 GET /c"])
            #expect(!s.proxy.stopLearning("one"))
            #expect(s.proxy.forgetJournal(of: "one"))
            #expect(s.proxy.journal(of: "one") == nil)
            #expect(!s.proxy.forgetJournal(of: "one"))
        }
    }

    @Test func `the private address of a name is a condition, so that the rule opens it and nothing else`() throws {
        try scenario { s in
            let port = s.origin.authority.split(separator: ":")[1]
            for _ in 0..<2 { s.origin.expects("GET /a").replies(200, "Cache-Control: no-store") }
            try s.learn()
            #expect(try s.client().get("http://localhost:\(port)/a").status == 200)
            let addresses = try s.journal().neededRules.first?.conditions.addresses.map { "\($0)" } ?? []
            #expect(addresses.contains("127.0.0.1"), "\(addresses)")
            try s.adoptLearnt()
            #expect(try s.client().get("http://localhost:\(port)/a").status == 200)
            #expect(try s.client().get("http://127.0.0.1:\(port)/a").status == 403)
        }
    }

    @Test func `a second run counts`() throws {
        try scenario { s in
            for _ in 0..<2 { s.origin.expects("GET /a").replies(200, "Cache-Control: no-store") }
            s.origin.expects("GET /b").replies(200)
            let client = try s.client()
            try s.learn()
            try client.get("/a")
            #expect(s.proxy.stopLearning("nightly"))
            try s.learn()
            try client.get("/a")
            try client.get("/b")
            #expect(s.proxy.stopLearning("nightly"))
            let journal = try s.journal()
            #expect(journal.runs.map(\.requests) == [1, 2])
            #expect(journal.yaml.contains("seen in 2 of 2 runs"))
        }
    }

    @Test func `each step of redirects that Larder follows is needed`() throws {
        try scenario({ configuration, _ in
            configuration.origins = [OriginRule(RuleConditions(), redirectsMax: 3, number: 1)]
        }) { s in
            s.origin.expects("GET /a").replies(302, "Location: /b")
            s.origin.expects("GET /b").replies(200, body: "there")
            try s.learn()
            #expect(try s.client().get("/a").text == "there")
            #expect(try s.learnt() == ["127.0.0.1 GET /a", "127.0.0.1 GET /b"])
        }
    }

    @Test func `what fails at the origin was needed, and what Larder answers itself was not`() throws {
        try scenario { s in
            s.origin.expects("GET /down").closes()
            try s.learn()
            let client = try s.client()
            #expect(try client.get("/down").status == 502)
            #expect(try client.request("OPTIONS", "http://h.example/", "Max-Forwards: 0").status == 200)
            #expect(try s.learnt() == ["127.0.0.1 GET /down"])
        }
    }

    // MARK: tunnels

    @Test func `a tunnel needs CONNECT, from its first moment, and its bytes count`() throws {
        try scenario({ configuration, files in
            configuration.access.connectPorts = [files.origin.port...files.origin.port]
        }) { s in
            s.origin.expects("GET /inside").replies(200, "Connection: close", body: "hello").closes()
            try s.learn()
            let client = try s.tunnel(to: s.origin.authority)
            #expect(try s.learnt() == ["127.0.0.1 CONNECT"])
            try client.send("GET /inside HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try client.response().text == "hello")
            client.wire.hangUp()
            try s.expect(.tunnelsClosed, 1)
            let rule = try #require(try s.journal().neededRules.first)
            #expect(rule.evidence.requests == 1 && rule.intercept == nil)
            #expect(rule.evidence.requestBytesMax == 33)
            #expect(rule.evidence.responseBytesMax > 50)
            try s.adoptLearnt()
            #expect(try s.client().get("/inside").status == 403)
            _ = try s.tunnel(to: s.origin.authority)
        }
    }

    @Test func `what is inside an opened tunnel is learnt, and the rules hold inside`() throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try TLSOrigin(
            certificate, .answers("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok"))
        defer { origin.end() }
        func configure(_ configuration: inout Configuration, _ files: Scenario.Files) throws {
            try files.intercept("127.0.0.1", in: &configuration)
            configuration.tls.caFile = try files.write("ca.pem", certificate.certificate)
        }
        try scenario({ try configure(&$0, $1) }) { s in
            let authority = "127.0.0.1:\(origin.port)"
            try s.learn()
            let client = try s.secureTunnel(to: authority)
            try client.askInside("POST", "/v1/messages", host: authority, body: "prompt")
            #expect(try client.response().text == "ok")
            #expect(try s.learnt() == ["127.0.0.1 CONNECT", "127.0.0.1 POST /v1/messages"])
            #expect(try s.journal().neededRules.map(\.intercept) == [true, nil])
            #expect(try s.journal().neededRules.last?.evidence.requestBytesMax == 6)
            try s.adoptLearnt {
                try configure(&$0, $1)
                $0.intercept.hosts = []
            }
            let next = try s.secureTunnel(to: authority)
            try next.askInside("POST", "/v1/messages", host: authority, body: "prompt")
            #expect(try next.response().text == "ok")
            let denied = try next.getInside("/v1/files", host: authority)
            #expect(denied.status == 403 && denied["Larder-Deny"] != nil, "\(denied)")
        }
    }

    // MARK: rules in force

    @Test func `the rules stay in force, and what they deny is told apart`() throws {
        try scenario({ configuration, files in
            var rule = AccessRule(effect: .allow, number: 1)
            rule.conditions.ports = [files.origin.port...files.origin.port]
            rule.conditions.methods = ["GET"]
            var unused = AccessRule(effect: .allow, number: 2)
            unused.conditions.hosts = [.exact("unused.example")]
            configuration.access.rules = [rule, unused]
        }) { s in
            s.origin.expects("GET /a").replies(200)
            try s.learn()
            let client = try s.client()
            #expect(try client.get("/a").status == 200)
            #expect(try client.request("POST", "/a", body: "x").status == 403)
            let journal = try s.journal()
            #expect(try s.learnt() == ["127.0.0.1 GET /a"])
            #expect(journal.deniedRules.map(\.conditions.methods) == [["POST"]])
            #expect(journal.deniedRules.first?.evidence.reason == .methodNotAllowed)
            let snapshot = s.proxy.snapshot
            let difference = Difference(
                of: journal, from: snapshot.access, rules: snapshot.configuration.access.rules)
            #expect(difference.missing == [])
            #expect(difference.superfluous == [2])
            #expect(difference.denied.count == 1)
        }
    }

    /// Names are resolved by the next proxy, so a name is a public destination.
    private func strict(_ play: (Scenario) throws -> Void) throws {
        try scenario({ configuration, files in
            var forbidden = AccessRule(effect: .deny(reason: "never"), number: 1)
            forbidden.conditions.hosts = [.exact("forbidden.example")]
            var known = AccessRule(effect: .allow, number: 2)
            known.conditions.hosts = [.exact("known.example")]
            configuration.access.rules = [forbidden, known, AccessRule(effect: .deny(reason: nil), number: 3)]
            configuration.access.privateDestinations = .deny
            configuration.access.namedClients = ["127.0.0.0/8"].compactMap { AddressRange($0) }
        }) { s in
            var next: Route?
            next = s.nextProxy()
            try s.adopt { configuration, files in
                configuration.access = s.proxy.snapshot.configuration.access
                configuration.routes = [RouteRule(RuleConditions(), via: next.map { [$0] } ?? [], number: 1)]
            }
            try play(s)
        }
    }

    @Test func `with --allow the job gets what the default denies, and nobody else does`() throws {
        try strict { s in
            #expect(try s.client(from: 0x7F00_0002).get("http://new.example/a").status == 403)
            try s.learn(client: "127.0.0.2", allows: true)
            s.origin.expects("GET http://new.example/a").replies(200, "Cache-Control: no-store", body: "new")
            let job = try s.client(from: 0x7F00_0002)
            #expect(try job.get("http://new.example/a").text == "new")
            #expect(try s.client(from: 0x7F00_0003).get("http://new.example/a").status == 403)
            let rule = try #require(try s.journal().neededRules.first)
            #expect("\(rule.conditions.hosts[0])" == "new.example")
            #expect(rule.evidence.permitted == 1)
            var question = ExplainQuestion(target: "http://new.example/a")
            question.client = IPAddress(v4: 0x7F00_0002)
            let lines = try s.proxy.explain(question).sections.first { $0.name == "access" }?.lines ?? []
            #expect(lines.contains { $0.name == "let through" && $0.value.contains("nightly") }, "\(lines)")
            let stats = try s.stats()["learning"]?.elements?.first
            #expect(stats?["allows"]?.flag == true && stats?["scope"]?.text == "client 127.0.0.2")

            #expect(s.proxy.stopLearning("nightly"))
            #expect(try job.get("http://new.example/a").status == 403)
        }
    }

    @Test(arguments: [
        "http://127.0.0.1/", "http://10.1.2.3/", "http://169.254.169.254/latest", "http://[::1]/",
        "http://forbidden.example/",
    ]) func `private destinations and what a rule denies by name stay closed with --allow`(_ target: String) throws {
        try strict { s in
            try s.learn(client: "127.0.0.1", allows: true)
            let answer = try s.client().get(target)
            #expect(answer.status == 403, "\(answer)")
            #expect(try s.journal().deniedRules.count == 1)
        }
    }

    @Test func `ports that are closed to tunnels stay closed with --allow`() throws {
        try strict { s in
            try s.learn(client: "127.0.0.1", allows: true)
            #expect(try s.client().request("CONNECT", "new.example:22").status == 403)
        }
    }

    @Test func `what is let through has an end`() throws {
        try strict { s in
            try s.learn(client: "127.0.0.1", allows: true, until: Expiry(after: .zero, from: .read()))
            #expect(try s.client().get("http://new.example/a").status == 403)
            try s.eventually("the job has ended") { s.proxy.shared.learning.active.isEmpty }
            #expect(try s.journal().isRunning == false)
        }
    }

    // MARK: files

    @Test func `journals survive a restart, and a damaged one is lost alone`() throws {
        try scenario { s in
            let directory = s.directory.appendingPathComponent("learn").path
            func open() {
                s.proxy.shared.learning.open([directory]) {
                    do { try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: true) } catch
                    {
                        Issue.record(error)
                    }
                }
            }
            open()
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60")
            for job in ["one", "two"] {
                try s.learn(job)
                try s.client().get("/a")
                if job == "two" { #expect(s.proxy.stopLearning(job)) }
            }
            try s.restart {
                let path = "\(directory)/two.journal"
                let text = try Data(contentsOf: URL(fileURLWithPath: path))
                try text.dropLast(3).write(to: URL(fileURLWithPath: path))
            }
            open()
            // Nothing learns after a restart: what was let through before it is let through no more.
            #expect(s.proxy.shared.learning.active.isEmpty)
            #expect(try s.learnt("one") == ["127.0.0.1 GET /a"])
            #expect(try s.journal("one").isRunning == false)
            #expect(s.proxy.journal(of: "two") == nil)
            #expect(s.proxy.forgetJournal(of: "one"))
            #expect(!FileManager.default.fileExists(atPath: "\(directory)/one.journal"))
            #expect(FileManager.default.fileExists(atPath: "\(directory)/two.journal"))
        }
    }

    @Test func `without a directory that can be written, the journal is in memory, and start says so`() throws {
        try scenario { s in
            s.proxy.shared.learning.open(["/proc/nowhere"]) { _ in }
            let complaint = try s.proxy.startLearning(ActiveJob(job: "nightly", scope: JobScope()))
            #expect(complaint?.contains("/proc/nowhere") == true)
            s.origin.expects("GET /a").replies(200)
            try s.client().get("/a")
            #expect(try s.learnt() == ["127.0.0.1 GET /a"])
        }
    }
}
