import Compression
import Message
import Routing
import Rules
import Settings
import TLS
import Testing

@Suite("Files that an index promises")
struct IndexDigestScenarios {
    private static let rules = """
        rules:
          - match: { path: "/simple/{project}/" }
            ttl: 1h
            release: python-index
          - match: { path: "/files/*" }
            ttl: 1h
            digest: { from: index, algorithm: sha256 }
        """

    private static func digits(_ body: String) -> String {
        String(decoding: hexadecimal(Digest.sha256(body.utf8)), as: UTF8.self)
    }

    private static func index(_ body: String) -> String {
        #"{ "files": [ { "filename": "a.whl", "url": "../../files/a.whl", "hashes": { "sha256": "\#(digits(body))" } } ] }"#
    }

    private static func page(_ body: String) -> String {
        "<!DOCTYPE html><a href=\"../../files/a.whl#sha256=\(digits(body))\">a.whl</a>"
    }

    /// Lets a client get an index, and waits until Larder has read it.
    private static func publish(_ s: Scenario, _ lines: [String], _ body: [UInt8], digests: UInt64 = 1) throws {
        s.origin.expects("GET /simple/a/").replies(200, lines, body)
        #expect(try s.client().get("/simple/a/").status == 200)
        try s.expect(.digestsPromised, digests)
    }

    /// One client's requests have a credential from now on, so what it gets is for it alone.
    private static func giveCredential(to client: UInt32, _ s: Scenario) throws {
        try s.adopt { configuration, files in
            try configuration.read(cache: Self.rules, files)
            configuration.credentials = [
                s.credential(isUnasked: true) { $0.clients = [AddressRange(IPAddress(v4: client))] }
            ]
        }
    }

    static let forms: [(lines: [String], body: @Sendable (String) -> [UInt8])] = [
        (["Content-Type: application/vnd.pypi.simple.v1+json"], { Array(index($0).utf8) }),
        (["Content-Type: application/json", "Content-Encoding: gzip"], { gzip(Array(index($0).utf8)) }),
        (["Content-Type: text/html"], { Array(page($0).utf8) }),
    ]
    @Test(arguments: forms.indices, [true, false]) func `a file with another digest is neither stored nor served`(
        _ form: Int, isRight: Bool
    ) throws {
        try scenario(cache: Self.rules) { s in
            let (lines, body) = Self.forms[form]
            try Self.publish(s, lines, body(isRight ? "wheel" : "another"))
            let client = try s.client()
            s.origin.expects("GET /files/a.whl").replies(200, body: "wheel")
            if isRight {
                #expect(try client.get("/files/a.whl").text == "wheel")
                #expect(try client.get("/files/a.whl").cacheStatus.hasPrefix("larder; hit"))
            } else {
                s.origin.expects("GET /files/a.whl", "Cache-Control: no-cache").replies(200, body: "wheel")
                #expect(try client.get("/files/a.whl").status == 502)
                #expect(s.count(.digestMismatches) == 2)
            }
        }
    }

    @Test(arguments: forms.indices) func `a stored file that a newer index contradicts is asked for again`(_ form: Int)
        throws
    {
        try scenario(cache: Self.rules) { s in
            let (lines, body) = Self.forms[form]
            try Self.publish(s, lines, body("old"))
            let client = try s.client()
            s.origin.expects("GET /files/a.whl").replies(200, body: "old")
            #expect(try client.get("/files/a.whl").text == "old")
            #expect(try client.get("/files/a.whl").cacheStatus.hasPrefix("larder; hit"))
            s.origin.expects("GET /simple/a/").replies(200, lines, body("new"))
            #expect(try client.get("/simple/a/", "Cache-Control: no-cache").status == 200)
            try s.expect(.digestsPromised, 2)
            s.origin.expects("GET /files/a.whl", "!If-None-Match").replies(200, body: "new")
            #expect(try client.get("/files/a.whl").text == "new")
            #expect(try client.get("/files/a.whl").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a stored file that a newer index contradicts is not served while the origin still has it`() throws {
        try scenario(cache: Self.rules) { s in
            let (lines, body) = Self.forms[0]
            try Self.publish(s, lines, body("old"))
            let client = try s.client()
            s.origin.expects("GET /files/a.whl").replies(200, "ETag: \"1\"", body: "old")
            #expect(try client.get("/files/a.whl").text == "old")
            s.origin.expects("GET /simple/a/").replies(200, lines, body("new"))
            #expect(try client.get("/simple/a/", "Cache-Control: no-cache").status == 200)
            try s.expect(.digestsPromised, 2)
            #expect(try client.get("/files/a.whl", "Cache-Control: only-if-cached").status == 504)
            s.origin.expects("GET /files/a.whl", "!If-None-Match").replies(200, body: "old")
            s.origin.expects("GET /files/a.whl", "Cache-Control: no-cache").replies(200, body: "old")
            #expect(try client.get("/files/a.whl").status == 502)
        }
    }

    @Test(arguments: [true, false]) func `a file that was stored before its index is compared when the index is read`(
        _ isRight: Bool
    ) throws {
        try scenario(cache: Self.rules) { s in
            let client = try s.client()
            s.origin.expects("GET /files/a.whl").replies(200, body: "wheel")
            #expect(try client.get("/files/a.whl").text == "wheel")
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body(isRight ? "wheel" : "another"))
            if !isRight { s.origin.expects("GET /files/a.whl", "!Cache-Control").replies(200, body: "another") }
            let file = try client.get("/files/a.whl")
            #expect(file.text == (isRight ? "wheel" : "another"))
            #expect(file.cacheStatus.hasPrefix("larder; hit") == isRight)
        }
    }

