import Foundation
import Glibc
import ProgramUnderTest
import Testing

@Suite("The command line", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct CommandLineTests {
    private func with(_ body: (Workplace, Nginx, Larder) async throws -> Void) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            for name in ["a", "b", "deep/c", "deep/d"] { try place.write("www/\(name)", "\(name)\n".utf8) }
            try await body(place, nginx, try await Larder.start(in: place))
        }
    }

    /// Fetches all four files, so that they are stored.
    private func fill(_ place: Workplace, _ nginx: Nginx, _ larder: Larder) async throws {
        for name in ["a", "b", "deep/c", "deep/d"] {
            let reply = try await place.curl("\(nginx.url)/\(name)", through: larder)
            #expect(reply.status == 200, "\(reply)")
        }
    }

    private func stored(_ place: Workplace, _ nginx: Nginx, _ larder: Larder) async throws -> [String] {
        var result: [String] = []
        for name in ["a", "b", "deep/c", "deep/d"] {
            let words = ["-H", "Cache-Control: only-if-cached", "\(nginx.url)/\(name)"]
            let reply = try await place.curl(words[0], words[1], words[2], through: larder)
            #expect(reply.isHit || reply.status == 504, "\(reply)")
            if reply.isHit { result.append(name) }
        }
        return result
    }

    // MARK: stats

    @Test func `stats tells of a miss and a hit, as a table and as JSON`() async throws {
        try await with { place, nginx, larder in
            for _ in 1...2 { _ = try await place.curl("\(nginx.url)/a", through: larder) }
            let table = try await larder.command("stats")
            #expect(table.status == 0 && table.out.hasPrefix("larder 0.1.0, up "), "\(table)")
            let lines = table.out.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            #expect(lines.contains(["hit", "1"]) && lines.contains(["miss", "1"]), "\(table)")
            #expect(lines.contains(["by", "requests", "50.0", "%"]), "\(table)")
            #expect(try await larder.statistic("requests", "hit") == 1)
            #expect(try await larder.statistic("requests", "miss") == 1)
            #expect(try await larder.statistic("memory", "records") == 1)
            #expect(try await larder.statistic("origins", "opened") == 1)
        }
    }

    @Test func `stats without a running proxy says that nobody is there`() async throws {
        try await with { place, nginx, larder in
            larder.child.signal(SIGTERM)
            #expect(try await larder.child.end(within: .seconds(10)) == 0)
            let output = try await larder.command("stats")
            #expect(output.status == 1, "\(output)")
            #expect(
                output.err.hasPrefix("larder: no Larder is running: nothing answers at \(larder.socket)"),
                "\(output)")
        }
    }

    // MARK: purge

    @Test func `purge URL makes the next a miss`() async throws {
        try await with { place, nginx, larder in
            try await fill(place, nginx, larder)
            let output = try await larder.command("purge", "\(nginx.url)/a")
            #expect(output.status == 0 && output.out.hasPrefix("purged 1 response, "), "\(output)")
            let next = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(next.cacheStatus.hasPrefix("larder; fwd=uri-miss"), "\(next)")
            let other = try await place.curl("\(nginx.url)/b", through: larder)
            #expect(other.isHit, "\(other)")
            let again = try await larder.command("purge", "\(nginx.url)/nothing")
            #expect(again.status == 0 && again.out.hasPrefix("purged 0 responses"), "\(again)")
        }
    }

    @Test func `--prefix, --host and --all purge what they name, --dry-run nothing`() async throws {
        try await with { place, nginx, larder in
            try await fill(place, nginx, larder)
            let dry = try await larder.command("purge", "--all", "--dry-run", "--json")
            #expect(dry.out.contains("\"records\":4") && dry.out.contains("\"dry_run\":true"), "\(dry)")
            #expect(try await stored(place, nginx, larder).count == 4)

            let prefix = try await larder.command("purge", "--prefix", "\(nginx.url)/deep/")
            #expect(prefix.out.hasPrefix("purged 2 responses, "), "\(prefix)")
            #expect(try await stored(place, nginx, larder) == ["a", "b"])

            let elsewhere = try await larder.command("purge", "--host", "example.org")
            #expect(elsewhere.out.hasPrefix("purged 0 responses, "), "\(elsewhere)")
            let host = try await larder.command("purge", "--host", "127.0.0.1")
            #expect(host.out.hasPrefix("purged 2 responses, "), "\(host)")
            #expect(try await stored(place, nginx, larder) == [])

            try await fill(place, nginx, larder)
            let all = try await larder.command("purge", "--all")
            #expect(all.out.hasPrefix("purged 4 responses, "), "\(all)")
            #expect(try await stored(place, nginx, larder) == [])
            #expect(try await larder.statistic("memory", "records") == 0)
        }
    }

    @Test func `conditions are combined, by the fields of the response`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(
                in: place,
                server: """
                    location /deep { add_header Surrogate-Key "deep news"; }
                    location = /a { add_header Cache-Tag "top, news"; types { } default_type text/plain; }
                    """)
            for name in ["a", "b", "deep/c", "deep/d"] { try place.write("www/\(name)", "\(name)\n".utf8) }
            let larder = try await Larder.start(in: place)
            try await fill(place, nginx, larder)
            let none = try await larder.command("purge", "--tag", "deep", "--type", "text/plain")
            #expect(none.out.hasPrefix("purged 0 responses"), "\(none)")
            let type = try await larder.command("purge", "--tag", "news", "--type", "text/*", "--dry-run")
            #expect(type.out.hasPrefix("would purge 1 response, "), "\(type)")
            let old = try await larder.command("purge", "--tag", "news", "--older-than", "1h")
            #expect(old.out.hasPrefix("purged 0 responses"), "\(old)")
            let tag = try await larder.command("purge", "--tag", "deep", "--prefix", "\(nginx.url)/deep/c", "--json")
            #expect(tag.out.contains("\"records\":1,"), "\(tag)")
            #expect(try await stored(place, nginx, larder) == ["a", "b", "deep/d"])
        }
    }

    @Test func `a soft purge makes the next a question with validators, a hard one a miss`() async throws {
        try await with { place, nginx, larder in
            try await fill(place, nginx, larder)
            let soft = try await larder.command("purge", "\(nginx.url)/a", "--soft")
            #expect(soft.out.hasPrefix("marked stale 1 response, "), "\(soft)")
            let next = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(next.cacheStatus.hasPrefix("larder; fwd=stale; fwd-status=304"), "\(next)")
            #expect(nginx.asked("/a").last?.contains(" 304 ") == true, "\(nginx.asked)")
            #expect(try await place.curl("\(nginx.url)/a", through: larder).isHit)
        }
    }

    @Test func `a purge during a download leaves nothing of it behind`() async throws {
        let gate = Gate()
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nCache-Control: max-age=60\r\n\r\nabc")
            gate.wait()
            connection.send("def")
        } _: { origin in
            defer { gate.open() }
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                async let slow = place.curl("\(origin.url)/slow", through: larder)
                try await eventually("the download to be stored") {
                    try await larder.command("ls", "--json").out.contains("\"state\":\"growing\"")
                }
                let purged = try await larder.command("purge", "\(origin.url)/slow")
                #expect(purged.out.hasPrefix("purged 1 response, "), "\(purged)")
                gate.open()
                let reply = try await slow
                #expect(reply.exit == 0 && reply.text == "abcdef", "\(reply)")
                let next = try await place.curl("\(origin.url)/slow", through: larder)
                #expect(next.cacheStatus.hasPrefix("larder; fwd=uri-miss"), "\(next)")
            }
        }
    }

    // MARK: ls, du, top

    @Test func `ls, du and top tell what is stored`() async throws {
        try await with { place, nginx, larder in
            let empty = try await larder.command("ls")
            #expect(empty.status == 0 && empty.out.isEmpty, "\(empty)")
            try await fill(place, nginx, larder)
            let list = try await larder.command("ls", "--prefix", "\(nginx.url)/deep/")
            let lines = list.out.split(separator: "\n")
            #expect(lines.count == 2 && lines.allSatisfy { $0.hasPrefix("fresh   200 ") }, "\(list)")
            #expect(
                Set(lines.compactMap { $0.split(separator: " ").last }) == [
                    "\(nginx.url)/deep/c", "\(nginx.url)/deep/d",
                ])
            let json = try await larder.command("ls", "--json", "\(nginx.url)/a")
            let object = try JSONSerialization.jsonObject(with: Data(json.out.utf8)) as? [String: Any]
            #expect(object?["bytes"] as? Int == 2 && object?["zone"] as? String == "default", "\(json)")
            let usage = try await larder.command("du", "--json")
            let sums = try JSONSerialization.jsonObject(with: Data(usage.out.utf8)) as? [String: Any]
            #expect(sums?["records"] as? Int == 4 && sums?["bytes"] as? Int == 18, "\(usage)")
            let top = try await larder.command("top", "--by", "bytes", "-n", "2")
            #expect(top.out.split(separator: "\n").count == 3 && top.out.contains("/deep/"), "\(top)")
            #expect(nginx.asked.count == 4)
        }
    }

    // MARK: check

    @Test func `check names file, line and the nearest key, of all that is wrong`() async throws {
        try await Workplace.with { place in
            let file = try place.write(
                "wrong.yaml",
                "listen: [ { address: 127.0.0.1:3128 } ]\ncache:\n  memroy: 64MiB\ntimeouts: { drain: soon }\n".utf8)
            let output = try await place.run(Larder.executable, ["check", "--config", file])
            #expect(output.status == 2, "\(output)")
            #expect(
                output.err.contains("\(file):3: cache.memroy: unknown key; did you mean cache.memory?\n"), "\(output)")
            #expect(output.err.contains("\(file):4: timeouts.drain: found \"soon\""), "\(output)")
            #expect(try await place.run(Larder.executable, ["serve", "--config", file]).status == 2)
        }
    }

    @Test func `check and serve refuse what the machine does not allow in the same words`() async throws {
        try await Workplace.with { place in
            let file = try place.write(
                "wrong.yaml", "log: { access: \(place.directory) }\ncache: { disk: { size: 0 } }\n".utf8)
            let checked = try await place.run(Larder.executable, ["check", "--config", file])
            let problem =
                "\(file):1: log.access: \(place.directory) cannot be opened: Is a directory; name a file in it"
            #expect(checked.status == 2 && checked.err.hasPrefix(problem), "\(checked)")
            let served = try await place.run(Larder.executable, ["serve", "--config", file], within: .seconds(10))
            #expect(served.status == 1 && served.err.contains("larder: \(problem)"), "\(served)")
            #expect(try await place.run(Larder.executable, ["check", "--elsewhere", "--config", file]).status == 0)
        }
    }

    @Test func `check finds a right file fine`() async throws {
        try await Workplace.with { place in
            let file = try place.write("right.yaml", "listen: [ { address: 127.0.0.1:3128 } ]\n".utf8)
            let output = try await place.run(Larder.executable, ["check", "--config", file])
            #expect(output.status == 0 && output.out == "\(file): no errors\n" && output.err.isEmpty, "\(output)")
        }
    }

    @Test func `an unknown command is told with the nearest, status 2`() async throws {
        try await Workplace.with { place in
            let output = try await place.run(Larder.executable, ["prge"])
            #expect(output.status == 2 && output.out.isEmpty, "\(output)")
            #expect(output.err.contains("unknown command \"prge\"") && output.err.contains("purge"), "\(output)")
        }
    }

    // MARK: start

    @Test func `a second start on the same port fails and says so`() async throws {
        try await with { place, nginx, larder in
            let text = Larder.configuration(in: place, port: larder.port, adminPort: FreePort.take())
                .replacingOccurrences(of: "admin.sock", with: "other.sock")
            let file = try place.write("second.yaml", text.utf8)
            let second = try await place.run(Larder.executable, ["serve", "--config", file], within: .seconds(10))
            #expect(second.status == 1, "\(second)")
            #expect(
                second.err.contains(
                    "\(file):1: listen: cannot listen on 127.0.0.1:\(larder.port): the address is in use; another Larder may be running: set listen to another port"
                ), "\(second)")
            #expect(!second.out.contains("serves on"), "\(second)")
            #expect(try await place.curl("\(nginx.url)/a", through: larder).status == 200)
        }
    }

    @Test func `a second start on the same admin port fails and says so`() async throws {
        try await with { place, _, larder in
            let text = Larder.configuration(in: place, adminPort: larder.adminPort)
                .replacingOccurrences(of: "admin.sock", with: "other.sock")
            let file = try place.write("second.yaml", text.utf8)
            let second = try await place.run(Larder.executable, ["serve", "--config", file], within: .seconds(10))
            #expect(second.status == 1, "\(second)")
            #expect(
                second.err.contains(
                    "\(file):3: admin.address: cannot listen on 127.0.0.1:\(larder.adminPort): the address is in use; another Larder may be running: set admin.address to another port, or to off"
                ), "\(second)")
        }
    }

    @Test func `the soft limit of descriptors is raised to the hard one`() async throws {
        try await Workplace.with { place in
            let port = FreePort.take()
            let larder = try await Larder.start(
                in: place, text: Larder.configuration(in: place, adminPort: port), adminPort: port,
                program: ["prlimit", "--nofile=256:2048", Larder.executable])
            let limit = textOfFile("/proc/\(larder.child.pid)/limits").split(separator: "\n")
                .first { $0.hasPrefix("Max open files") }
            let words = try #require(limit).split(separator: " ")
            #expect(words[3...4] == ["2048", "2048"], "\(words)")
        }
    }

    @Test func `a listener beyond loopback without named clients refuses to start`() async throws {
        try await Workplace.with { place in
            let file = try place.write("open.yaml", "listen: [ { address: 0.0.0.0:0 } ]\n".utf8)
            let output = try await place.run(Larder.executable, ["serve", "--config", file], within: .seconds(10))
            #expect(output.status == 2, "\(output)")
            #expect(output.err.contains("0.0.0.0:0: a listener beyond loopback needs access.clients"), "\(output)")
        }
    }

    @Test func `a configuration that is not there refuses to start`() async throws {
        try await Workplace.with { place in
            let output = try await place.run(
                Larder.executable, ["serve", "--config", place.path("nothing.yaml")], within: .seconds(10))
            #expect(output.status == 2 && output.err.contains("nothing.yaml"), "\(output)")
        }
    }
}

