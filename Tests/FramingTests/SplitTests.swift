import Foundation
import Framing
import Message
import Testing

/// The same message must mean the same however the network cuts it.
@Suite("A head parses the same however it is split")
struct SplitTests {
    /// Pieces that make many heads good and many bad in one way.
    static let starts = [
        "GET / HTTP/1.1\r\n", "GET http://a.example/x HTTP/1.0\r\n", "\r\nPOST http://[::1]/ HTTP/1.1\r\n",
        "CONNECT a:443 HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.0 304\r\n", "GET / HTTP/2.0\r\n", "GET /\n",
        "\u{16}\u{3}",
        "ICY 200 OK\r\n", "G T / HTTP/1.1\r\n",
    ]
    static let lines = [
        "Host: a\r\n", "Host: a\r\n", "Content-Length: 5\r\n", "X: y\r\n",
        "A-Long-Name-Of-A-Field: and a long value of it\r\n",
        "X : y\r\n", " fold\r\n", "X: \0\r\n", "X: y\n", "X: y\rz\r\n", "\r\n", "\r\n", "\n", "noColon\r\n",
    ]

    static func message(_ seed: Int) -> [UInt8] {
        var random = SeededGenerator(seed: seed)
        var bytes = Array(starts.randomElement(using: &random)!.utf8)
        for _ in 0..<Int.random(in: 0...8, using: &random) { bytes += lines.randomElement(using: &random)!.utf8 }
        return bytes + Array("\r\nbody".utf8)
    }

    static let limits: Limits = {
        var limits = Limits()
        (limits.headBytesMax, limits.fieldCountMax) = (150, 6)
        return limits
    }()

    @Test(arguments: 0..<400) func `request and response`(_ seed: Int) {
        let bytes = Self.message(seed)
        var random = SeededGenerator(seed: seed)
        for limits in [Limits(), Self.limits] {
            let request = parseRequest(bytes, limits: limits)
            let response = parseResponse(bytes, limits: limits)
            let everyByte = Array(0...bytes.count)
            #expect(parseRequest(bytes, askedAt: everyByte, limits: limits) == request)
            #expect(parseResponse(bytes, askedAt: everyByte, limits: limits) == response)
            for _ in 0..<5 {
                let cuts = (0..<3).map { _ in Int.random(in: 0...bytes.count, using: &random) }.sorted() + [bytes.count]
                #expect(parseRequest(bytes, askedAt: cuts, limits: limits) == request)
                #expect(parseResponse(bytes, askedAt: cuts, limits: limits) == response)
            }
        }
    }

    @Test func `a head may serve another connection between two pieces`() throws {
        let first = Array("GET /first HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n".utf8)
        let second = Array("HEAD /2 HTTP/1.0\r\n\r\n".utf8)
        var head = RequestHead()
        var progress = HeadProgress()
        var otherProgress = HeadProgress()
        #expect(
            try !parseRequestHead(first.span.extracting(0..<30), into: &head, progress: &progress, limits: Limits()))
        #expect(try parseRequestHead(second.span, into: &head, progress: &otherProgress, limits: Limits()))
        #expect(try parseRequestHead(first.span, into: &head, progress: &progress, limits: Limits()))
        #expect(head.method == .get && head.fields.lines.count == 2)
        #expect(text(first[head.targetRange]) == "/first")
    }

    /// What fuzzing found once must never come back.
    @Test(arguments: ["FuzzRequestHead", "FuzzResponseHead", "FuzzChunkedBody"])
    func `inputs that failed before give no difference`(_ target: String) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let folder = root.appending(path: "FuzzTesting/FailCases/\(target)")
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            let bytes = Array(try Data(contentsOf: file))
            let everyByte = Array(0...bytes.count)
            for limits in [Limits(), Self.limits] {
                #expect(
                    parseRequest(bytes, limits: limits) == parseRequest(bytes, askedAt: everyByte, limits: limits))
                #expect(
                    parseResponse(bytes, limits: limits) == parseResponse(bytes, askedAt: everyByte, limits: limits))
                #expect(
                    decodeChunked(bytes, limits: limits) == decodeChunked(bytes, pieces: everyByte, limits: limits))
            }
        }
    }
}

@Suite("Serialize then parse is identity")
struct SerializerTests {
    @Test(arguments: 0..<50) func `heads`(_ seed: Int) throws {
        var random = SeededGenerator(seed: seed)
        var fields = Fields()
        fields.append(.host, "a.example")
        for _ in 0..<Int.random(in: 0...20, using: &random) {
            let value = String(repeating: "v ", count: Int.random(in: 0...20, using: &random)) + "w"
            let name = FieldName.allCases.filter { $0 != .other && $0 != .host }.randomElement(using: &random)!
            if Bool.random(using: &random) {
                fields.append(name, value)
            } else {
                fields.append(.other, spelling: Array("X-Name".utf8), value.utf8)
            }
        }
        var request: [UInt8] = []
        appendRequestLine("GET".utf8, "http://a.example/x".utf8, to: &request)
        appendFieldLines(fields, to: &request)
        request += [0x0D, 0x0A]
        var head = RequestHead()
        var progress = HeadProgress()
        #expect(try parseRequestHead(request.span, into: &head, progress: &progress, limits: Limits()))
        let parsed = Fields(bytes: request, section: head.fields)
        #expect(parsed.lines.map(\.name) == fields.lines.map(\.name))
        #expect(parsed.lines.map { parsed.name(of: $0) } == fields.lines.map { fields.name(of: $0) })
        #expect(parsed.lines.map { parsed.value(of: $0) } == fields.lines.map { fields.value(of: $0) })
        var again = Array(request.prefix(head.fields.lines[0].nameRange.lowerBound))
        appendFieldLines(parsed, to: &again)
        #expect(again + [0x0D, 0x0A] == request)
    }

    @Test func `start lines`() {
        var bytes: [UInt8] = []
        appendStatusLine(404, reason: nil, to: &bytes)
        appendStatusLine(200, reason: Array("Fine".utf8)[...], to: &bytes)
        appendStatusLine(299, reason: nil, to: &bytes)
        appendRequestLine("GET".utf8, "/".utf8, minorVersion: 0, to: &bytes)
        appendFieldLine(.eTag, "\"a\"".utf8, to: &bytes)
        appendFieldLine("x".utf8, "y".utf8, to: &bytes)
        appendLastChunk(trailers: nil, to: &bytes)
        #expect(
            text(bytes) == "HTTP/1.1 404 Not Found\r\nHTTP/1.1 200 Fine\r\nHTTP/1.1 299 \r\nGET / HTTP/1.0\r\n"
                + "ETag: \"a\"\r\nx: y\r\n0\r\n\r\n")
    }
}
