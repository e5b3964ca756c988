import EventLoop
import Foundation
import Server
import Testing

/// Faults that were found by reading the code. Each test states the rule that was broken.
@Suite("Regressions: connections to origins")
struct OriginConnectionRegressions {
    static let credentials: [(request: [String], response: [String], isShared: Bool)] = [
        (["Authorization: NTLM TlRM"], [], false), (["Authorization: Negotiate YII"], [], false),
        (["Authorization: nEGOTIATE YII"], [], false), ([], ["WWW-Authenticate: NTLM TlRM"], false),
        ([], ["WWW-Authenticate: Basic realm=\"x\"", "WWW-Authenticate: Negotiate"], false),
        (["Authorization: Basic eDp5"], [], true), ([], ["WWW-Authenticate: Basic realm=\"x\""], true),
    ]
    /// An origin that authenticates connections (NTLM, Negotiate) answered the next client as the one before.
    @Test(arguments: credentials)
    func `a connection that is authenticated for one client carries no other requests`(
        _ row: (request: [String], response: [String], isShared: Bool)
    ) throws {
        try scenario({ configuration, _ in configuration.workers = .count(1) }) { s in
            let status = row.response.isEmpty ? 200 : 401
            s.origin.expects("GET /alice").replies(status, ["Cache-Control: no-store"] + row.response, [])
            s.origin.expects("GET /bob", "!Authorization").replies(200, "Cache-Control: no-store")
            let alice = try s.client()
            try alice.ask("GET", "/alice", row.request)
            #expect(try alice.response().status == status)
            #expect(try s.client().get("/bob").status == 200)
            let connections = s.origin.requests.map(\.connection)
            #expect(connections.count == 2)
            #expect((connections.first == connections.last) == row.isShared)
        }
    }

    /// A request that authenticates its connection must not use one that has carried other requests.
    @Test func `a request that authenticates its connection gets a new one`() throws {
        try scenario({ configuration, _ in configuration.workers = .count(1) }) { s in
            s.origin.expects("GET /bob").replies(200, "Cache-Control: no-store")
            s.origin.expects("GET /alice").replies(200, "Cache-Control: no-store")
            try s.client().get("/bob")
            try s.client().get("/alice", "Authorization: NTLM TlRM")
            #expect(s.origin.requests.map(\.connection) == [1, 2])
        }
    }

    /// A request that may not use a pooled connection waited although both places were taken by idle connections.
    @Test func `a request that waits for a new connection gets the place of one that becomes idle`() throws {
        try scenario({ configuration, _ in
            configuration.workers = .count(1)
            configuration.limits.originConnectionsMax = 2
        }) { s in
            let answer = Gate("answers to both GETs")
            for path in ["/1", "/2"] {
                s.origin.expects("GET \(path)").waits(for: answer).replies(200, "Cache-Control: no-store")
            }
            s.origin.expects("POST /3").replies(200, body: "done")
            let clients = try (0..<3).map { _ in try s.client() }
            try clients[0].ask("GET", "/1")
            try clients[1].ask("GET", "/2")
            try s.eventually("two requests at the origin") { s.origin.requests.count == 2 }
            try clients[2].ask("POST", "/3", body: "x")
            try s.expect(.originQueued, 1)
            answer.open()
            for client in clients { #expect(try client.response().status == 200) }
        }
    }

    /// A request in the queue waited without a time limit.
    @Test func `a request that waits too long for a connection is refused`() throws {
        try scenario({ configuration, _ in
            configuration.workers = .count(1)
            configuration.limits.originConnectionsMax = 1
            configuration.timeouts.connect = .seconds(1)
        }) { s in
            let asked = Gate("request")
            let answer = Gate("answer")
            s.origin.expects("GET /1").opens(asked).waits(for: answer).replies(200)
            let first = try s.client()
            try first.ask("GET", "/1")
            try asked.wait()
            #expect(try s.client().request("POST", "/2", body: "x").status == 504)
            answer.open()
            #expect(try first.response().status == 200)
        }
    }

    /// Found by the soak: a body was read into its pages, the bytes behind it stayed in the socket, and the next request on
    /// that connection took them for its answer.
    @Test func `bytes behind a stored body are not the answer to the next request`() throws {
        try scenario({ configuration, _ in
            configuration.workers = .count(1)
            configuration.limits.originConnectionsMax = 1
        }) { s in
            let hasHead = Gate("the head is out")
            let hasNext = Gate("the next request waits for the connection")
            let body = String(repeating: "b", count: 1000)
            let smuggled = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nsmuggled"
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1000\r\n\r\n"
            ).opens(hasHead).waits(for: hasNext).sends(body + smuggled)
            s.origin.expects("GET /b").replies(200, body: "right")
            let first = try s.client()
            try first.ask("GET", "/a")
            try hasHead.wait()
            let head = try first.head()
            #expect(head.startLine.contains(" 200 "))
            let second = try s.client()
            try second.ask("GET", "/b")
            try s.expect(.originQueued, 1)
            hasNext.open()
            #expect(try first.reader.bytes(1000) == Array(body.utf8))
            #expect(try second.response().text == "right")
        }
    }