    @Test func `a file that was stored before rules had its digest is compared with its first hit`() throws {
        try scenario(cache: "rules: [ { match: { path: \"/files/*\" }, ttl: 1h } ]") { s in
            let client = try s.client()
            s.origin.expects("GET /files/a.whl").replies(200, body: "wheel")
            #expect(try client.get("/files/a.whl").text == "wheel")
            try s.adopt { configuration, files in try configuration.read(cache: Self.rules, files) }
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("another"))
            s.origin.expects("GET /files/a.whl").replies(200, body: "another")
            // It is a hit until it has been compared.
            try s.eventually("the other wheel") { try client.get("/files/a.whl").text == "another" }
            #expect(try client.get("/files/a.whl").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `an index for one client leaves what others have stored alone`() throws {
        try scenario(cache: Self.rules) { s in
            try Self.giveCredential(to: 0x7F00_0002, s)
            let (one, others) = (try s.client(from: 0x7F00_0002), try s.client())
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("wheel"))
            s.origin.expects("GET /files/a.whl", "!Authorization").replies(200, body: "wheel")
            #expect(try others.get("/files/a.whl").text == "wheel")
            s.origin.expects("GET /simple/a/", "Authorization").replies(
                200, Self.forms[0].lines, Self.forms[0].body("another"))
            #expect(try one.get("/simple/a/").status == 200)
            try s.expect(.digestsPromised, 2)
            #expect(try others.get("/files/a.whl").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test(arguments: ["/files/./a.whl", "//files/a.whl", "/files/%61.whl", "/files;x/a.whl", "/x/../files/a.whl"])
    func `the digest holds however the path of the file is spelled`(_ path: String) throws {
        try scenario(cache: Self.rules) { s in
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("another"))
            s.origin.expects("GET \(path)").replies(200, body: "wheel")
            s.origin.expects("GET \(path)", "Cache-Control: no-cache").replies(200, body: "wheel")
            #expect(try s.client().get(path).status == 502)
            #expect(s.count(.digestMismatches) == 2)
        }
    }

    @Test func `an index at an address that may mean another document promises nothing`() throws {
        try scenario(cache: Self.rules) { s in
            s.origin.expects("GET /upload/..%2fsimple/a/..%2f").replies(
                200, Self.forms[0].lines, Self.forms[0].body("another"))
            s.origin.expects("GET /simple/./a/").replies(200, Self.forms[0].lines, Self.forms[0].body("another"))
            for path in ["/upload/..%2fsimple/a/..%2f", "/simple/./a/"] {
                let index = try s.client().get(path)
                #expect(index.status == 200)
            }
            s.origin.expects("GET /files/a.whl").replies(200, body: "wheel")
            let file = try s.client().get("/files/a.whl")
            #expect(file.text == "wheel")
            #expect(s.count(.digestsPromised) == 0)
        }
    }

    @Test func `what an index says to some clients holds for them alone`() throws {
        try scenario(cache: Self.rules) { s in
            try Self.giveCredential(to: 0x7F00_0002, s)
            let (some, others) = (try s.client(from: 0x7F00_0002), try s.client())
            s.origin.expects("GET /simple/a/", "Authorization").replies(
                200, Self.forms[0].lines, Self.forms[0].body("another"))
            #expect(try some.get("/simple/a/").status == 200)
            try s.expect(.digestsPromised, 1)
            s.origin.expects("GET /files/a.whl", "!Authorization").replies(200, body: "wheel")
            #expect(try others.get("/files/a.whl").text == "wheel")
            s.origin.expects("GET /files/a.whl", "Authorization").replies(200, body: "wheel")
            s.origin.expects("GET /files/a.whl", "Authorization", "Cache-Control: no-cache").replies(200, body: "wheel")
            #expect(try some.get("/files/a.whl").status == 502)
            // Their own index counts for them, and not what all are told.
            s.origin.expects("GET /simple/a/", "!Authorization").replies(
                200, Self.forms[0].lines, Self.forms[0].body("wheel"))
            #expect(try others.get("/simple/a/").status == 200)
            try s.expect(.digestsPromised, 2)
            s.origin.expects("GET /files/a.whl", "Authorization", "Cache-Control: no-cache").replies(
                200, body: "another")
            #expect(try some.get("/files/a.whl").text == "another")
        }
    }

