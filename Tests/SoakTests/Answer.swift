/// One response as a client received it.
struct Answer: Sendable {
    /// Statuses of the interim responses before it.
    var interims: [Int] = []
    var status = 0
    var head: Head?
    var body: [UInt8] = []
    var isComplete = false
    /// The connection ends with it.
    var closes = false
    var framing = Framing.none

    enum Framing: Sendable { case none, length(Int), chunked, untilClose }

    subscript(_ name: String) -> String? { head?[name] }
    var isHit: Bool { self["cache-status"]?.hasPrefix("larder; hit") == true }
    /// Larder made it, not the origin.
    var isOwn: Bool { self["proxy-status"]?.contains("error=") == true }
    /// Larder has followed redirects to it.
    var isFromElsewhere: Bool { self["proxy-status"]?.contains("redirects followed") == true }
}

/// Why an answer did not come to its end.
enum Interruption: Error {
    /// Visibly: the connection ended before the message did. Nil: before its first byte.
    case brokenOff(Answer?, how: String)
    /// Nothing came for as long as the client waits.
    case silent(Answer?)
    /// What came is not one response.
    case violation(String)
}

extension MessageReader {
    /// Reads interim responses and a final one, by RFC 9112 §4 to §7, and nothing behind it.
    mutating func answer(to question: Question) throws(Interruption) -> Answer {
        var answer = Answer()
        var hasBegun = false
        do throws(Problem) {
            try awaitByte()
            hasBegun = true
            while answer.head == nil { try readHead(of: &answer, to: question) }
            try readBody(of: &answer, to: question)
            answer.isComplete = true
        } catch {
            let part = hasBegun ? answer : nil
            switch error {
            case .end: throw .brokenOff(part, how: "closed")
            case .reset: throw .brokenOff(part, how: "reset")
            case .timedOut: throw .silent(part)
            case .violation(let violation):
                throw .violation(
                    "\(violation)\n    after \(answer.body.count) bytes of the body; the last of them, and what follows:\n"
                        + dump(answer.body.suffix(72)) + "\n      --\n" + dump(pending.prefix(240)))
            }
        }
        return answer
    }

    private mutating func readHead(of answer: inout Answer, to question: Question) throws(Problem) {
        let bytes = try head()
        do throws(Violation) {
            let head = try Head(bytes)
            let status = try status(of: head.startLine)
            if status / 100 == 1 {
                guard status != 101 else { throw Violation("101 without a request for it") }
                guard question.minorVersion == 1 else { throw Violation("\(status) for HTTP/1.0 (RFC 9110 §15.2)") }
                guard head["content-length"] == nil, head["transfer-encoding"] == nil else {
                    throw Violation("an interim response with a length: \(head.fields)")
                }
                answer.interims.append(status)
                return
            }
            answer.status = status
            answer.head = head
            answer.framing = try framing(of: head, status: status, to: question)
            answer.closes = closes(head, answer.framing, question)
        } catch {
            throw .violation(Violation("\(error)\n    in the head:\n\(dump(bytes.prefix(1200)))"))
        }
    }

    private func status(of line: String) throws(Violation) -> Int {
        let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "HTTP/1.1", parts[1].utf8.count == 3, let status = decimal(parts[1]),
            (100...599).contains(status)
        else { throw Violation("no status line: \(line)") }
        return status
    }

    private func framing(of head: Head, status: Int, to question: Question) throws(Violation) -> Answer.Framing {
        let isChunked = try head.isChunked()
        let length = try head.contentLength()
        if isChunked && question.minorVersion == 0 { throw Violation("chunked for HTTP/1.0") }
        if status == 204, isChunked || length != nil { throw Violation("204 with a length (RFC 9110 §8.6)") }
        if status == 304, isChunked { throw Violation("304 in chunks") }
        if question.method == "HEAD" || status == 204 || status == 304 { return .none }
        if isChunked { return .chunked }
        return length.map { .length($0) } ?? .untilClose
    }

    private func closes(_ head: Head, _ framing: Answer.Framing, _ question: Question) -> Bool {
        if case .untilClose = framing { return true }
        let options = head.members("connection")
        if options.contains("close") { return true }
        return question.minorVersion == 0 && !options.contains("keep-alive")
    }

    private mutating func readBody(of answer: inout Answer, to question: Question) throws(Problem) {
        switch answer.framing {
        case .none: return
        case .length(let length): try read(length, into: &answer.body)
        case .untilClose: try readToEnd(into: &answer.body)
        case .chunked: try readChunks(of: &answer)
        }
    }

    private mutating func readChunks(of answer: inout Answer) throws(Problem) {
        while true {
            let line = try line()
            guard (1...8).contains(line.count), line.allSatisfy(isHexDigit),
                let size = Int(String(decoding: line, as: UTF8.self), radix: 16)
            else { throw .violation(Violation("no chunk size: \(String(decoding: line.prefix(80), as: UTF8.self))")) }
            if size == 0 { break }
            try read(size, into: &answer.body)
            var end: [UInt8] = []
            try read(2, into: &end)
            guard end == [13, 10] else { throw .violation(Violation("no CRLF behind a chunk of \(size) bytes")) }
        }
        let section = try trailers()
        do throws(Violation) {
            let forbidden = ["content-length", "transfer-encoding", "content-range", "content-encoding", "host", "age"]
            for field in try Head(trailers: section).fields where forbidden.contains(field.name) {
                throw Violation("\(field.name) in the trailers")
            }
        } catch { throw .violation(error) }
    }
}

private func isHexDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
    default: false
    }
}
