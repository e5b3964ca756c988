import Foundation
import Testing

extension Workplace {
    /// One answer as curl saw it.
    struct Reply: CustomStringConvertible {
        var exit: Int32
        var status: Int
        /// Names in lower case; the fields of the last response, after redirects, tunnels and interim ones.
        var fields: [String: String]
        var heads: String
        var body: [UInt8]
        var errors: String

        var text: String { String(decoding: body, as: UTF8.self) }
        var cacheStatus: String { fields["cache-status"] ?? "" }
        var isHit: Bool { cacheStatus.hasPrefix("larder; hit") }
        var description: String { "exit \(exit)\n\(heads)\(body.count) bytes\n\(errors)" }
    }

    /// curl through the proxy (`through` nil: without one). The words are curl's own, with the URL among them.
    func curl(
        _ words: String..., through larder: Larder?, within limit: Duration = .seconds(60)
    ) async throws -> Reply {
        try await curl(words, through: larder, within: limit)
    }

    /// The same with the words in a list.
    func curl(_ words: [String], through larder: Larder?, within limit: Duration = .seconds(60)) async throws -> Reply {
        let name = "curl-\(UUID().uuidString)"
        let way = larder.map { ["-x", $0.url] } ?? []
        let output = try await run(
            "curl", ["-q", "-sS", "-m", "50", "-D", path("\(name).head"), "-o", path("\(name).body")] + way + words,
            within: limit)
        let heads = String(decoding: bytes("\(name).head"), as: UTF8.self)
        let last = heads.components(separatedBy: "\r\n\r\n").last { !$0.isEmpty } ?? ""
        let lines = last.components(separatedBy: "\r\n")
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        }
        let status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return Reply(
            exit: output.status, status: status, fields: fields, heads: heads, body: bytes("\(name).body"),
            errors: output.err)
    }
}
