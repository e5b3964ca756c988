import Foundation
import PACRunner
import ProgramUnderTest
import Routing
import Rules
import Server
import Settings
import Testing

extension Scenario {
    /// All requests take the routes that this body of `FindProxyForURL(url, host)` returns. `proxy` is the scripted origin.
    func adopt(
        pac body: String, _ name: String = "proxy.pac", otherwise: [Route] = [],
        also configure: (inout Configuration) -> Void = { _ in }
    ) throws {
        try adopt { configuration, files in
            let path = try files.write(name, pac(body))
            configuration.routes = [RouteRule(RuleConditions(), .script(.file(path), otherwise: otherwise), number: 1)]
            configure(&configuration)
        }
    }

    func pac(_ body: String) -> String {
        "var proxy = 'PROXY \(origin.authority)';\nfunction FindProxyForURL(url, host) {\n\(body)\n}\n"
    }

    fileprivate var script: PACScript {
        get throws {
            guard let script = proxy.snapshot.scripts.values.first else { throw WireError("no PAC file is in use") }
            return script
        }
    }

    /// Ends the process of the script, as the kernel would when memory is short.
    fileprivate func endProcess() throws {
        if let process = try script.tally.process { kill(process, SIGKILL) }
    }
}

/// A script that loops for ever for one host, and sends the others to the scripted proxy.
private let looping = "if (host == 'loop.example') while (true) {} return proxy;"

@Suite("PAC files") struct PACScenarios {
    @Test func `one host goes through a proxy and another directly, and an answer holds for the whole origin`() throws {
        try scenario { s in
            try s.adopt(pac: "return host == '127.0.0.1' ? 'DIRECT' : proxy + '; DIRECT';")
            s.origin.expects("GET http://a.example/x?secret=1").replies(200, body: "through the proxy")
            s.origin.expects("GET /y").replies(200, body: "directly")
            s.origin.expects("GET http://a.example/z").replies(200, body: "again")
            let client = try s.client()
            #expect(try client.get("http://a.example/x?secret=1").text == "through the proxy")
            #expect(try client.get("/y").text == "directly")
            #expect(try client.get("http://a.example/z").text == "again")
            let tally = try s.script.tally
            #expect(tally.questions == 2 && tally.hits == 1 && tally.failures == 0 && tally.restarts == 0, "\(tally)")
        }
    }

    @Test func `a script sees scheme, host and port, and neither path nor query`() throws {
        try scenario { s in
            try s.adopt(
                pac: "return url == 'http://a.example:8080/' && host == 'a.example' ? proxy : 'PROXY 127.0.0.1:1';")
            s.origin.expects("GET http://a.example:8080/path?query").replies(200, body: "x")
            #expect(try s.client().get("http://a.example:8080/path?query").status == 200)
        }
    }

    @Test func `a tunnel asks for https, and waits like any other request`() throws {
        try scenario { s in
            try s.adopt(pac: "return url == 'https://a.example:8443/' ? proxy : 'PROXY 127.0.0.1:1';") {
                $0.access.connectPorts = [1...65535]
            }
            s.origin.expects("CONNECT a.example:8443", "Host: a.example:8443").sends("HTTP/1.1 200 OK\r\n\r\n").echoes()
            let client = try s.client()
            try client.ask("CONNECT", "a.example:8443")
            #expect(try client.response(to: "CONNECT").status == 200)
            try client.send("echo")
            #expect(try client.reader.bytes(4) == Array("echo".utf8))
        }
    }

    @Test func `a switch of protocols goes the way that the script says`() throws {
        try scenario { s in
            try s.adopt(pac: "return proxy;")
            s.origin.expects("GET http://a.example/chat", "Upgrade: websocket").sends(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            ).echoes()
            let client = try s.client()
            try client.ask("GET", "http://a.example/chat", ["Connection: Upgrade", "Upgrade: websocket"])
            #expect(try client.response().status == 101)
            try client.send("echo")
            #expect(try client.reader.bytes(4) == Array("echo".utf8))
        }
    }

