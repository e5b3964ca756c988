import Server
import Testing

@Suite("Collapsed requests: which requests wait, and for how long")
struct CollapseLimitScenarios {
    @Test func `a follower that waited too long goes on alone, and its leader is not disturbed`() throws {
        try scenario({ configuration, _ in configuration.timeouts.collapse = .milliseconds(50) }) { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "1")
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "2")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a")
            try asked.wait()
            try second.ask("GET", "/a")
            #expect(try second.response().text == "2")
            try s.expect(.collapseTimeouts, 1)
            answer.open()
            #expect(try first.response().text == "1")
        }
    }

    @Test func `beyond followers_per_transfer_max a request goes on alone at once`() throws {
        try scenario({ configuration, _ in configuration.limits.followersPerTransferMax = 1 }) { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "1")
            s.origin.expects("GET /a").replies(200, "Cache-Control: no-store", body: "2")
            let clients = try (0..<3).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            try clients[1].ask("GET", "/a")
            try s.expect(.requests, 2)
            #expect(try clients[2].get("/a").text == "2")
            #expect(s.count(.collapseTimeouts) == 0)
            answer.open()
            for client in clients[0...1] { #expect(try client.response().text == "1") }
        }
    }

    @Test func `if the leader's response is not storable, all followers ask the origin at once`() throws {
        try scenario { s in
            let (asked, answer, end) = (Gate("asked"), Gate("answer"), Gate("end"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).sends(
                "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: 2\r\n\r\n1"
            ).waits(for: end).sends("!")
            let others = (0..<3).map { Gate("request \($0) of the others") }
            for gate in others {
                s.origin.expects("GET /a").opens(gate).waits(for: end).replies(
                    200, "Cache-Control: private", body: "2!")
            }
            let clients = try (0..<4).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            for client in clients.dropFirst() { try client.ask("GET", "/a") }
            try s.expect(.requests, 4)
            answer.open()
            for gate in others { try gate.wait() }
            end.open()
            #expect(try clients.map { try $0.response().text }.sorted() == ["1!", "2!", "2!", "2!"])
        }
    }

    @Test func `if the leader's client leaves before the head, the followers get its response`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "one")
            let clients = try (0..<4).map { _ in try s.client() }
            try clients[0].ask("GET", "/a")
            try asked.wait()
            for client in clients.dropFirst() { try client.ask("GET", "/a") }
            try s.expect(.requests, 4)
            clients[0].wire.reset()
            try s.expect(.clientConnectionsClosed, 1)
            answer.open()
            for client in clients.dropFirst() { #expect(try client.response().text == "one") }
            #expect(s.origin.requests.count == 1)
        }
    }

    @Test func `if the leader's client leaves and its response is not shared, the followers ask the origin`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(200, "Cache-Control: private", body: "1")
            s.origin.expects("GET /a").replies(200, "Cache-Control: private", body: "2")
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a")
            try asked.wait()
            try second.ask("GET", "/a")
            try s.expect(.requests, 2)
            first.wire.reset()
            try s.expect(.clientConnectionsClosed, 1)
            answer.open()
            #expect(try second.response().text == "2")
        }
    }

    @Test func `a request for the whole follows a range request, then fetches the rest`() throws {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            let part = { (first: Int, last: Int) in
                ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes \(first)-\(last)/10"]
            }
            s.origin.expects("GET /a", "Range: bytes=2-3").opens(asked).waits(for: answer).replies(
                206, part(2, 3), Array("23".utf8))
            s.origin.expects("GET /a", "Range: bytes=0-1", "If-Range: \"a\"").replies(206, part(0, 1), Array("01".utf8))
            s.origin.expects("GET /a", "Range: bytes=4-9", "If-Range: \"a\"").replies(
                206, part(4, 9), Array("456789".utf8))
            let (range, whole) = (try s.client(), try s.client())
            try range.ask("GET", "/a", ["Range: bytes=2-3"])
            try asked.wait()
            try whole.ask("GET", "/a")
            try s.expect(.requests, 2)
            answer.open()
            #expect(try range.response().text == "23")
            let all = try whole.response()
            #expect(all.status == 200)
            #expect(all.text == "0123456789")
            #expect(all.isWhole)
        }
    }

    /// The answer to a validation that four wait for, and what they all get of it.
    static let validations: [(answer: String, status: Int, text: String)] = [
        ("HTTP/1.1 304 Same\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\n\r\n", 200, "old"),
        ("HTTP/1.1 200 OK\r\nETag: \"b\"\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\nnew", 200, "new"),
        ("HTTP/1.1 503 Down\r\nContent-Length: 4\r\n\r\ndown", 200, "old"),
        ("nonsense\r\n\r\n", 200, "old"),
    ]

    @Test(arguments: validations) func `one validation answers all requests that wait for it`(
        _ row: (answer: String, status: Int, text: String)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"", body: "old")
            let clients = try (0..<4).map { _ in try s.client() }
            try clients[0].get("/a")
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a", "If-None-Match: \"a\"").opens(asked).waits(for: answer).sends(row.answer)
            try clients[0].ask("GET", "/a")
            try asked.wait()
            for client in clients.dropFirst() { try client.ask("GET", "/a") }
            try s.expect(.requests, 5)
            answer.open()
            for client in clients {
                let answer = try client.response()
                #expect(answer.status == row.status)
                #expect(answer.text == row.text)
            }
            #expect(s.origin.requests.count == 2)
        }
    }

    /// Requests that never wait for another.
    static let alone: [(what: String, method: String, fields: [String], body: String?)] = [
        ("POST", "POST", [], "x"), ("GET with content", "GET", [], "x"), ("an unknown method", "REPORT", [], nil),
        ("the client's own conditions", "GET", ["If-None-Match: \"x\""], nil), ("HEAD", "HEAD", [], nil),
        ("no-store", "GET", ["Cache-Control: no-store"], nil),
    ]

    @Test(arguments: alone) func `requests that cannot share a response are never collapsed`(
        _ row: (what: String, method: String, fields: [String], body: String?)
    ) throws {
        try scenario { s in
            let (gates, answer) = ((0..<2).map { Gate("request \($0)") }, Gate("answer"))
            for gate in gates {
                s.origin.expects("\(row.method) /a").opens(gate).waits(for: answer).sends(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n")
            }
            let clients = try (0..<2).map { _ in try s.client() }
            for client in clients { try client.ask(row.method, "/a", row.fields, body: row.body) }
            for gate in gates { try gate.wait() }
            answer.open()
            for client in clients { #expect(try client.response(to: row.method).status == 200) }
        }
    }

    /// Two requests with credentials at once, and whether the second gets the response to the first (RFC 9111 §3.5).
    @Test(arguments: [("max-age=60", false), ("public, max-age=60", true), ("s-maxage=60", true), ("private", false)])
    func `responses to requests with credentials are shared only if the origin allows it`(
        _ row: (cacheControl: String, isShared: Bool)
    )
        throws
    {
        try scenario { s in
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a", "Authorization: Basic YTph").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: \(row.cacheControl)", body: "a's")
            if !row.isShared {
                s.origin.expects("GET /a", "Authorization: Basic Yjpi").replies(
                    200, "Cache-Control: \(row.cacheControl)", body: "b's")
            }
            let (first, second) = (try s.client(), try s.client())
            try first.ask("GET", "/a", ["Authorization: Basic YTph"])
            try asked.wait()
            try second.ask("GET", "/a", ["Authorization: Basic Yjpi"])
            try s.expect(.requests, 2)
            answer.open()
            #expect(try first.response().text == "a's")
            #expect(try second.response().text == (row.isShared ? "a's" : "b's"))
        }
    }

    @Test func `a body that outgrows the store reaches all its readers, fast and slow`() throws {
        try scenario({ configuration, _ in
            configuration.cache.memory = 16 << 20
            configuration.cache.writtenObjectSizeMax = 1 << 20
            // The clients read in turn, which takes a while where the machine is busy.
            configuration.limits.delayingReaderTimeout = .seconds(600)
        }) { s in
            let go = Gate("all have joined")
            let body = (0..<(6 << 20)).map { UInt8(truncatingIfNeeded: $0 / 251) }
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\n\r\n"
            )
            .waits(for: go).sends(body).closes()
            let clients = [try s.client(receiveBuffer: 4096), try s.client(), try s.client(receiveBuffer: 4096)]
            // Without chunks, so that they can be read in turn: the slowest holds up the others.
            for client in clients { try client.ask("GET", "/a", version: "1.0") }
            for client in clients { #expect(try client.head().startLine.contains(" 200 ")) }
            go.open()
            for offset in stride(from: 0, to: body.count, by: 16 << 10) {
                for client in clients {
                    let piece = try client.reader.bytes(16 << 10)
                    guard piece.elementsEqual(body[offset..<offset + (16 << 10)]) else {
                        throw WireError("at \(offset)")
                    }
                }
            }
            for client in clients { try client.expectClosed() }
            s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "anew")
            #expect(try s.client().get("/a").text == "anew")
            try s.expect(.stored, 1)
            try s.expect(.storingRefused, 1)
        }
    }

    @Test func `with collapse off each request asks the origin itself`() throws {
        try scenario(cache: "collapse: no") { s in
            let (gates, answer) = ((0..<2).map { Gate("request \($0)") }, Gate("answer"))
            for gate in gates {
                s.origin.expects("GET /a").opens(gate).waits(for: answer).replies(
                    200, "Cache-Control: max-age=60", body: "a")
            }
            let clients = try (0..<2).map { _ in try s.client() }
            for client in clients { try client.ask("GET", "/a") }
            for gate in gates { try gate.wait() }
            answer.open()
            for client in clients { #expect(try client.response().text == "a") }
        }
    }

    @Test func `requests on both workers join one transfer`() throws {
        try scenario { s in
            var clients: [ScriptedClient] = []
            // The kernel spreads connections by their ports: some more until each worker has one.
            try s.eventually("a client on each worker") {
                clients.append(try s.client())
                return s.proxy.counters.allSatisfy { $0[.clientConnectionsAccepted] > 0 }
            }
            let (asked, answer) = (Gate("asked"), Gate("answer"))
            s.origin.expects("GET /a").opens(asked).waits(for: answer).replies(
                200, "Cache-Control: max-age=60", body: "one")
            for client in clients { try client.ask("GET", "/a") }
            try asked.wait()
            try s.expect(.requests, UInt64(clients.count))
            answer.open()
            for client in clients { #expect(try client.response().text == "one") }
            #expect(s.proxy.counters.allSatisfy { $0[.requests] > 0 })
            try s.expect(.collapsed, UInt64(clients.count - 1))
        }
    }
}
