import Server
import Testing

@Suite("A body of an origin that is malformed, and one that breaks off")
struct MalformedBodyScenarios {
    static let rows: [(what: String, rest: String, refusal: String)] = [
        ("a chunk size that is none", "xyz\r\nabc\r\n", "response-invalid"),
        ("data longer than its chunk", "1\r\nabc\r\n", "response-invalid"),
        ("the end of the connection", "5\r\nab", "response-incomplete"),
    ]

    @Test(arguments: rows) func `the client is told which of the two it was`(
        _ row: (what: String, rest: String, refusal: String)
    ) throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\(row.rest)"
            ).closes()
            // Nothing of the answer has been sent when the fault shows.
            let answer = try s.client().get("/a")
            if answer.status == 502 { #expect(answer.cacheStatus.contains(row.refusal), "\(row.what)") }
            #expect(answer.status == 502 || !answer.isWhole)
        }
    }

    @Test func `white space behind a chunk size is taken from an origin, and goes no further`() throws {
        try scenario { s in
            s.origin.expects("GET /a").sends(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0 \t\r\n\r\n")
            let answer = try s.client().get("/a")
            #expect(answer.isWhole && answer.text == "hello")
        }
    }
}
