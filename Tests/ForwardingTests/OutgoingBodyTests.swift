import Forwarding
import Framing
import Message
import Testing

@Suite("The content of a request on its way to an origin (RFC 9112 §6, §7.1)")
struct OutgoingBodyTests {
    /// The bytes that go out for these pieces, each piece in one call.
    private func sent(_ framing: BodyLength, _ pieces: [String], trailers: Fields? = nil) -> [String] {
        var body = OutgoingBody(framing)
        var sent: [String] = []
        for piece in pieces {
            unsafe Array(piece.utf8).withUnsafeBytes { content in
                unsafe body.append(content) { unsafe sent.append(text($0)) }
            }
        }
        sent.append(text(body.end(trailers: trailers)))
        #expect(body.isEnded)
        return sent
    }

    @Test func `content of an announced length goes out as it is`() {
        #expect(sent(.length(5), ["ab", "", "cde"]) == ["ab", "", "cde", ""])
        #expect(sent(.length(0), []) == [""])
        #expect(sent(.none, []) == [""])
    }

    @Test func `each piece of content without a length is a chunk, and the last chunk ends it`() {
        let long = String(repeating: "x", count: 26)
        #expect(sent(.chunked, ["abc", long]) == ["3\r\nabc\r\n", "1a\r\n\(long)\r\n", "0\r\n\r\n"])
    }

    @Test func `a piece of no bytes is no chunk, because a chunk of size 0 would end the body`() {
        #expect(sent(.chunked, ["", "a"]) == ["", "1\r\na\r\n", "0\r\n\r\n"])
    }

    @Test func `trailers follow the last chunk, without those that may not be forwarded (RFC 9110 §6.5.1)`() {
        var trailers = Fields()
        trailers.append(.other, spelling: "X-Checksum".utf8, "1".utf8)
        trailers.append(.contentLength, "7")
        #expect(sent(.chunked, ["a"], trailers: trailers) == ["1\r\na\r\n", "0\r\nX-Checksum: 1\r\n\r\n"])
    }

    @Test func `fields that Larder itself decides about do not follow in trailers, in whatever spelling`() {
        var trailers = Fields()
        for name in ["x-TEAM", "X-Sum", "X-Team"] { trailers.append(.other, spelling: name.utf8, "1".utf8) }
        var body = OutgoingBody(.chunked)
        #expect(text(body.end(trailers: trailers, without: ["x-team"])) == "0\r\nX-Sum: 1\r\n\r\n")
    }

    @Test func `content beyond the announced length does not go out: it would be the next request`() async {
        await #expect(processExitsWith: .failure) {
            var body = OutgoingBody(.length(1))
            unsafe Array("ab".utf8).withUnsafeBytes { content in unsafe body.append(content) { _ in } }
        }
    }

    @Test func `content that is missing is not passed over: the origin would wait for it`() async {
        await #expect(processExitsWith: .failure) {
            var body = OutgoingBody(.length(1))
            _ = body.end(trailers: nil)
        }
    }
}
