import ProgramUnderTest
import EventLoop
import Foundation
import Glibc
import Testing

@Suite("larder warm", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct WarmTests {
    private func with(_ body: (Workplace, Nginx, Larder) async throws -> Void) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(
                in: place,
                server: """
                    gzip on;
                    location ~ \\.css$ { types { text/css css; } }
                    location = /moved { return 301 /deep/../a; }
                    location = /loop { return 302 /loop; }
                    location = /away { return 302 https://127.0.0.1:1/; }
                    location = /private { add_header Cache-Control private; alias \(place.path("www/a")); }
                    """)
            for name in ["a", "b", "deep/c"] { try place.write("www/\(name)", "\(name)\n".utf8) }
            try await body(place, nginx, try await Larder.start(in: place))
        }
    }

    private func warm(
        _ words: String..., through larder: Larder, input: String? = nil
    ) async throws -> Workplace.Output {
        try await larder.place.run(
            Larder.executable, ["warm", "--proxy", "127.0.0.1:\(larder.port)"] + words, input: input)
    }

    /// What is served without asking anybody, to a client that takes gzip.
    private func isStored(_ path: String, _ nginx: Nginx, _ larder: Larder) async throws -> Bool {
        let reply = try await larder.place.curl(
            "-H", "Cache-Control: only-if-cached", "-H", "Accept-Encoding: gzip", "\(nginx.url)\(path)", through: larder
        )
        #expect(reply.isHit || reply.status == 504, "\(reply)")
        return reply.isHit
    }

    private func objects(_ output: Workplace.Output) throws -> [[String: Any]] {
        try output.out.split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
    }

    @Test func `URLs are fetched and stored; a second time they are hits`() async throws {
        try await with { place, nginx, larder in
            let first = try await warm("\(nginx.url)/a", "\(nginx.url)/deep/c", "\(nginx.url)/a", through: larder)
            #expect(first.status == 0, "\(first)")
            #expect(first.out.contains("stored     200") && first.out.contains("\(nginx.url)/deep/c\n"), "\(first)")
            #expect(first.out.contains("fetched 2, ") && first.out.contains(": 2 stored, 0 hits\n"), "\(first)")
            #expect(try await isStored("/a", nginx, larder))
            #expect(try await isStored("/deep/c", nginx, larder))
            let second = try await warm("\(nginx.url)/a", through: larder)
            #expect(second.out.contains("fetched 1, ") && second.out.contains(": 0 stored, 1 hit\n"), "\(second)")
            #expect(nginx.asked("/a").count == 1)
        }
    }

    @Test(arguments: ["", "rules: [ { storage: pinned } ]"])
    func `what is called stored is there after a restart, however fast it comes`(_ rules: String) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: "expires 1d;")
            let names = (0..<400).map { "\($0)" }
            for name in names {
                try place.write(
                    "www/\(name)", Array(repeating: UInt8(truncatingIfNeeded: name.hashValue), count: 300_000))
            }
            let urls = try place.write("urls", names.map { "\(nginx.url)/\($0)\n" }.joined().utf8)
            // A quarter of 16 MiB may wait to be written.
            let adminPort = FreePort.take()
            let text = Larder.configuration(in: place, adminPort: adminPort).replacingOccurrences(
                of: "cache: { memory: 64MiB, disk: { size: 0 } }",
                with:
                    "cache:\n  memory: 16MiB\n  disk: { path: \(place.path("store")), size: 1GiB, pinned: 1GiB }\n  \(rules)"
            )
            var larder = try await Larder.start(in: place, text: text, adminPort: adminPort)
            let output = try await warm("--from", urls, "-j", "16", through: larder)
            #expect(output.status == 0 && output.out.contains(": 400 stored, 0 hits"), "\(output.out.suffix(300))")
            await larder.child.stop()
            larder = try await Larder.start(in: place, text: text, adminPort: adminPort)
            var lost: [String] = []
            for name in names where try await !isStored("/\(name)", nginx, larder) { lost.append(name) }
            #expect(lost.isEmpty)
        }
    }

    @Test func `a page is fetched with what its HTML and its stylesheets name`() async throws {
        try await with { place, nginx, larder in
            let html = """
                <!DOCTYPE html><title>A page</title>
                <link rel=stylesheet href=css/main.css><link rel=next href=/never>
                <!-- <img src=/never> -->
                <img src="/img/a.png" srcset="/img/b.png 2x">
                <p>\(String(repeating: "long enough to be compressed. ", count: 10))</p>
                """
            try place.write("www/site/page.html", html.utf8)
            try place.write("www/site/css/main.css", "@import 'more.css'; b { background: url(../bg.png) }".utf8)
            try place.write("www/site/css/more.css", "@import 'main.css'; i { background: url(/img/c.png) }".utf8)
            for name in ["img/a.png", "img/b.png", "img/c.png", "site/bg.png"] {
                try place.write("www/\(name)", name.utf8)
            }
            let output = try await warm("--page", "\(nginx.url)/site/page.html", "-j", "3", through: larder)
            #expect(output.status == 0, "\(output)")
            #expect(output.out.contains("fetched 7, "), "\(output)")
            let paths = [
                "/site/page.html", "/site/css/main.css", "/site/css/more.css", "/site/bg.png", "/img/a.png",
                "/img/b.png", "/img/c.png",
            ]
            for path in paths {
                #expect(try await isStored(path, nginx, larder), "\(path)")
                #expect(nginx.asked(path).count == 1, "\(path)")
            }
            #expect(nginx.asked("/never").isEmpty)
        }
    }

    @Test func `redirects are followed, but not for ever`() async throws {
        try await with { place, nginx, larder in
            let moved = try await warm("--json", "\(nginx.url)/moved", through: larder)
            let result = try #require(try objects(moved).first)
            #expect(moved.status == 0, "\(moved)")
            #expect(result["final_url"] as? String == "\(nginx.url)/a" && result["outcome"] as? String == "stored")
            let loop = try await warm("\(nginx.url)/loop", through: larder)
            #expect(loop.status == 1 && loop.out.contains("more than 10 redirects"), "\(loop)")
            #expect(nginx.asked("/loop").count == 11)
            let away = try await warm("\(nginx.url)/away", through: larder)
            #expect(away.status == 1 && away.out.contains("502"), "\(away)")
        }
    }

    @Test func `what fails is told with its reason and status 1, what is not kept with its reason and status 0`()
        async throws
    {
        try await with { place, nginx, larder in
            let urls = "\(nginx.url)/nothing\n\nhttps://127.0.0.1:1/\n# \(nginx.url)/b\nnonsense\n\(nginx.url)/a\n"
            let file = try place.write("urls", urls.utf8)
            let output = try await warm("--json", "--from", file, "\(nginx.url)/private", through: larder)
            #expect(output.status == 1, "\(output)")
            let results = try objects(output)
            func result(_ url: String) -> [String: Any] { results.first { $0["url"] as? String == url } ?? [:] }
            #expect(result("\(nginx.url)/nothing")["reason"] as? String == "status 404")
            #expect((result("https://127.0.0.1:1/")["reason"] as? String)?.contains("502") == true, "\(output)")
            #expect(result("nonsense")["outcome"] as? String == "failed")
            #expect(result("\(nginx.url)/private")["outcome"] as? String == "not_stored")
            #expect(result("\(nginx.url)/private")["reason"] as? String == "private")
            #expect(result("\(nginx.url)/a")["outcome"] as? String == "stored")
            let summary = try #require(results.last?["summary"] as? [String: Any])
            #expect(summary["fetched"] as? Int == 2 && summary["failed"] as? Int == 3, "\(output)")
            #expect(nginx.asked("/b").isEmpty)

            let kept = try await warm("\(nginx.url)/private", through: larder)
            #expect(kept.status == 0 && kept.out.contains("1 not stored (private: 1)"), "\(kept)")
        }
    }

    @Test func `standard input is a list as well; a refusal of the proxy says why`() async throws {
        try await with { place, nginx, larder in
            let file = try place.write("urls", "\(nginx.url)/a\nhttp://169.254.169.254/\n".utf8)
            let output = try await warm("--from", "-", through: larder, input: file)
            #expect(output.status == 1, "\(output)")
            #expect(output.out.contains("stored     200") && output.out.contains("(status 403: "), "\(output)")
        }
    }

    @Test func `what fails for a moment is tried again, as often as it says`() async throws {
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        } _: { origin in
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                let output = try await warm("--retries", "2", "\(origin.url)/a", through: larder)
                #expect(output.status == 1 && output.out.contains("status 503"), "\(output)")
                #expect(origin.heads.withLock { $0.count } == 3)
                let once = try await warm("--retries", "0", "\(origin.url)/b", through: larder)
                #expect(once.status == 1, "\(once)")
                #expect(origin.heads.withLock { $0.count } == 4)
            }
        }
    }

    @Test func `a second attempt that succeeds is a success`() async throws {
        let count = Locked(0)
        try await ScriptedOrigin.with { _, connection in
            let number = count.withLock {
                $0 += 1
                return $0
            }
            connection.send(
                number == 1
                    ? "HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\nConnection: close\r\n\r\nok"
            )
        } _: { origin in
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                let output = try await warm("--json", "\(origin.url)/a", through: larder)
                let result = try #require(try objects(output).first)
                #expect(output.status == 0 && result["attempts"] as? Int == 2, "\(output)")
            }
        }
    }

    @Test func `an answer that breaks off is no success`() async throws {
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nCache-Control: max-age=60\r\n\r\nhalf")
        } _: { origin in
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                let output = try await warm("--retries", "1", "--json", "\(origin.url)/a", through: larder)
                let result = try #require(try objects(output).first)
                #expect(output.status == 1 && result["outcome"] as? String == "failed", "\(output)")
                #expect(result["attempts"] as? Int == 2 && result["reason"] as? String == "the connection broke off")
            }
        }
    }

    @Test func `so many at a time as -j says, and no more`() async throws {
        let state = Locked((now: 0, most: 0))
        let gate = Gate()
        try await ScriptedOrigin.with { _, connection in
            let isFull = state.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
                return $0.now == 3
            }
            if isFull { gate.open() }
            gate.wait()
            state.withLock { $0.now -= 1 }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        } _: { origin in
            defer { gate.open() }
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                let file = try place.write("urls", (1...12).map { "\(origin.url)/\($0)\n" }.joined().utf8)
                let output = try await warm("-j3", "--from", file, through: larder)
                #expect(output.status == 0, "\(output)")
                #expect(state.withLock { $0.most } == 3)
            }
        }
    }

    @Test func `a user is named with --user, the password comes on standard input`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/a", "a\n".utf8)
            let larder = try await Larder.startWithUsers(in: place)
            let without = try await warm("\(nginx.url)/a", through: larder)
            #expect(without.status == 1 && without.out.contains("status 407"), "\(without)")
            let output = try await warm("--user", "ali", "\(nginx.url)/a", through: larder, input: place.path("word"))
            #expect(output.status == 0 && output.out.contains("1 stored"), "\(output)")
        }
    }

    @Test func `the fields of -H go out; ours give way to them`() async throws {
        try await with { place, nginx, larder in
            let output = try await warm(
                "-H", "User-Agent: apt", "-HAccept-Encoding:", "--header=X-Other: 1", "\(nginx.url)/a", through: larder)
            #expect(output.status == 0, "\(output)")
            #expect(nginx.asked("/a").first?.contains("ae=\"-\" ua=\"apt\"") == true, "\(nginx.asked)")
        }
    }

    @Test func `where no proxy answers that is said once`() async throws {
        try await Workplace.with { place in
            let port = FreePort.take()
            let output = try await place.run(
                Larder.executable, ["warm", "--proxy", "127.0.0.1:\(port)", "http://a.example/", "http://b.example/"])
            #expect(output.status == 1 && output.out.isEmpty, "\(output)")
            #expect(output.err.hasPrefix("larder: the proxy cannot be reached: 127.0.0.1:\(port): "), "\(output)")
        }
    }
}
