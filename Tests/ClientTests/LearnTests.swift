import Foundation
import enum ProgramUnderTest.FreePort
import Testing

/// A job with real clients runs once, `larder learn` writes the rules that it needs, and with them it runs again, and nothing else does.
@Suite("larder learn", .enabled(if: GitServer.isInstalled, "packages git, fcgiwrap, nginx-light"))
struct LearnTests {
    /// A server with a repository, and a proxy that allows it everything.
    private func with(access: String? = nil, _ body: (Workplace, GitServer, Larder) async throws -> Void) async throws {
        try await Workplace.with { place in
            let server = try await GitServer.start(in: place)
            let project = place.path("repositories/project.git")
            try await git(place, "init", "-q", "--bare", project)
            try await git(place, "-C", project, "config", "http.receivepack", "true")
            try await git(place, "init", "-q", place.path("seed"))
            try await commit(place, "seed", file: "first")
            try await git(place, "-C", place.path("seed"), "push", "-q", project, "main")
            let learn = "learn: { directory: \(place.path("learn")) }"
            let larder =
                if let access {
                    try await Larder.start(
                        in: place, access: access.replacingOccurrences(of: "PORT", with: "\(server.nginx.port)"),
                        more: learn)
                } else { try await Larder.start(in: place, more: learn) }
            try await body(place, server, larder)
        }
    }

    @discardableResult
    private func git(_ place: Workplace, _ words: String..., through larder: Larder? = nil) async throws -> String {
        let output = try await place.run("git", words, environment: larder?.proxy ?? [:])
        try #require(output.status == 0, "git \(words): \(output)")
        return output.out
    }

    private func commit(_ place: Workplace, _ clone: String, file: String) async throws {
        try place.write("\(clone)/\(file)", "content of \(file)\n".utf8)
        try await git(place, "-C", place.path(clone), "add", ".")
        try await git(place, "-C", place.path(clone), "commit", "-q", "-m", "add \(file)")
    }

    /// Another configuration of the same proxy, which is in force when this returns.
    private func adopt(_ larder: Larder, access: String) async throws {
        try larder.place.write(
            "larder.yaml", Larder.configuration(in: larder.place, adminPort: larder.adminPort, access: access).utf8)
        larder.child.signal(SIGHUP)
        _ = try await eventually("the learnt rules are in force; it said: \(larder.child.errors)") {
            larder.child.errors.contains("is in force") ? true : nil
        }
    }

    private func learn(_ larder: Larder, _ words: String...) async throws -> Workplace.Output {
        try await larder.place.run(Larder.executable, ["learn"] + words + ["--config", larder.configuration])
    }

    @Test func `what git and curl needed is allowed, and a push and other paths are not`() async throws {
        try await with { place, server, larder in
            let started = try await learn(larder, "start", "nightly", "--client", "127.0.0.1")
            #expect(started.status == 0 && started.out.contains("learning nightly"), "\(started)")
            try await git(place, "clone", "-q", server.url, place.path("first"), through: larder)
            let fetched = try await place.curl(["\(server.nginx.url)/file"], through: larder)
            #expect(fetched.heads.contains("HTTP/1.1"))
            #expect(try await learn(larder, "stop", "nightly").status == 0)
            let list = try await learn(larder, "list")
            #expect(list.out.contains("nightly") && list.out.contains("1 run "), "\(list)")

            let shown = try await learn(larder, "show", "nightly")
            #expect(shown.status == 0)
            for line in [
                "path: [ \"/file\", \"/git/project.git/info/refs\" ]", "path: [ \"/git/project.git/git-upload-pack\" ]",
                "client: [ \"127.0.0.1\" ]",
            ] { #expect(shown.out.contains(line), "\(shown.out)") }
            #expect(!shown.out.contains("*"), "\(shown.out)")
            let difference = try await learn(larder, "show", "nightly", "--diff")
            #expect(
                difference.out == "the rules in force allow what this job needs, and nothing else\n", "\(difference)")

            try await adopt(larder, access: shown.out)
            try await git(place, "clone", "-q", server.url, place.path("second"), through: larder)
            try await commit(place, "second", file: "third")
            let push = try await place.run(
                "git", ["-C", place.path("second"), "push", "-q", "origin", "main"], environment: larder.proxy)
            #expect(push.status != 0 && push.err.contains("403"), "\(push)")
            let other = try await place.curl(["\(server.nginx.url)/other"], through: larder)
            #expect(other.heads.contains("403"), "\(other)")
        }
    }

