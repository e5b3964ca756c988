import Forwarding
import Framing
import Message
import Testing

/// What became of an answer.
private struct Outcome: Equatable {
    var status: UInt16?
    var interim: [UInt16] = []
    var body = ""
    var isComplete = false
    /// Bytes behind the answer.
    var rest = ""
    var fault: String?
}

/// Reads a response that arrives in pieces of `size` bytes, and then the end of the connection.
private func read(_ text: String, to method: Method = .get, size: Int) -> Outcome {
    let limits = Limits()
    var reader = ResponseReader(to: method)
    var outcome = Outcome()
    var head = ResponseHead()
    var held: [UInt8] = []
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: size) {
        held += bytes[start..<min(start + size, bytes.count)]
        var offset = 0
        steps: while true {
            do throws(FramingError) {
                switch try reader.next(in: held.span, from: &offset, head: &head, limits: limits) {
                case .more: break steps
                case .interim: outcome.interim.append(head.status)
                case .head: outcome.status = head.status
                case .data(let range): outcome.body += String(decoding: held[range], as: UTF8.self)
                case .end:
                    outcome.rest += String(decoding: held[offset...], as: UTF8.self)
                    offset = held.count
                    break steps
                }
            } catch {
                outcome.fault = "\(error.reason)"
                return outcome
            }
        }
        held.removeFirst(offset)
    }
    outcome.isComplete = reader.closed()
    return outcome
}

@Suite("forwarding: reading a response") struct ResponseReaderTests {
    private static let ok = "HTTP/1.1 200 OK\r\n"

    fileprivate static let answers: [(text: String, method: Method, outcome: Outcome)] = [
        (ok + "Content-Length: 2\r\n\r\nok", .get, .init(status: 200, body: "ok", isComplete: true)),
        (ok + "Content-Length: 0\r\n\r\n", .get, .init(status: 200, isComplete: true)),
        (
            ok + "Connection: close\r\nContent-Length: 2\r\n\r\nok", .get,
            .init(status: 200, body: "ok", isComplete: true)
        ),
        (ok + "Content-Length: 9\r\n\r\nok", .get, .init(status: 200, body: "ok")),
        (ok + "\r\nuntil the end", .get, .init(status: 200, body: "until the end", isComplete: true)),
        (
            ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", .get,
            .init(status: 200, body: "ok", isComplete: true)
        ),
        (ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", .get, .init(status: 200, body: "ok")),
        (
            ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n", .get,
            .init(status: 200, fault: "bad-chunk-size")
        ),
        (ok + "Content-Length: 2\r\n\r\n", .head, .init(status: 200, isComplete: true)),
        ("HTTP/1.1 204 No Content\r\n\r\n", .get, .init(status: 204, isComplete: true)),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", .get, .init(status: 304, isComplete: true)),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok
                + "Content-Length: 1\r\n\r\nx", .get,
            .init(status: 200, interim: [100, 103], body: "x", isComplete: true)
        ),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", .get, .init(interim: [101])),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", .get, .init(status: 200, body: "x", isComplete: true)),
        ("SSH-2.0-x\r\nmore and more\r\n\r\n", .get, .init(fault: "bad-status-line")),
        (ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", .get, .init(fault: "differing-cl")),
        (ok + "Content-Le", .get, .init()),
    ]
    @Test(arguments: answers, [1, 2, 7, 1000])
    fileprivate func `the end of an answer is found however it arrives`(
        _ row: (text: String, method: Method, outcome: Outcome), _ size: Int
    ) {
        #expect(read(row.text, to: row.method, size: size) == row.outcome)
    }

    @Test func `bytes behind an answer do not belong to it`() {
        let outcome = read(Self.ok + "Content-Length: 1\r\n\r\nxHTTP/1.1", size: 1000)
        #expect(outcome.body == "x" && outcome.rest == "HTTP/1.1")
    }

    @Test func `content that is read directly is counted like any other`() throws {
        let bytes = Array((Self.ok + "Content-Length: 5\r\n\r\nab").utf8)
        var reader = ResponseReader(to: .get)
        var (head, offset) = (ResponseHead(), 0)
        #expect(reader.readableDirectly == 0)
        #expect(try reader.next(in: bytes.span, from: &offset, head: &head, limits: Limits()) == .head(.length(5)))
        #expect(reader.missing == 5)
        #expect(
            try reader.next(in: bytes.span, from: &offset, head: &head, limits: Limits())
                == .data((bytes.count - 2)..<bytes.count))
        #expect(reader.readableDirectly == 3)
        let isFirstLast = reader.passed(1)
        let isSecondLast = reader.passed(2)
        #expect(!isFirstLast && isSecondLast && reader.phase == .complete && reader.readableDirectly == 0)
    }

    @Test func `nothing of chunked content is read directly`() throws {
        let bytes = Array((Self.ok + "Transfer-Encoding: chunked\r\n\r\n").utf8)
        var reader = ResponseReader(to: .get)
        var (head, offset) = (ResponseHead(), 0)
        #expect(try reader.next(in: bytes.span, from: &offset, head: &head, limits: Limits()) == .head(.chunked))
        #expect(reader.readableDirectly == 0 && reader.missing == nil)
    }
}
