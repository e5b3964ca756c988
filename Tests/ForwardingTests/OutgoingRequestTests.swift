import Forwarding
import Message
import Testing

@Suite("RFC 9110 §7.6.1 Connection: hop-by-hop fields are not forwarded")
struct HopByHopTests {
    static let rows: [(fields: [String], sent: [String])] = [
        (["X-End: 1", "accept: */*"], ["X-End: 1", "accept: */*"]),
        (["Connection: X-Hop, keep-alive", "X-Hop: 1", "x-hop: 2", "X-End: 1"], ["X-End: 1"]),
        (["Keep-Alive: 5", "Proxy-Connection: keep-alive", "TE: trailers", "Upgrade: h2c"], []),
        (["Proxy-Authorization: Basic eDp5", "Proxy-Anything: 1", "proxy-x: 1"], []),
        (["Proxyx: 1", "Pro: 2"], ["Proxyx: 1", "Pro: 2"]),
        (["HTTP2-Settings: x"], []), (["Larder-Policy: pass"], []),
        (["Trailer: Expires", "Authorization: Basic eDp5"], ["Trailer: Expires", "Authorization: Basic eDp5"]),
        (["A: 1", "Connection: close", "B: 2", "B: 3"], ["A: 1", "B: 2", "B: 3"]),
    ]
    @Test(arguments: rows) func `end-to-end fields are forwarded in order and in their own spelling`(
        _ row: (fields: [String], sent: [String])
    )
        throws
    {
        #expect(forwarded(try request("GET http://h/ HTTP/1.1", ["Host: h"] + row.fields)) == row.sent)
    }

    @Test func `Expect of an HTTP/1.0 client is not forwarded`() throws {
        #expect(forwarded(try request("GET http://h/ HTTP/1.1", "Host: h", "Expect: 100-continue")).count == 1)
        let old = OutgoingRequest(try request("GET http://h/ HTTP/1.0", "Host: h", "Expect: 100-continue"))
        #expect(old.lines.count == 3)
    }

    @Test func `hop-by-hop fields of responses are dropped as well`() throws {
        let received = try response(
            "HTTP/1.1 200 Fine", "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5", "Proxy-Status: cdn",
            "Proxy-Authenticate: Basic", "Proxy-Support: Session-Based-Authentication", "Transfer-Encoding: chunked",
            "ETag: \"a\"")
        var bytes: [UInt8] = []
        ForwardedHead.appendResponse(received, to: &bytes)
        #expect(
            text(bytes)
                == "HTTP/1.1 200 Fine\r\nProxy-Status: cdn\r\nProxy-Support: Session-Based-Authentication\r\nETag: \"a\"\r\n"
        )
    }
}

@Suite("RFC 9110 §9.3.2 A probe asks for a head in place of the request")
struct ProbeTests {
    @Test func `a probe is a HEAD without content, conditions, or another method`() throws {
        let received = try request(
            "POST http://h/a?b HTTP/1.1", "Host: h", "Content-Length: 5", "Content-Type: text/plain",
            "Content-Encoding: gzip", "Expect: 100-continue", "If-Match: \"a\"", "Range: bytes=0-1",
            "X-HTTP-Method-Override: DELETE", "Accept: */*", "X-End: 1")
        var outgoing = OutgoingRequest(received)
        outgoing.set(.authorization, Array("NTLM x".utf8))
        outgoing.set(.expect, Array("100-continue".utf8))
        outgoing.becomeProbe()
        #expect(outgoing.lines.first == "HEAD /a?b HTTP/1.1")
        let fields = outgoing.lines.dropFirst().filter { !$0.hasPrefix("Via:") && !$0.hasPrefix("Host:") }
        #expect(fields == ["Accept: */*", "X-End: 1", "Authorization: NTLM x"])
        #expect(outgoing.framing == .none)
    }

    @Test func `a short method leaves room for HEAD`() throws {
        var outgoing = OutgoingRequest(try request("PUT http://h/ HTTP/1.1", "Host: h", "Content-Length: 1"))
        outgoing.becomeProbe()
        var bytes: [UInt8] = []
        outgoing.serialize(into: &bytes)
        #expect(bytes.count <= outgoing.lengthMax)
    }
}