@Suite("Signals", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct SignalTests {
    /// So that what one connection has heard of, every one has.
    private static let oneWorker = "workers: 1"
    private static let closed = "access: { rules: [ deny: { reason: closed for today } ] }"

    private func rewrite(_ larder: Larder, access: String) throws {
        try larder.place.write(
            "larder.yaml",
            Larder.configuration(
                in: larder.place, adminPort: larder.adminPort, access: access, more: Self.oneWorker
            ).utf8)
    }

    private func reload(_ larder: Larder, until said: String) async throws {
        larder.child.signal(SIGHUP)
        try await eventually("\(said); larder said: \(larder.child.errors)") { larder.child.errors.contains(said) }
    }

    @Test func `SIGHUP puts new rules in force, for connections that are open too`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/a", "a\n".utf8)
            let larder = try await Larder.start(in: place, access: Self.closed, more: Self.oneWorker)
            let refused = try await place.curl("\(nginx.url)/a", through: larder)
            #expect(refused.status == 403, "\(refused)")
            #expect(refused.fields["proxy-status"]?.contains("closed for today") == true, "\(refused)")

            let socket = connectLoopback(larder.port)
            try #require(socket >= 0)
            defer { close(socket) }
            let open = ScriptedConnection(fd: socket)
            let request = "GET \(nginx.url)/a HTTP/1.1\r\nHost: 127.0.0.1:\(nginx.port)\r\nX-No-Body: 1\r\n\r\n"
            let before = try await blocking { open.send(request) ? open.readHead() : nil }
            #expect(before?.hasPrefix("HTTP/1.1 403 ") == true)
            let length = before?.components(separatedBy: "\r\n").first { $0.hasPrefix("Content-Length: ") }
            let count = try #require(length.flatMap { Int($0.dropFirst(16)) })
            _ = try await blocking { (0..<count).map { _ in open.receive(1) }.count }

            try rewrite(larder, access: Larder.openLoopback)
            try await reload(larder, until: "is in force")
            // The control thread has said so; the worker hears it at its next turn.
            try await eventually("the new rules") {
                try await place.curl("\(nginx.url)/a", through: larder).status == 200
            }
            let after = try await blocking { open.send(request) ? open.readHead() : nil }
            #expect(after?.hasPrefix("HTTP/1.1 200 ") == true, "\(after ?? "closed")")
        }
    }

    @Test func `a wrong reload keeps the old rules and says why`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/a", "a\n".utf8)
            let larder = try await Larder.start(in: place)
            try rewrite(larder, access: "access: { rules: [ deny: { hots: [ x ] } ] }")
            try await reload(larder, until: "the old configuration stays in force")
            #expect(larder.child.errors.contains("larder.yaml:"), "\(larder.child.errors)")
            #expect(larder.child.errors.contains("did you mean"), "\(larder.child.errors)")
            #expect(try await place.curl("\(nginx.url)/a", through: larder).status == 200)
        }
    }

    @Test func `SIGTERM lets what is under way end, takes nothing new, and ends with 0`() async throws {
        let gate = Gate()
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
            gate.wait()
            connection.send("def")
        } _: { origin in
            defer { gate.open() }
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place, more: "timeouts: { drain: 20s }")
                async let slow = place.curl("\(origin.url)/slow", through: larder)
                try await eventually("the request at the origin") { !origin.heads.withLock { $0.isEmpty } }
                larder.child.signal(SIGTERM)
                try await eventually("the listener to close") {
                    let socket = connectLoopback(larder.port)
                    if socket >= 0 { close(socket) }
                    return socket < 0
                }
                #expect(larder.child.isRunning)
                gate.open()
                let reply = try await slow
                #expect(reply.exit == 0 && reply.text == "abcdef", "\(reply)")
                #expect(try await larder.child.end(within: .seconds(10)) == 0)
            }
        }
    }

    @Test func `SIGTERM waits no longer than timeouts.drain`() async throws {
        let gate = Gate()
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc")
            gate.wait()
        } _: { origin in
            defer { gate.open() }
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place, more: "timeouts: { drain: 300ms }")
                async let stuck = place.curl("\(origin.url)/stuck", through: larder)
                try await eventually("the request at the origin") { !origin.heads.withLock { $0.isEmpty } }
                larder.child.signal(SIGTERM)
                #expect(try await larder.child.end(within: .seconds(10)) == 0)
                #expect(try await stuck.exit == 18, "what could not be completed is seen to be cut off")
            }
        }
    }

    /// Starts Larder as a service manager does that has opened the socket.
    private static func serve(on listener: CInt, in place: Workplace) async throws -> Larder {
        let adminPort = FreePort.take()
        let text = Larder.configuration(in: place, adminPort: adminPort)
            .replacingOccurrences(of: "address: 127.0.0.1:0", with: "address: systemd:proxy")
        let program = [
            "/bin/sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=proxy exec \"$0\" \"$@\"", Larder.executable,
        ]
        return try await Larder.start(
            in: place, text: text, adminPort: adminPort, program: program, inherited: listener)
    }

    /// While one process waits for its last request, and ends, there are clients that have connected and said nothing. Each gets an answer, of this
    /// process or of the next.
    @Test func `a restart behind a socket of the service manager closes no connection without an answer`() async throws
    {
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        } _: { origin in
            try await Workplace.with { place in
                let listener = try LoopbackListener()
                let first = try await Self.serve(on: listener.fd, in: place)
                #expect(try await place.curl("\(origin.url)/", through: first).text == "ok")
                let sockets = (0..<12).map { _ in connectLoopback(listener.port) }
                defer { for socket in sockets where socket >= 0 { close(socket) } }
                first.child.signal(SIGTERM)
                #expect(try await first.child.end(within: .seconds(20)) == 0)
                let second = try await Self.serve(on: listener.fd, in: place)
                for socket in sockets {
                    let connection = ScriptedConnection(fd: socket)
                    connection.send("GET \(origin.url)/ HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n\r\n")
                    #expect(connection.readHead()?.hasPrefix("HTTP/1.1 200 ") == true)
                }
                #expect(second.child.isRunning)
            }
        }
    }

    @Test func `SIGTERM with idle connections only ends soon`() async throws {
        try await Workplace.with { place in
            let larder = try await Larder.start(in: place)
            let sockets = (0..<8).map { _ in connectLoopback(larder.port) }
            defer { for socket in sockets where socket >= 0 { close(socket) } }
            try await eventually("eight clients") { try await larder.statistic("clients", "open") == 8 }
            larder.child.signal(SIGTERM)
            #expect(try await larder.child.end(within: .seconds(10)) == 0)
        }
    }
}