    @Test func `an index for all holds for those who log in as well`() throws {
        try scenario(cache: Self.rules) { s in
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("another"))
            try s.adopt { configuration, files in
                try configuration.read(cache: Self.rules, files)
                configuration.credentials = [s.credential(isUnasked: true)]
            }
            s.origin.expects("GET /files/a.whl", "Authorization").replies(200, body: "wheel")
            s.origin.expects("GET /files/a.whl", "Authorization", "Cache-Control: no-cache").replies(200, body: "wheel")
            #expect(try s.client().get("/files/a.whl").status == 502)
        }
    }

    @Test(arguments: ["Cookie", "Accept, X-Tenant", "*"]) func `an index that depends on the client promises nothing`(
        _ vary: String
    ) throws {
        try scenario(cache: Self.rules) { s in
            s.origin.expects("GET /simple/a/").replies(
                200, Self.forms[0].lines + ["Vary: \(vary)"], Self.forms[0].body("another"))
            let index = try s.client().get("/simple/a/")
            #expect(index.status == 200)
            s.origin.expects("GET /files/a.whl").replies(200, body: "wheel")
            let file = try s.client().get("/files/a.whl")
            #expect(file.text == "wheel")
            #expect(s.count(.digestsPromised) == 0)
        }
    }

    @Test func `what no index names is stored as without one`() throws {
        try scenario(cache: Self.rules) { s in
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("another"))
            let client = try s.client()
            s.origin.expects("GET /files/b.whl").replies(200, body: "wheel")
            #expect(try client.get("/files/b.whl").text == "wheel")
            #expect(try client.get("/files/b.whl").cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a newer index takes the place of the one before`() throws {
        try scenario(cache: Self.rules) { s in
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("another"))
            s.origin.expects("GET /simple/a/").replies(200, Self.forms[0].lines, Self.forms[0].body("wheel"))
            #expect(try s.client().get("/simple/a/", "Cache-Control: no-cache").status == 200)
            try s.expect(.digestsPromised, 2)
            s.origin.expects("GET /files/a.whl").replies(200, body: "wheel")
            let file = try s.client().get("/files/a.whl")
            #expect(file.text == "wheel")
        }
    }

    @Test func `an index is read once, and one that is no index promises nothing`() throws {
        try scenario(cache: Self.rules) { s in
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("wheel"))
            let client = try s.client()
            for _ in 0..<3 { #expect(try client.get("/simple/a/").cacheStatus.hasPrefix("larder; hit")) }
            for (name, lines, body) in [
                ("b", ["Content-Type: application/json"], "{"), ("c", ["Content-Type: text/plain"], Self.page("wheel")),
                ("d", ["Content-Type: application/json", "Content-Encoding: gzip"], Self.index("wheel")),
            ] {
                s.origin.expects("GET /simple/\(name)/").replies(200, lines, Array(body.utf8))
                #expect(try client.get("/simple/\(name)/").status == 200)
            }
            // The index that is asked for last is read last, and has three digests: no other sum comes to four.
            let pages = [Self.page("1"), Self.page("2"), Self.page("3")].joined()
            s.origin.expects("GET /simple/e/").replies(200, ["Content-Type: text/html"], Array(pages.utf8))
            #expect(try client.get("/simple/e/").status == 200)
            try s.expect(.digestsPromised, 4)
        }
    }

    /// Whoever can make an index of one use could make the files of another fail.
    @Test(arguments: [true, false]) func `an index promises digests for the files of its own use alone`(isOneUse: Bool)
        throws
    {
        try scenario(cache: Self.rules) { configuration, _ in
            for index in configuration.cache.rules.indices {
                configuration.cache.rules[index].recipe = "python"
                configuration.cache.rules[index].line = isOneUse ? 1 : index
            }
        } _: { s in
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("another"))
            s.origin.expects("GET /files/a.whl").replies(200, body: "wheel")
            if isOneUse { s.origin.expects("GET /files/a.whl").replies(200, body: "wheel") }
            #expect(try s.client().get("/files/a.whl").status == (isOneUse ? 502 : 200))
        }
    }

    @Test func `after a restart an index is read when it is served`() throws {
        let disk = "disk: { path: DIRECTORY/disk, size: 64MiB }\n"
        try scenario(cache: disk + Self.rules) { s in
            try Self.publish(s, Self.forms[0].lines, Self.forms[0].body("another"))
            try s.restart()
            #expect(try s.client().get("/simple/a/").cacheStatus.hasPrefix("larder; hit"))
            try s.expect(.digestsPromised, 1)
            s.origin.expects("GET /files/a.whl").replies(200, body: "wheel")
            s.origin.expects("GET /files/a.whl", "Cache-Control: no-cache").replies(200, body: "wheel")
            #expect(try s.client().get("/files/a.whl").status == 502)
        }
    }
}