@Suite("RFC 9112 §6 Content that is whole before the head is sent")
struct AnnouncedContentTests {
    static let rows: [(framing: String, inChunks: Bool, sent: String)] = [
        ("Content-Length: 5", false, "Content-Length: 7"), ("Content-Length: 5", true, "Content-Length: 7"),
        ("Transfer-Encoding: chunked", false, "Content-Length: 7"),
        ("Transfer-Encoding: chunked", true, "Transfer-Encoding: chunked"),
    ]
    @Test(arguments: rows) func `it has a length, and nothing waits for a 100`(
        _ row: (framing: String, inChunks: Bool, sent: String)
    ) throws {
        var outgoing = OutgoingRequest(
            try request("PUT http://h/ HTTP/1.1", "Host: h", "Expect: 100-continue", row.framing))
        outgoing.announce(contentLength: 7, inChunks: row.inChunks)
        let fields = outgoing.lines.dropFirst().filter { !$0.hasPrefix("Via:") && !$0.hasPrefix("Host:") }
        #expect(fields == [row.sent])
    }
}

@Suite("RFC 9112 §3.2 The target and Host of an outgoing request")
struct OutgoingTargetTests {
    static let rows: [(line: String, start: String, host: String)] = [
        ("GET http://h/a?b HTTP/1.1", "GET /a?b HTTP/1.1", "Host: h"),
        ("GET http://h HTTP/1.1", "GET / HTTP/1.1", "Host: h"),
        ("GET http://h?q HTTP/1.1", "GET /?q HTTP/1.1", "Host: h"),
        ("OPTIONS http://h HTTP/1.1", "OPTIONS * HTTP/1.1", "Host: h"),
        ("OPTIONS http://h/ HTTP/1.1", "OPTIONS / HTTP/1.1", "Host: h"),
        ("GET http://h:80/ HTTP/1.1", "GET / HTTP/1.1", "Host: h"),
        ("GET http://h:8080/ HTTP/1.1", "GET / HTTP/1.1", "Host: h:8080"),
        ("GET https://h:443/ HTTP/1.1", "GET / HTTP/1.1", "Host: h"),
        ("GET https://h:80/ HTTP/1.1", "GET / HTTP/1.1", "Host: h:80"),
        ("GET http://[::1]:81/ HTTP/1.0", "GET / HTTP/1.1", "Host: [::1]:81"),
    ]
    @Test(arguments: rows) func `the request has the target in origin form and the host of the target`(
        _ row: (line: String, start: String, host: String)
    ) throws {
        let outgoing = OutgoingRequest(try request(row.line, "Host: elsewhere"))
        #expect(outgoing.lines.prefix(2) == [row.start, row.host])
        #expect("Host: " + text(outgoing.authority) == row.host)
        #expect(row.start.contains(" \(text(outgoing.target)) "))
    }
}

@Suite("RFC 9112 §3.2.2 A request to a next proxy")
struct RequestToProxyTests {
    static let rows: [(line: String, start: String, host: String)] = [
        ("GET http://h/a?b HTTP/1.1", "GET http://h/a?b HTTP/1.1", "Host: h"),
        ("GET http://h HTTP/1.1", "GET http://h/ HTTP/1.1", "Host: h"),
        ("GET http://h?q HTTP/1.1", "GET http://h/?q HTTP/1.1", "Host: h"),
        ("GET http://h:80/ HTTP/1.1", "GET http://h/ HTTP/1.1", "Host: h"),
        ("GET http://[::1]:8080/ HTTP/1.0", "GET http://[::1]:8080/ HTTP/1.1", "Host: [::1]:8080"),
        // RFC 9112 §3.2.4: the last proxy makes "*" of it.
        ("OPTIONS http://h:8001 HTTP/1.1", "OPTIONS http://h:8001 HTTP/1.1", "Host: h:8001"),
        ("OPTIONS http://h:8001/ HTTP/1.1", "OPTIONS http://h:8001/ HTTP/1.1", "Host: h:8001"),
    ]
    @Test(arguments: rows) func `the target is in absolute form`(
        _ row: (line: String, start: String, host: String)
    ) throws {
        var outgoing = OutgoingRequest(try request(row.line, "Host: elsewhere"))
        outgoing.addressToProxy(authorization: nil)
        #expect(outgoing.lines.prefix(2) == [row.start, row.host])
    }

