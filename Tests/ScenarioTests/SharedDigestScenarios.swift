import Message
import Server
import Storage
import TLS
import Testing

@Suite("One stored body for all addresses with its digest")
struct SharedDigestScenarios {
    private static let rule = """
        rules:
          - match: { host: [ 127.0.0.1, localhost ], path: "*/sha256/{hex:64}" }
            key: { digest: yes, host: mirror.example.org }
            digest: { from: path, algorithm: sha256 }
            immutable: yes
        """
    private static func path(_ directory: String, of body: String) -> String {
        let digits = Digest.sha256(body.utf8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return "\(directory)/sha256/\(digits)"
    }
    private static let body = String(repeating: "0123456789", count: 2_000)
    private static let (first, second) = (path("/a", of: body), path("/elsewhere/b", of: body))
    private static let (alice, bob): (UInt32, UInt32) = (0x7F00_0001, 0x7F00_0002)

    @Test func `addresses of mirrors and directories share one stored body, which counts once`() throws {
        try scenario(cache: Self.rule) { s in
            let mirror = "http://localhost:\(s.origin.port)"
            s.origin.expects("GET \(Self.first)").replies(200, "ETag: \"1\"", body: Self.body)
            let client = try s.client()
            #expect(try client.get(Self.first).text == Self.body)
            for address in [Self.second, "\(mirror)\(Self.first)", "\(mirror)\(Self.second)"] {
                let seen = try client.get(address)
                #expect(seen.cacheStatus.hasPrefix("larder; hit") && seen.text == Self.body, "\(address)")
            }
            #expect(s.proxy.shared.tier.memory.statistics.recordCount == 1)
        }
    }

    /// Purges, listings and exports select it by these.
    @Test func `the addresses that it was fetched from and served for are stored with it, each once`() throws {
        try scenario(cache: Self.rule) { s in
            let others = ["http://localhost:\(s.origin.port)\(Self.first)", s.origin.url(Self.second)]
            s.origin.expects("GET \(Self.first)").replies(200, "ETag: \"1\"", body: Self.body)
            let client = try s.client()
            for address in [Self.first] + others + [Self.first] + others {
                #expect(try client.get(address).text == Self.body)
            }
            var addresses: [[String]] = []
            var cursor: RecordCursor?
            repeat {
                let (records, next) = s.proxy.shared.tier.memory.page(after: cursor)
                for case let record as StoredResponse in records {
                    addresses.append(record.addresses.list.map { String(decoding: $0, as: UTF8.self) })
                }
                cursor = next
            } while cursor != nil
            #expect(addresses == [[s.origin.url(Self.first)] + others])
        }
    }

    @Test func `an answer that is not the body keeps nobody from waiting for it`() throws {
        try scenario(cache: Self.rule) { s in
            let clients = try (0..<2).map { _ in try s.client() }
            s.origin.expects("GET \(Self.first)").replies(307, "Location: /signed", "Cache-Control: max-age=60")
            let redirect = try clients[0].get(Self.first)
            #expect(redirect.status == 307 && redirect.cacheStatus.contains("detail=unproven"))
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET \(Self.first)").opens(asked).waits(for: answer).replies(200, body: Self.body)
            for client in clients { try client.ask("GET", Self.first) }
            try asked.wait()
            try s.expect(.requests, 3)
            answer.open()
            for client in clients { #expect(try client.response().text == Self.body) }
            // The other waited, or came when the body was there already.
            try s.expect(.misses, 1)
            #expect(s.count(.collapsed) + s.count(.hits) == 1)
        }
    }

    static let unshared: [(status: Int, lines: [String])] = [
        (404, ["Cache-Control: max-age=60"]), (302, ["Location: /a", "Cache-Control: max-age=60"]), (410, []),
        (203, ["Cache-Control: max-age=60"]), (200, ["Content-Encoding: x-own", "Cache-Control: max-age=60"]),
    ]
    /// It is about one address: the other may have the body.
    @Test(arguments: unshared) func `what no digest proves is not stored for the others`(
        _ row: (status: Int, lines: [String])
    ) throws {
        try scenario(cache: Self.rule) { s in
            let client = try s.client()
            s.origin.expects("GET \(Self.first)").replies(row.status, row.lines, Array("no".utf8))
            #expect(try client.get(Self.first).status == row.status)
            s.origin.expects("GET \(Self.second)").replies(200, body: Self.body)
            #expect(try client.get(Self.second).text == Self.body)
            #expect(try client.get(Self.first).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a mirror with a wrong body harms nobody who asks another`() throws {
        try scenario(cache: Self.rule) { s in
            let client = try s.client()
            let path = Self.path("/a", of: "right")
            s.origin.expects("GET \(path)").replies(200, body: "wrong")
            s.origin.expects("GET \(path)", "Cache-Control: no-cache").replies(200, body: "wrong")
            #expect(try client.get(path).status == 502)
            s.origin.expects("GET \(Self.path("/b", of: "right"))").replies(200, body: "right")
            #expect(try client.get(Self.path("/b", of: "right")).text == "right")
            #expect(try client.get(path).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    @Test func `a response that is not for all is not for the other address`() throws {
        try scenario(cache: Self.rule) { s in
            let client = try s.client()
            s.origin.expects("GET \(Self.first)").replies(200, body: Self.body)
            #expect(try client.get(Self.first, "Authorization: Bearer a").text == Self.body)
            s.origin.expects("GET \(Self.second)").replies(401, body: "no")
            #expect(try client.get(Self.second).status == 401)
        }
    }

    @Test func `a query may be what gives access, so an address with one is not shared`() throws {
        try scenario(cache: Self.rule) { s in
            let client = try s.client()
            s.origin.expects("GET \(Self.first)?token=1").replies(200, body: Self.body)
            #expect(try client.get("\(Self.first)?token=1").text == Self.body)
            s.origin.expects("GET \(Self.first)").replies(403, body: "no")
            #expect(try client.get(Self.first).status == 403)
        }
    }

    /// Whoever has an address of their own with the digest could redirect themselves, and get what others have been redirected to.
    @Test func `a redirect vouches for its own address alone`() throws {
        try scenario(cache: Self.rule) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            s.origin.expects("GET \(Self.first)").replies(302, "Location: /store?signature=1", body: "")
            try alice.get(Self.first)
            s.origin.expects("GET /store?signature=1").replies(200, body: Self.body)
            #expect(try alice.get("/store?signature=1").text == Self.body)
            #expect(try alice.get("/store?signature=1").cacheStatus.hasPrefix("larder; hit"))
            s.origin.expects("GET \(Self.second)").replies(302, "Location: /own?signature=2", body: "")
            try bob.get(Self.second)
            s.origin.expects("GET /own?signature=2").replies(403, body: "no")
            #expect(try bob.get("/own?signature=2").status == 403)
        }
    }

    @Test func `requests for both addresses at once share one request`() throws {
        try scenario(cache: Self.rule) { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET \(Self.first)").opens(asked).waits(for: answer).replies(200, body: Self.body)
            let clients = [try s.client(), try s.client()]
            try clients[0].ask("GET", Self.first)
            try asked.wait()
            try clients[1].ask("GET", Self.second)
            try s.expect(.requests, 2)
            answer.open()
            for client in clients { #expect(try client.response().text == Self.body) }
        }
    }

    @Test func `a purge of any of the addresses removes it`() throws {
        try scenario(cache: Self.rule) { s in
            let uri = try #require(TargetURI(s.origin.url(Self.second).utf8))
            let digits = Self.first.suffix(64)
            #expect(
                s.proxy.snapshot.keys(toGet: uri) == [
                    uri.normalised,
                    Array("http://mirror.example.org\(Self.second)".utf8),
                    Array("http://mirror.example.org/sha256:\(digits)#digest".utf8),
                ])
        }
    }
}