    @Test func `a job has what comes by its listener`() async throws {
        try await Workplace.with { place in
            try await ScriptedOrigin.with({ _, connection in
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            }) { origin in
                let (people, builds, adminPort) = (FreePort.take(), FreePort.take(), FreePort.take())
                let text = Larder.configuration(
                    in: place, port: people, adminPort: adminPort, more: "learn: { directory: \(place.path("learn")) }",
                    listener: ", name: people }, { address: 127.0.0.1:\(builds), name: builds")
                let larder = try await Larder.start(in: place, text: text, adminPort: adminPort)
                let unknown = try await learn(larder, "start", "nightly", "--listener", "build")
                #expect(unknown.status != 0 && unknown.err.contains("builds"), "\(unknown)")
                let started = try await learn(larder, "start", "nightly", "--listener", "builds")
                #expect(started.status == 0 && started.out.contains("builds"), "\(started)")
                let other = try await place.curl(
                    ["-x", "http://127.0.0.1:\(people)", "\(origin.url)/other"], through: nil)
                let job = try await place.curl(["-x", "http://127.0.0.1:\(builds)", "\(origin.url)/job"], through: nil)
                #expect(other.status == 200 && job.status == 200, "\(other) \(job)")
                #expect(try await learn(larder, "stop", "nightly").status == 0)
                let shown = try await learn(larder, "show", "nightly")
                #expect(shown.out.contains("/job") && !shown.out.contains("/other"), "\(shown)")
                #expect(shown.out.contains("listener: [ \"builds\" ]"), "\(shown)")
            }
        }
    }

    @Test func `a command line that is wrong changes nothing`() async throws {
        try await with { place, server, larder in
            for (words, status, part) in [
                (["start"], 2, "one job"), (["begin", "x"], 2, "start, stop, list, show or forget"),
                (["start", "a/b"], 2, "letters"), (["start", "x", "--allow"], 2, "--client, --user or --listener"),
                (["show", "nothing"], 1, "nothing is known"), (["stop", "nothing"], 1, "does not learn"),
                (["list", "--diff"], 2, "only learn show"), (["stop", "x", "--for", "1h"], 2, "only learn start"),
            ] as [([String], Int32, String)] {
                let output = try await place.run(
                    Larder.executable, ["learn"] + words + ["--config", larder.configuration])
                #expect(output.status == status && output.err.contains(part), "\(words): \(output)")
            }
        }
    }

    @Test func `with the profile source-read git fetches, and cannot push`() async throws {
        let access = """
            access:
              rules: [ allow: { profile: source-read, host: 127.0.0.1, port: PORT, path: /git/project.git } ]
            """
        try await with(access: access) { place, server, larder in
            try await git(place, "clone", "-q", server.url, place.path("ours"), through: larder)
            try await commit(place, "ours", file: "second")
            let push = try await place.run(
                "git", ["-C", place.path("ours"), "push", "-q", "origin", "main"], environment: larder.proxy)
            #expect(push.status != 0 && push.err.contains("403"), "\(push)")
            try await git(place, "-C", place.path("ours"), "fetch", "-q", "origin", through: larder)
            let other = try await place.curl(["\(server.nginx.url)/file"], through: larder)
            #expect(other.heads.contains("403"), "\(other)")
        }
    }
}

/// The same for what is inside opened tunnels, and for a package that pip downloads.
@Suite("larder learn: opened tunnels and packages")
struct LearnInsideTests {
    private func adopt(_ larder: Larder, access: String, more: String) async throws {
        try larder.place.write(
            "larder.yaml",
            Larder.configuration(in: larder.place, adminPort: larder.adminPort, access: access, more: more).utf8)
        larder.child.signal(SIGHUP)
        _ = try await eventually("the learnt rules are in force; it said: \(larder.child.errors)") {
            larder.child.errors.contains("is in force") ? true : nil
        }
    }

    /// Begins a run, plays, and returns the rules.
    private func learnt(_ larder: Larder, _ play: () async throws -> Void) async throws -> String {
        let started = try await larder.command("learn", "start", "nightly")
        #expect(started.out.contains("every client"), "\(started)")
        try await play()
        #expect(try await larder.command("learn", "stop", "nightly").status == 0)
        return try await larder.command("learn", "show", "nightly").out
    }

