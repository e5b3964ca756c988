import Glibc

/// One response as it was received.
struct Answer: Sendable {
    var status = 0
    /// Names in lower case.
    var fields: [String: String] = [:]
    var body: [UInt8] = []
    /// All of the body came.
    var isWhole = false

    var isHit: Bool { fields["cache-status"]?.hasPrefix("larder; hit") == true }
    /// Whether the proxy says that the response is stored for as long as its rules want: a hit, or what has come and is stored.
    var isStored: Bool {
        guard let status = fields["cache-status"], !status.contains("memory-only") else { return false }
        return isHit || status.contains("; stored")
    }
    var entityTag: String? { fields["etag"] }
    var closes: Bool { fields["connection"]?.lowercased() == "close" }
}

/// The peer went away, or was silent for too long, in the middle of an answer.
struct BrokenOff: Error, CustomStringConvertible {
    /// What there was of it.
    var part: Answer?
    var reason: SocketError

    var description: String { "broke off: \(reason), after \(part.map { "\($0.body.count) bytes" } ?? "nothing")" }
}

/// Reads a response, and its body as RFC 9112 §6 says it ends.
/// - Parameter told: how many bytes of the body there are, after each piece; false: read no further.
func readAnswer(
    _ stream: Stream, to method: String, told: (Int) -> Bool = { _ in true }
) throws(BrokenOff) -> Answer {
    var answer = Answer()
    do throws(SocketError) {
        repeat {
            guard let head = try stream.readHead() else { throw .gone }
            answer = parsedHead(head)
        } while answer.status / 100 == 1
        try readBody(of: &answer, stream, to: method, told)
    } catch {
        throw BrokenOff(part: answer.status == 0 ? nil : answer, reason: error)
    }
    return answer
}

private func parsedHead(_ text: String) -> Answer {
    let lines = text.split(separator: "\r\n")
    var answer = Answer()
    answer.status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    for line in lines.dropFirst() {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { continue }
        let value = line[line.utf8.index(after: colon)...].drop { $0 == " " }
        answer.fields[line[..<colon].lowercased()] = String(value)
    }
    return answer
}

private func readBody(
    of answer: inout Answer, _ stream: Stream, to method: String, _ told: (Int) -> Bool
) throws(SocketError) {
    var goesOn = true
    let hear: (Int) -> Void = { goesOn = told($0) && goesOn }
    if method == "HEAD" || answer.status == 204 || answer.status == 304 {
        answer.isWhole = true
    } else if answer.fields["transfer-encoding"]?.lowercased() == "chunked" {
        while goesOn {
            guard let line = try stream.readLine() else { throw .gone }
            let digits = line.prefix { $0.isHexDigit }
            guard let size = Int(digits, radix: 16) else { throw .failed(errno: EBADMSG) }
            try stream.read(size, into: &answer.body, told: hear)
            // After the last chunk this is the empty line that ends the trailer section.
            guard try stream.readLine() == "\r\n" else { throw .failed(errno: EBADMSG) }
            if size == 0 {
                answer.isWhole = true
                return
            }
        }
    } else if let length = answer.fields["content-length"].flatMap({ Int($0) }) {
        while goesOn && answer.body.count < length {
            try stream.read(min(64 << 10, length - answer.body.count), into: &answer.body, told: hear)
        }
        answer.isWhole = answer.body.count == length
    } else {
        throw .failed(errno: EPROTO)  // the proxy answers HTTP/1.1 clients with a length or in chunks
    }
}
