import Message
import PACRunner
import Routing
import Rules
import Server
import Settings
import Testing

private let source = PACSource("https://wpad.example/proxy.pac?site=1")!

extension Scenario {
    /// All requests ask the script of the URL. It has not come yet.
    fileprivate func adoptURL(otherwise: [Route] = []) throws -> PACScript {
        try adopt { configuration, _ in
            configuration.routes = [RouteRule(RuleConditions(), .script(source, otherwise: otherwise), number: 1)]
        }
        guard let script = proxy.snapshot.scripts[source] else { throw WireError("no PAC file is in use") }
        return script
    }

    /// What a fetch brings, when it has taken effect.
    fileprivate func fetch(_ answer: PACDownload.Answer, for script: PACScript) throws {
        script.expediteFetch()
        guard script.beginFetch() != nil else { throw WireError("it is fetched already") }
        let isDone = Gate()
        script.fetched(answer) { isDone.open() }
        try isDone.wait()
    }

    fileprivate func came(_ text: String, _ tag: String) -> PACDownload.Answer {
        guard case .url(let url) = source else { preconditionFailure("it is a URL") }
        return .script(Array(text.utf8), .init(from: url, entityTag: tag))
    }

    fileprivate func lines(explaining target: String) throws -> [String: String] {
        let lines = try proxy.explain(ExplainQuestion(target: target)).sections.first { $0.name == "origin" }?.lines
        return Dictionary((lines ?? []).map { ($0.name, $0.value) }) { first, _ in first }
    }
}

@Suite("PAC files from URLs") struct PACDownloadScenarios {
    @Test(arguments: ["GET", "CONNECT"]) func `a script that was never fetched refuses, and nothing goes out directly`(
        _ method: String
    ) throws {
        try scenario { s in
            let script = try s.adoptURL()
            let target = method == "GET" ? "http://127.0.0.1:\(s.origin.port)/" : "127.0.0.1:443"
            for _ in 1...2 {
                let answer = try s.client().request(method, target)
                #expect(answer.status == 502 && answer.cacheStatus.contains("detail=route-unknown"), "\(answer)")
            }
            try s.fetch(.failed(.status(404)), for: script)
            #expect(try s.client().request(method, target).status == 502)
            #expect(s.origin.requests.isEmpty)
            let lines = try s.lines(explaining: "http://a.example/")
            #expect(
                lines["pac file"]
                    == "https://wpad.example/proxy.pac?…: it has not been fetched: the server answers with status 404",
                "\(lines)")
            #expect(lines["pac download"]?.hasPrefix("never fetched; failing since 20") == true, "\(lines)")
        }
    }

    @Test func `until it is fetched the routes of otherwise are taken`() throws {
        try scenario { s in
            let script = try s.adoptURL(otherwise: [s.nextProxy()])
            s.origin.expects("GET http://a.example/1").replies(200, body: "otherwise")
            #expect(try s.client().get("http://a.example/1").text == "otherwise")
            try s.fetch(s.came("function FindProxyForURL() { return 'PROXY 127.0.0.1:1'; }", "\"1\""), for: script)
            let answer = try s.client().get("http://a.example/2")
            #expect(answer.cacheStatus.contains("detail=next-proxy-unreachable"), "\(answer)")
        }
    }

    @Test func `what comes is in use at once, and a fetch that fails or brings no script changes nothing`() throws {
        try scenario { s in
            let script = try s.adoptURL()
            #expect(try s.client().get("http://a.example/0").status == 502)
            try s.fetch(s.came(s.pac("return proxy;"), "\"1\""), for: script)
            func works(_ number: Int) throws {
                s.origin.expects("GET http://a.example/\(number)").replies(200, body: "\(number)")
                #expect(try s.client().get("http://a.example/\(number)").text == "\(number)")
            }
            try works(1)
            let process = script.tally.process
            try s.fetch(.failed(.network("the server did not answer in time")), for: script)
            try works(2)
            #expect(script.tally.download?.failure?.fault == .network("the server did not answer in time"))
            try s.fetch(s.came("<html>Sign in</html>", "\"2\""), for: script)
            try works(3)
            guard case .unusable(let text)? = script.tally.download?.failure?.fault else { throw WireError("no fault") }
            #expect(text.contains("it has no function FindProxyForURL"), "\(text)")
            #expect(script.tally.process == process)
            let lines = try s.lines(explaining: "http://a.example/")
            #expect(lines["pac download"]?.contains("; failing since ") == true, "\(lines)")
            try s.fetch(.unchanged, for: script)
            #expect(script.tally.download?.failure == nil)
            #expect(script.tally.download?.version?.entityTag == "\"1\"", "that is what the server confirmed")
            try s.fetch(s.came(s.pac("return 'PROXY 127.0.0.1:1';"), "\"3\""), for: script)
            #expect(try s.client().get("http://a.example/4").cacheStatus.contains("next-proxy-unreachable"))
        }
    }

    @Test func `a script that loops keeps nobody from another script`() throws {
        try scenario { s in
            try s.adopt { configuration, files in
                let (stuck, free) = (
                    try files.write("stuck.pac", s.pac("while (true) {}")),
                    try files.write("free.pac", s.pac("return proxy;"))
                )
                var loop = RuleConditions()
                loop.hosts = [HostPattern("loop.example")!]
                configuration.routes = [
                    RouteRule(loop, .script(.file(stuck), otherwise: []), number: 1),
                    RouteRule(RuleConditions(), .script(.file(free), otherwise: []), number: 2),
                ]
                configuration.pac.timeout = .seconds(60)
            }
            let client = try s.client()
            try client.ask("GET", "http://loop.example/")
            try s.eventually("the script loops") {
                s.proxy.snapshot.scripts.values.contains { $0.tally.questions == 1 }
            }
            s.origin.expects("GET http://a.example/").replies(200, body: "not delayed")
            #expect(try s.client().get("http://a.example/").text == "not delayed")
            #expect(s.proxy.snapshot.scripts.values.contains { $0.tally.waiting == 1 }, "and the other one still waits")
        }
    }
}