    @Test func `a replaced target and authority are in it`() throws {
        var outgoing = OutgoingRequest(try request("GET http://h/a HTTP/1.1", "Host: h"))
        outgoing.setTarget(Array("/other?x".utf8))
        outgoing.setAuthority(Array("elsewhere.example:8080".utf8))
        outgoing.addressToProxy(authorization: nil)
        #expect(
            outgoing.lines.prefix(2) == [
                "GET http://elsewhere.example:8080/other?x HTTP/1.1", "Host: elsewhere.example:8080",
            ])
    }

    @Test func `the proxy gets Larder's log-in, and never the client's`() throws {
        let received = try request("GET http://h/ HTTP/1.1", "Host: h", "Proxy-Authorization: Basic Y2xpZW50")
        var outgoing = OutgoingRequest(received)
        outgoing.addressToProxy(authorization: nil)
        #expect(!outgoing.lines.contains { $0.hasPrefix("Proxy-Authorization") })
        outgoing.addressToProxy(authorization: Array("Basic bGFyZGVy".utf8))
        #expect(
            outgoing.lines.filter { $0.hasPrefix("Proxy-Authorization") } == ["Proxy-Authorization: Basic bGFyZGVy"])
    }
}

@Suite("RFC 9110 §7.6.2 Max-Forwards")
struct MaxForwardsTests {
    static let rows: [(method: String, value: String, sent: String)] = [
        ("OPTIONS", "7", "6"), ("TRACE", "1", "0"), ("GET", "7", "7"), ("OPTIONS", "many", "many"), ("OPTIONS", "", ""),
        ("OPTIONS", "-1", "-1"),
        ("TRACE", "007", "6"), ("OPTIONS", "18446744073709551615", "18446744073709551614"),
        ("OPTIONS", "18446744073709551616", "18446744073709551615"),
        ("TRACE", "999999999999999999999999999999", "18446744073709551615"),
        ("GET", "18446744073709551616", "18446744073709551616"),
    ]
    @Test(arguments: rows) func `Max-Forwards is decremented for OPTIONS and TRACE only`(
        _ row: (method: String, value: String, sent: String)
    )
        throws
    {
        let received = try request("\(row.method) http://h/ HTTP/1.1", "Host: h", "Max-Forwards: \(row.value)")
        #expect(forwarded(received) == ["Max-Forwards: \(row.sent)"])
    }
}

@Suite("RFC 9110 §7.6.3 Via")
struct ViaTests {
    @Test func `Larder's member of Via follows the received ones, with the version of the request`() throws {
        let received = try request("GET http://h/ HTTP/1.1", "Host: h", "Via: 1.0 a", "X: 1", "Via: 1.1 b, 2 c")
        #expect(
            OutgoingRequest(received).lines.dropFirst(2)
                == ["X: 1", "Via: 1.0 a", "Via: 1.1 b, 2 c", "Via: 1.1 larder (id)"])
        #expect(OutgoingRequest(try request("GET http://h/ HTTP/1.0")).lines.last == "Via: 1.0 larder (id)")
    }

    @Test func `a response gets a member of Via as well`() throws {
        let now = WallTime(secondsSinceEpoch: 784_111_777)
        let old = try response("HTTP/1.0 200 OK")
        let bytes = [UInt8](capacity: 100) { ForwardedHead.appendProxyFields(old, now: now, to: &$0) }
        #expect(text(bytes) == "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nVia: 1.0 larder\r\n")
    }
}

@Suite("RFC 9110 §7.8 Upgrade")
struct UpgradeTests {
    static let rows: [(fields: [String], isForwarded: Bool)] = [
        (["Connection: Upgrade", "Upgrade: websocket"], true),
        (["Connection: upgrade, keep-alive", "Upgrade: h2c, WebSocket"], true),
        (["Connection: Upgrade", "Upgrade: h2c"], false), (["Upgrade: websocket"], false),
        (["Connection: Upgrade"], false),
    ]
    @Test(arguments: rows) func `only an upgrade to WebSocket is forwarded`(
        _ row: (fields: [String], isForwarded: Bool)
    ) throws {
        let sent = forwarded(try request("GET http://h/ HTTP/1.1", ["Host: h"] + row.fields))
        #expect(sent == (row.isForwarded ? ["Connection: Upgrade", "Upgrade: websocket"] : []))
    }

    @Test(arguments: [
        ("GET", "1.1", true), ("GET", "1.0", false), ("HEAD", "1.1", false), ("POST", "1.1", false),
        ("OPTIONS", "1.1", false),
    ])
    func `a switch is asked for where a 101 is an answer: to a GET of HTTP 1.1`(
        _ row: (method: String, version: String, isUpgrade: Bool)
    ) throws {
        let received = try request(
            "\(row.method) http://h/ HTTP/\(row.version)", "Host: h", "Connection: Upgrade", "Upgrade: websocket")
        #expect(received.isUpgrade == row.isUpgrade)
        let sent = forwarded(received).filter { !$0.hasPrefix("Via:") }
        #expect(sent == (row.isUpgrade ? ["Connection: Upgrade", "Upgrade: websocket"] : []))
    }
}