    @Test(.enabled(if: Apache.isInstalled, "package apache2-bin"))
    func `curl inside an opened tunnel gets its path, and no other`() async throws {
        try await Workplace.with { place in
            let tls = try await place.certificate()
            let apache = try await Apache.start(in: place, tls: tls, user: "fleet", password: "sesame")
            let made = try await place.run(
                Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", "localhost"])
            try #require(made.status == 0, "\(made)")
            let more = """
                tls: { ca_file: \(tls.certificate) }
                intercept:
                  ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                  hosts: [ localhost ]
                learn: { directory: \(place.path("learn")) }
                """
            let larder = try await Larder.start(
                in: place, access: "access: { rules: [ allow: { address: 127.0.0.1, port: 1-65535 } ] }", more: more)
            func ask(_ path: String) async throws -> Workplace.Reply {
                try await place.curl(
                    [
                        "--cacert", place.path("ca/root.pem"), "-u", "fleet:sesame",
                        "https://localhost:\(apache.port)\(path)",
                    ],
                    through: larder)
            }
            let rules = try await learnt(larder) {
                let first = try await ask("/basic/file")
                #expect(first.text == "for fleet", "\(first)")
            }
            #expect(rules.contains("method: [ CONNECT ], intercept: yes"), "\(rules)")
            #expect(rules.contains("path: [ \"/basic/file\" ]"), "\(rules)")
            try await adopt(larder, access: rules, more: more)
            #expect(try await ask("/basic/file").text == "for fleet", "\(larder.child.errors)")
            let denied = try await ask("/digest/file")
            #expect(denied.heads.contains("403") && denied.text.contains("access-denied"), "\(denied)")
        }
    }

    @Test(
        .enabled(
            if: Nginx.isInstalled && installed("pip3") != nil && installed("python3") != nil,
            "packages python3-pip, nginx-light"))
    func `pip needs what the recipe says of its paths`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            let wheel = "larder_demo-1.0-py3-none-any.whl"
            try place.makeDirectory("www/files")
            let made = try await place.run("python3", ["-c", Self.makeWheel, place.path("www/files/\(wheel)")])
            try #require(made.status == 0, "\(made)")
            // Nginx runs as another user than the test.
            try place.write("www/files/\(wheel)", place.bytes("www/files/\(wheel)"))
            try place.write(
                "www/simple/larder-demo/index.html", "<a href=\"../../files/\(wheel)\">\(wheel)</a>".utf8)
            let more = """
                recipes: [ { use: python, hosts: [ 127.0.0.1 ] } ]
                learn: { directory: \(place.path("learn")) }
                """
            let larder = try await Larder.start(in: place, more: more)
            func download(_ directory: String) async throws -> Workplace.Output {
                try await place.run(
                    "pip3",
                    [
                        "download", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-deps",
                        "--proxy", larder.url, "--index-url", "\(nginx.url)/simple/", "--trusted-host", "127.0.0.1",
                        "--retries", "0", "-d", place.path(directory), "larder-demo",
                    ])
            }
            let rules = try await learnt(larder) {
                let output = try await download("first")
                #expect(output.status == 0, "\(output)")
            }
            #expect(
                rules.contains(
                    "path: [ \"/files/{project}-{version}.whl{|.metadata|.asc}\", \"/{|+}simple/{project}/\" ]"),
                "\(rules)"
            )
            #expect(rules.contains("recipe python"), "\(rules)")
            try await adopt(larder, access: rules, more: more)
            let again = try await download("second")
            #expect(again.status == 0, "\(again) \(larder.child.errors)")
            let other = try await place.curl(["\(nginx.url)/file"], through: larder)
            #expect(other.heads.contains("403"), "\(other)")
        }
    }

    /// A wheel by hand: what PEP 427 asks for and nothing else.
    private static let makeWheel = """
        import sys, zipfile
        with zipfile.ZipFile(sys.argv[1], "w") as wheel:
            wheel.writestr("larder_demo.py", "x = 1\\n")
            info = "larder_demo-1.0.dist-info/"
            wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: larder-demo\\nVersion: 1.0\\n")
            wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
            wheel.writestr(info + "RECORD", "")
        """
}