    enum Break: String, CaseIterable { case tooShort, reset, badChunk, noEnd, silence }

    /// Each response that broke off kept the place of its connection for ever. One place is enough to see that.
    @Test(arguments: Break.allCases, ["max-age=60", "no-store"])
    func `a response that breaks off frees the place of its connection`(_ how: Break, _ cacheControl: String) throws {
        try scenario({ configuration, _ in
            configuration.workers = .count(1)
            configuration.limits.originConnectionsMax = 1
            configuration.timeouts.idle = .milliseconds(how == .silence ? 300 : 60_000)
        }) { s in
            let ends = (0..<4).map { Gate("the end of number \($0)") }
            for end in ends {
                let isChunked = how == .badChunk || how == .noEnd
                let expectation = s.origin.expects("GET /a").sends(
                    "HTTP/1.1 200 OK\r\nCache-Control: \(cacheControl)\r\n"
                        + (isChunked
                            ? "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n" : "Content-Length: 10\r\n\r\nabc"))
                if how != .silence { expectation.waits(for: end) }
                switch how {
                case .tooShort, .noEnd: expectation.closes()
                case .reset: expectation.resets()
                case .badChunk: expectation.sends("nonsense\r\n").hangs()
                case .silence: expectation.hangs()
                }
            }
            s.origin.expects("GET /b").replies(200, "Cache-Control: no-store", body: "well")
            for (number, end) in ends.enumerated() {
                let client = try s.client()
                try client.ask("GET", "/a")
                #expect(try client.head().startLine.contains(" 200 "))
                if number == 0 && how != .silence {
                    try s.eventually("one is open") { s.gauge(.originConnectionsOpen) == 1 }
                }
                end.open()
                try s.expect(.originConnectionsClosed, UInt64(number + 1))
            }
            try s.expect(.originConnectionsOpened, 4)
            try s.eventually("none is open") { s.gauge(.originConnectionsOpen) == 0 }
            #expect(try s.client().get("/b").text == "well")
            #expect(s.count(.stored) == 0)
        }
    }

    /// The client was cut off without a word where the head was still in our hands when the body turned out broken.
    @Test func `a response that breaks off at once still gets an answer`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "3\r\nabc\r\nnonsense\r\n"
            ).hangs()
            let answer = try s.client().get("/a")
            #expect(answer.status == 502 || !answer.isWhole)
        }
    }

    enum Stage: String, CaseIterable { case beforeHead, inBody, inUpload }

    /// These ends freed the place all along.
    @Test(arguments: Stage.allCases) func `a client that leaves frees the place of its origin connection`(
        _ stage: Stage
    )
        throws
    {
        try scenario({ configuration, _ in
            configuration.workers = .count(1)
            configuration.limits.originConnectionsMax = 1
        }) { s in
            let client = try s.client()
            let asked = Gate("the upload is asked for")
            switch stage {
            case .beforeHead:
                s.origin.expects("GET /a").hangs()
                try client.ask("GET", "/a")
            case .inBody:
                s.origin.expects("GET /a").sends(
                    "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 10\r\n\r\nabc"
                ).hangs()
                try client.ask("GET", "/a")
                _ = try client.head()
            case .inUpload:
                s.origin.expects("POST /a").opens(asked).readsBody()
                try client.ask("POST", "/a", ["Content-Length: 10"])
                try client.send("abc")
            }
            try s.expect(.originConnectionsOpened, 1)
            if stage != .inUpload {
                try s.eventually("the request") { s.origin.requests.count == 1 }
            } else {
                try asked.wait()
            }
            client.wire.reset()
            try s.expect(.originConnectionsClosed, 1)
            s.origin.expects("GET /b").replies(200, "Cache-Control: no-store", body: "well")
            #expect(try s.client().get("/b").text == "well")
        }
    }
}