    @Test func `requests that wait for the same answer are one question`() throws {
        try scenario { s in
            try s.adopt(pac: "for (var end = Date.now() + 300; Date.now() < end;); return proxy;")
            let clients = try (1...4).map { _ in try s.client() }
            for (number, client) in clients.enumerated() {
                s.origin.expects("GET http://a.example/\(number)").replies(200, body: "\(number)")
                try client.ask("GET", "http://a.example/\(number)")
            }
            for (number, client) in clients.enumerated() { #expect(try client.response().text == "\(number)") }
            #expect(try s.script.tally.questions == 1)
        }
    }

    @Test func `the next route of an answer is tried if the first one fails`() throws {
        try scenario { s in
            let closed = try Unanswering.ClosedPort()
            try s.adopt(pac: "return 'PROXY 127.0.0.1:\(closed.port); ' + proxy;")
            s.origin.expects("GET http://a.example/").replies(200, body: "x")
            #expect(try s.client().get("http://a.example/").status == 200)
            #expect(s.count(.routesFailedOver) == 1)
        }
    }

    /// The body of the script, and what the statistics say of it.
    static let failures: [(body: String, text: String)] = [
        ("throw Error('on purpose');", "line 3: on purpose"),
        ("return nothing.here;", "line 3: ReferenceError: nothing is not defined"),
        ("return 'QUIC a:1';", "it returned \"QUIC a:1\""), ("", "it returned nothing"),
        ("return 'SOCKS a:1; DIRECT';", "SOCKS version 4"),
        ("return new Array(20000).join('x');", "the answer is longer"),
        ("while (true) {}", "within pac.timeout"),
        ("var a = ['x']; while (true) a.push(a.join('') + a.join(''));", "out of memory"),
        ("return FindProxyForURL(url, host);", "too much recursion"),
    ]
    @Test(arguments: failures, ["GET", "CONNECT"])
    func `a script that fails refuses the request, and nothing goes out directly`(
        _ row: (body: String, text: String), _ method: String
    ) throws {
        try scenario { s in
            // A busy machine delays the other failures too: they have time.
            let isTimedOut = row.text.contains("pac.timeout")
            try s.adopt(pac: row.body) { $0.pac.timeout = isTimedOut ? .milliseconds(300) : .seconds(60) }
            let target = method == "GET" ? "http://127.0.0.1:1/" : "127.0.0.1:443"
            for _ in 1...2 {
                let answer = try s.client().request(method, target)
                #expect(answer.status == 502 && answer.cacheStatus.contains("detail=route-unknown"), "\(answer)")
                #expect(answer["Proxy-Status"]?.contains("error=proxy_configuration_error") == true, "\(answer)")
            }
            let tally = try s.script.tally
            #expect(tally.failures == 1 && tally.questions == 1, "a failure is remembered for a moment: \(tally)")
            #expect(tally.failure?.contains(row.text) == true, "\(tally)")
        }
    }

    @Test(arguments: ["GET", "CONNECT"]) func `with otherwise a failure takes the routes that the rule names`(
        _ method: String
    ) throws {
        try scenario { s in
            try s.adopt(pac: "throw 1;", otherwise: [s.nextProxy()])
            let target = method == "GET" ? "http://a.example/" : "a.example:443"
            s.origin.expects("\(method) \(target)").replies(200, body: "")
            #expect(try s.client().request(method, target).status == 200)
        }
    }

    @Test func `a script that loops delays nobody whose answer is known, and its process is started again`() throws {
        try scenario { s in
            try s.adopt(pac: looping) { $0.pac.timeout = .seconds(60) }
            s.origin.expects("GET http://a.example/1").replies(200, body: "known")
            #expect(try s.client().get("http://a.example/1").text == "known")
            let stuck = try s.client()
            try stuck.ask("GET", "http://loop.example/")
            try s.eventually("the script loops") { try s.script.tally.questions == 2 }
            s.origin.expects("GET http://a.example/2").replies(200, body: "not delayed")
            #expect(try s.client().get("http://a.example/2").text == "not delayed")
            #expect(try s.script.tally.waiting == 1, "and the other one still waits")
        }
    }

    @Test func `after a time-out the script answers for other hosts again`() throws {
        try scenario { s in
            try s.adopt(pac: looping) { $0.pac.timeout = .milliseconds(300) }
            #expect(try s.client().get("http://loop.example/").status == 502)
            s.origin.expects("GET http://a.example/").replies(200, body: "x")
            #expect(try s.client().get("http://a.example/").status == 200)
            let tally = try s.script.tally
            #expect(tally.timeouts == 1 && tally.restarts == 1 && tally.failure == nil, "\(tally)")
        }
    }

    @Test(arguments: ["GET", "CONNECT"]) func `a request waits no longer than for a connection`(_ method: String) throws
    {
        try scenario { s in
            try s.adopt(pac: looping) {
                $0.pac.timeout = .seconds(60)
                $0.timeouts.connect = .milliseconds(300)
            }
            let target = method == "GET" ? "http://loop.example/" : "loop.example:443"
            let answer = try s.client().request(method, target)
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=route-unknown"), "\(answer)")
            #expect(s.count(.timeouts) == 1)
            #expect(try s.script.tally.waiting == 0)
        }
    }

    @Test(arguments: ["GET", "CONNECT"]) func `a client that leaves while its route is unknown leaves nothing behind`(
        _ method: String
    ) throws {
        try scenario { s in
            try s.adopt(pac: "if (host == 'loop.example') while (true) {} return 'PROXY 127.0.0.1:1';") {
                $0.pac.timeout = .seconds(60)
            }
            let blocker = try s.client()
            try blocker.ask("GET", "http://loop.example/")
            try s.eventually("the script loops") { try s.script.tally.questions == 1 }
            var client: ScriptedClient? = try s.client()
            try client?.ask(method, method == "GET" ? "http://b.example/" : "b.example:443")
            try s.eventually("it waits") { try s.script.tally.waiting == 2 }
            client?.wire.reset()
            client = nil
            try s.eventually("it has left") { try s.script.tally.waiting == 1 }
            try s.eventually("the script is ended until nobody waits") {
                try s.endProcess()
                return try s.script.tally.waiting == 0
            }
            #expect(try blocker.response().status == 502)
            #expect(try s.client().get("http://c.example/").status == 502)
            #expect(try s.script.tally.questions == 2, "the question of the client that left was not asked")
        }
    }

    @Test func `a process that somebody ends is started again, and the question is asked again`() throws {
        try scenario { s in
            try s.adopt(pac: "for (var end = Date.now() + 1000; Date.now() < end;); return proxy;") {
                $0.pac.timeout = .seconds(30)
            }
            s.origin.expects("GET http://a.example/").replies(200, body: "x")
            let client = try s.client()
            try client.ask("GET", "http://a.example/")
            try s.eventually("it is asked") { try s.script.tally.questions == 1 }
            try s.endProcess()
            #expect(try client.response().text == "x")
            let tally = try s.script.tally
            #expect(tally.restarts == 1 && tally.failures == 0, "\(tally)")
        }
    }

    @Test
    func `a script that ends its process each time refuses its requests, and does not start processes without end`()
        throws
    {
        try scenario { s in
            try s.adopt(pac: looping) { $0.pac.timeout = .milliseconds(50) }
            for number in 1...12 {
                let answer = try s.client().get("http://loop.example:\(number)/")
                #expect(answer.status == 502, "\(answer)")
            }
            let tally = try s.script.tally
            #expect(tally.failures == 12 && tally.timeouts < 8 && tally.restarts < 8, "there are pauses: \(tally)")
        }
    }

    @Test func `a script is replaced while requests run, and one that cannot be read changes nothing`() throws {
        try scenario { s in
            try s.adopt(pac: "return proxy;")
            let gate = Gate()
            s.origin.expects("GET http://a.example/1").waits(for: gate).replies(200, body: "from before")
            let client = try s.client()
            try client.ask("GET", "http://a.example/1")
            try s.eventually("it has its route") { try s.script.tally.questions == 1 }
            let (script, process) = (try s.script, try s.script.tally.process)
            script.replace(by: Array("function FindProxyForURL(url, host".utf8))
            script.replace(by: Array("while (true) break; // no function".utf8))
            script.replace(by: Array(s.pac("return 'SOCKS5 127.0.0.1:1';").utf8))
            try s.eventually("the new version has its process") { script.tally.process != process }
            let changed = try s.client().get("http://b.example/")
            #expect(changed.cacheStatus.contains("detail=next-proxy-unreachable"), "\(changed)")
            gate.open()
            #expect(try client.response().text == "from before")
            script.replace(by: Array("this is no script".utf8))
            let answer = try s.client().get("http://c.example/")
            #expect(answer.cacheStatus.contains("detail=next-proxy-unreachable"), "\(answer)")
        }
    }

    @Test func `explain asks the script, and names its file and its answer`() throws {
        try scenario { s in
            try s.adopt(pac: "if (host == 'b.example') throw Error('on purpose'); return 'PROXY p.example:1; DIRECT';")
            let (question, bad) = (
                ExplainQuestion(target: "http://a.example/"), ExplainQuestion(target: "http://b.example/")
            )
            let lines = try s.proxy.explain(question).sections.first { $0.name == "origin" }?.lines
            #expect(lines?.first { $0.name == "route" }?.value == "routes[1]: http://p.example:1, then direct")
            let file = lines?.first { $0.name == "pac file" }?.value
            #expect(file?.hasSuffix("proxy.pac: http://p.example:1, then direct") == true, "\(file ?? "none")")
            let refused = try s.proxy.explain(bad)
            #expect(refused.reason.hasPrefix("502 route-unknown"), "\(refused.reason)")
        }
    }
}
