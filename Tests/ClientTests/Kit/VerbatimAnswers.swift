import Foundation

/// Answers that nginx would not give by itself. A test writes a whole response, head and body, for a path, and the origin sends it as it is and closes the
/// connection. So a body can be shorter than its head says.
enum VerbatimAnswers {
    /// - Parameter body: told the directives of the server block that make nginx pass on these answers where there are some.
    static func with(in place: Workplace, _ body: (_ server: String) async throws -> Void) async throws {
        try await ScriptedOrigin.with { head, connection in
            _ = connection.readBody(after: head)
            let words = head.split(separator: " ")
            let answer = place.bytes("verbatim\(words[1].prefix { $0 != "?" })")
            let end = Data(answer).range(of: Data("\r\n\r\n".utf8))?.upperBound ?? answer.count
            connection.send(words[0] == "HEAD" ? Array(answer[..<end]) : answer)
        } _: { origin in
            try await body(
                """
                if (-f \(place.path("verbatim"))$uri) { return 418; }
                error_page 418 = @verbatim;
                location @verbatim { proxy_pass \(origin.url); proxy_buffering off; }

                """)
        }
    }
}

extension Workplace {
    /// - Parameter length: what the head says of the body. Nil: the truth.
    func writeAnswer(
        _ path: String, status: String = "200 OK", fields: [String] = [], body: [UInt8] = [], length: Int? = nil
    ) throws {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(length ?? body.count)", "Connection: close"] + fields
        try write("verbatim\(path)", Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body)
    }

    /// The body of this file breaks off in its middle.
    func breakOff(_ path: String) throws {
        let content = bytes("www\(path)")
        try writeAnswer(
            path, fields: try validators(path), body: Array(content.prefix(content.count / 2)), length: content.count)
    }

    /// The body of this file is another one of the same length, with the same validators.
    func makeWrong(_ path: String) throws {
        try writeAnswer(path, fields: try validators(path), body: bytes("www\(path)").map { $0 ^ 0x55 })
    }

    /// The file is itself again.
    func mend(_ path: String) throws { try FileManager.default.removeItem(atPath: self.path("verbatim\(path)")) }

    /// Those that nginx gives for the file.
    private func validators(_ path: String) throws -> [String] {
        let attributes = try FileManager.default.attributesOfItem(atPath: self.path("www\(path)"))
        let time = Int((attributes[.modificationDate] as? Date ?? .distantPast).timeIntervalSince1970)
        let size = (attributes[.size] as? Int) ?? 0
        return ["ETag: \"\(String(time, radix: 16))-\(String(size, radix: 16))\""]
    }
}