@Suite("Regressions: the store")
struct StoreRegressions {
    /// A 304 to the client's own condition renewed a stored response that it did not select.
    @Test(arguments: ["max-age=1", "max-age=1, must-revalidate"])
    func `a 304 to the client's own condition goes to the client`(_ cacheControl: String) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: \(cacheControl)", "Age: 5", body: "old")
            s.origin.expects("GET /a", "If-None-Match: \"v2\"").replies(
                304, "Cache-Control: max-age=600", "ETag: \"v2\"")
            s.origin.expects("GET /a", "!If-None-Match").replies(
                200, "Cache-Control: max-age=600", "ETag: \"v2\"", body: "new")
            let client = try s.client()
            #expect(try client.get("/a").text == "old")
            #expect(try client.get("/a", "If-None-Match: \"v2\"").status == 304)
            #expect(try client.get("/a").text == "new")
            let fourth = try client.get("/a")
            #expect(fourth.text == "new")
            #expect(fourth.cacheStatus.hasPrefix("larder; hit"))
            #expect(s.count(.freshened) == 0)
        }
    }

    static let confirmations: [(stored: String, confirmed: String)] = [
        ("ETag: \"a\"", "ETag: \"b\""), ("ETag: W/\"a\"", "ETag: W/\"b\""), ("ETag: \"a\"", "ETag: \"aa\""),
    ]
    /// A 304 with the validator of another response renewed the stored one (RFC 9111 §4.3.4).
    @Test(arguments: confirmations)
    func `if a 304 confirms another response, the origin is asked without conditions`(
        _ row: (stored: String, confirmed: String)
    )
        throws
    {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=0", row.stored, body: "old")
            s.origin.expects("GET /a", "If-None-Match").replies(304, "Cache-Control: max-age=60", row.confirmed)
            s.origin.expects("GET /a", "!If-None-Match", "!If-Modified-Since").replies(
                200, "Cache-Control: max-age=60", row.confirmed, body: "new")
            let client = try s.client()
            #expect(try client.get("/a").text == "old")
            let second = try client.get("/a")
            #expect(second.status == 200)
            #expect(second.text == "new")
            let third = try client.get("/a")
            #expect(third.text == "new")
            #expect(third.cacheStatus.hasPrefix("larder; hit"))
            #expect(s.count(.freshened) == 0)
        }
    }

    static let paths = [
        ["/static/../admin", "/admin"], ["/a/%2e%2e/b", "/b"], ["/%41", "/A"], ["/%2f", "/%2F"], ["/./c", "/c"],
        ["/d?x=%41", "/d?x=A"],
    ]
    /// The key was normalised and the request was not, so the response for one path was served for another.
    @Test(arguments: paths) func `paths with different spellings are different and are sent as written`(
        _ paths: [String]
    )
        throws
    {
        try scenario { s in
            for path in paths { s.origin.expects("GET \(path)").replies(200, "Cache-Control: max-age=60", body: path) }
            let client = try s.client()
            for _ in 0..<2 {
                for path in paths { #expect(try client.get(path).text == path) }
            }
            try s.expect(.hits, UInt64(paths.count))
            s.origin.expects("PUT \(paths[0])").replies(204)
            #expect(try client.request("PUT", paths[0], body: "x").status == 204)
            #expect(try client.get(paths[1]).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    /// A body that outgrew the store was received to its end after its last reader had left.
    @Test(arguments: [0, 3 << 20]) func `an endless body that nobody reads is cancelled`(_ readBeforeLeaving: Int)
        throws
    {
        try scenario({ configuration, _ in configuration.cache.writtenObjectSizeMax = 1 << 20 }) { s in
            let gone = Gate("the end of the transfer")
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n"
            ).streams("10000\r\n\(String(repeating: "a", count: 0x10000))\r\n", untilGone: gone)
            let client = try s.client()
            try client.ask("GET", "/a")
            _ = try client.head()
            #expect(try client.reader.bytes(readBeforeLeaving).count == readBeforeLeaving)
            client.wire.reset()
            try gone.wait()
            try s.expect(.originConnectionsClosed, 1)
            #expect(s.count(.stored) == 0)
        }
    }

    /// A stored head longer than the output buffer ended the process at the first hit.
    @Test(arguments: [60_000, 70_000, 262_000, 300_000, 1_000_000])
    func `a long head is served from the origin and from the store`(_ length: Int) throws {
        try scenario({ configuration, _ in configuration.limits.headBytesMax = 1 << 20 }) { s in
            let value = String(repeating: "v", count: length)
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=600", "X-Long: \(value)", body: "hello")
            let client = try s.client()
            for turn in 0..<3 {
                let answer = try client.get("/a")
                #expect(answer.status == 200)
                #expect(answer["X-Long"]?.utf8.count == length)
                #expect(answer.text == "hello")
                #expect(answer.cacheStatus.hasPrefix("larder; hit") == (turn > 0))
            }
        }
    }
}