@Suite("log.debug", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct DebugLogTests {
    /// What the lines of each category begin with, behind the URL or origin that they name.
    private static let said = [
        ("connections", ": opened to 127.0.0.1:"), ("connections", ": used again, 1 open, 0 idle, 0 waiting"),
        ("connections", ": idle, 1 open, 1 idle, 0 waiting"), ("dns", "localhost: 127.0.0.1"),
        ("requests", "/a?token=***: sent"), ("requests", "/a?token=***: answered with 404"),
        ("routes", "routes[1], direct"),
    ]

    private func run(_ log: String, in place: Workplace) async throws -> [Substring] {
        let nginx = try await Nginx.start(in: place)
        let adminPort = FreePort.take()
        let text = Larder.configuration(
            in: place, adminPort: adminPort,
            access: "access: { rules: [ allow: { host: localhost, address: [ 127.0.0.1 ], port: [ 1-65535 ] } ] }",
            more:
                "workers: 1\nroutes: [ { match: { host: localhost }, via: direct } ]\ndns: { hosts: { localhost: 127.0.0.1 } }"
        )
        .replacing("level: info", with: log)
        let larder = try await Larder.start(in: place, text: text, adminPort: adminPort)
        for path in ["a?token=abcdef", "b"] {
            _ = try await place.curl("http://localhost:\(nginx.port)/\(path)", through: larder)
        }
        larder.child.signal(SIGTERM)
        #expect(try await larder.child.end(within: .seconds(60)) == 0)
        return larder.child.errors.split(separator: "\n").filter { $0.contains(" debug: ") }
    }

    @Test func `each category says what happens to a request, without its secrets`() async throws {
        try await Workplace.with { place in
            let lines = try await run("level: debug", in: place)
            for (category, text) in Self.said {
                let isThere = lines.contains { $0.hasPrefix("larder: debug: \(category): ") && $0.contains(text) }
                #expect(isThere, "\(category): \(text) is not in \(lines.joined(separator: "\n"))")
            }
            #expect(!lines.contains { $0.contains("abcdef") })
        }
    }

    @Test func `lines about one request begin with the ID of its line in the access log`() async throws {
        try await Workplace.with { place in
            let lines = try await run("level: debug, debug: [ requests, dns, routes ]", in: place)
            Self.compare(lines.map { String($0) }, with: textOfFile(place.path("access.jsonl")))
        }
    }

    private static func compare(_ lines: [String], with log: String) {
        let requests = log.split(separator: "\n")
        #expect(requests.count == 2, "\(log)")
        for (request, path) in zip(requests, ["/a?token=***", "/b"]) {
            // The values of `time` and `id` come first.
            let id = String(request.split(separator: "\"")[7])
            let said = lines.filter { $0.split(separator: " ").dropFirst(3).first.map { String($0) } == id }
            #expect(
                said.contains { $0.hasPrefix("larder: debug: requests: ") && $0.hasSuffix("\(path): sent") }, "\(lines)"
            )
            #expect(said.contains { $0.hasPrefix("larder: debug: requests: ") && $0.hasSuffix("answered with 404") })
            #expect(said.contains { $0.hasPrefix("larder: debug: routes: ") && $0.hasSuffix("routes[1], direct") })
        }
    }

    @Test func `log.debug chooses the categories`() async throws {
        try await Workplace.with { place in
            let lines = try await run("level: debug, debug: [ dns, routes ]", in: place)
            let categories = Set(lines.compactMap { $0.split(separator: " ").dropFirst(2).first })
            #expect(
                categories.isSubset(of: ["dns:", "routes:", "the"]) && categories.isSuperset(of: ["dns:", "routes:"]))
        }
    }

    @Test func `without the level debug there are no such lines`() async throws {
        try await Workplace.with { place in
            let lines = try await run("level: info, debug: [ dns ]", in: place)
            #expect(lines.isEmpty)
        }
    }
}