@Suite("An outgoing request is a value")
struct OutgoingRequestValueTests {
    @Test func `the validators of stored responses replace the client's conditions`() throws {
        let received = try request(
            "GET http://h/ HTTP/1.1", "Host: h", "If-None-Match: \"old\"", "If-Modified-Since: x", "X: 1")
        let outgoing = OutgoingRequest(
            received, conditions: [(.ifNoneMatch, Array("\"new\"".utf8))], instance: Instance(Array("id".utf8)))
        #expect(outgoing.lines.dropFirst(2) == ["X: 1", "If-None-Match: \"new\"", "Via: 1.1 larder (id)"])
    }

    static let framings: [(field: String?, line: String?, replay: OutgoingRequest.Replay)] = [
        (nil, nil, .everything), ("Content-Length: 0", "Content-Length: 0", .everything),
        ("Content-Length: 3, 3", "Content-Length: 3", .head),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", .head),
    ]
    @Test(arguments: framings) func `framing and replay follow the content`(
        _ row: (field: String?, line: String?, replay: OutgoingRequest.Replay)
    ) throws {
        let fields = ["Host: h"] + (row.field.map { [$0] } ?? [])
        let put = OutgoingRequest(try request("PUT http://h/ HTTP/1.1", fields))
        #expect(put.lines.dropFirst(3) == (row.line.map { [$0] } ?? [])[...])
        #expect(put.replay == row.replay)
        #expect(put.isRepeatable == (row.replay == .everything))
        #expect(!OutgoingRequest(try request("POST http://h/ HTTP/1.1", fields)).isRepeatable)
    }

    @Test func `a head has room for all that can be in it`() throws {
        let value = String(repeating: "v", count: 3000)
        let received = try request(
            "OPTIONS http://host:65535 HTTP/1.0", "Host: h", "Max-Forwards:18446744073709551615", "Via:1.0 a",
            "Via:1.1 b",
            "Content-Length: 9007199254740991", "X:\(value)", "Y:\(value)")
        var outgoing = OutgoingRequest(
            received, conditions: [(.range, Array("bytes=0-1".utf8)), (.ifRange, Array(value.utf8))],
            instance: Instance(Array(value.utf8)))
        outgoing.set(.authorization, Array(value.utf8))
        outgoing.set(spelling: Array("x-amz-date".utf8), Array(value.utf8))
        #expect(
            outgoing.lines == [
                "OPTIONS * HTTP/1.1", "Host: host:65535", "X:\(value)", "Y:\(value)", "Range: bytes=0-1",
                "If-Range: \(value)", "Authorization: \(value)", "x-amz-date: \(value)",
                "Max-Forwards: 18446744073709551614", "Via:1.0 a", "Via:1.1 b", "Via: 1.0 larder (\(value))",
                "Content-Length: 9007199254740991",
            ])
        outgoing.setTarget(Array(value.utf8))
        outgoing.setAuthority(Array(value.utf8))
        #expect(outgoing.lines.prefix(2) == ["OPTIONS \(value) HTTP/1.1", "Host: \(value)"])
    }

    @Test func `it can be changed and signed`() throws {
        var outgoing = OutgoingRequest(
            try request("GET http://h/a HTTP/1.1", "Host: h", "Authorization: Basic x", "X-Date: 1", "x-date: 2"))
        outgoing.setTarget(Array("http://h/a".utf8))
        outgoing.setAuthority(Array("other".utf8))
        outgoing.set(.proxyAuthorization, Array("Basic y".utf8))
        outgoing.set(spelling: Array("X-Date".utf8), Array("3".utf8))
        var seen: [String] = []
        outgoing.forEachField { seen.append("\(text($0))=\(text($1))") }
        #expect(
            seen == [
                "Host=other", "Authorization=Basic x", "Proxy-Authorization=Basic y", "X-Date=3",
                "Via=1.1 larder (id)",
            ])
        outgoing.set(.authorization, Array("Signature z".utf8))
        outgoing.remove(spelling: Array("x-DATE".utf8))
        #expect(
            outgoing.lines == [
                "GET http://h/a HTTP/1.1", "Host: other", "Proxy-Authorization: Basic y", "Authorization: Signature z",
                "Via: 1.1 larder (id)",
            ])
    }
}
