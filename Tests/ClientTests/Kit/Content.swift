import EventLoop
import Foundation
import TLS
import Testing

/// Bytes without a pattern, the same in every run.
func noise(_ count: Int) -> [UInt8] {
    var state = UInt64(count) &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state >> 24)
    }
}

/// What a `ScriptedOrigin` was sent.
final class Received: Sendable {
    private let content = Locked<(head: String, body: [UInt8])>(("", []))

    var head: String { content.withLock { $0.head } }
    var body: [UInt8] { content.withLock { $0.body } }
    var isChunked: Bool { head.lowercased().contains("transfer-encoding: chunked") }

    /// Reads the body that the head announces, chunked or with a length.
    func take(_ head: String, _ connection: ScriptedConnection) {
        var body: [UInt8] = []
        content.withLock { $0 = (head, []) }
        if isChunked {
            while let size = Int(readLine(connection), radix: 16), size > 0 {
                body += read(size, connection)
                _ = readLine(connection)
            }
        } else {
            let line = head.lowercased().components(separatedBy: "\r\n").first { $0.hasPrefix("content-length:") }
            body = read(line.flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0, connection)
        }
        content.withLock { $0 = (head, body) }
    }

    private func read(_ count: Int, _ connection: ScriptedConnection) -> [UInt8] {
        var result: [UInt8] = []
        while result.count < count {
            let bytes = connection.receive(min(65_536, count - result.count))
            guard !bytes.isEmpty else { break }
            result += bytes
        }
        return result
    }

    private func readLine(_ connection: ScriptedConnection) -> String {
        var line: [UInt8] = []
        while line.last != 0x0A {
            let byte = connection.receive(1)
            guard !byte.isEmpty else { break }
            line += byte
        }
        return String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

extension Workplace {
    /// A key and a certificate for this name, localhost and 127.0.0.1, signed by itself.
    func certificate(for name: String = "localhost") async throws -> (certificate: String, key: String) {
        let output = try await run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-keyout", path("key.pem"), "-out", path("certificate.pem"), "-subj", "/CN=\(name)", "-addext",
                "subjectAltName=DNS:\(name),DNS:localhost,IP:127.0.0.1",
            ])
        try #require(output.status == 0, "\(output)")
        return (path("certificate.pem"), path("key.pem"))
    }

    /// A listener that shows such a certificate: keys of its entry of `listen`, with a comma in front.
    func ownTLS() async throws -> String {
        let own = try await certificate()
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: own.key)
        return ", tls: { certificate: \(own.certificate), key: \(own.key) }"
    }

    /// The digest of a file in hexadecimal digits.
    func digest(of file: String, _ program: String = "sha256sum") async throws -> String {
        let output = try await run(program, [path(file)])
        return try #require(output.out.split(separator: " ").first.map(String.init), "\(output)")
    }

    /// Makes a ZIP archive of these names and texts.
    func zip(_ archive: String, _ files: KeyValuePairs<String, String>) async throws {
        try makeDirectory((archive as NSString).deletingLastPathComponent)
        let program = """
            import sys, zipfile
            words = sys.argv[2:]
            with zipfile.ZipFile(sys.argv[1], "w") as archive:
                for name, text in zip(words[::2], words[1::2]): archive.writestr(name, text)
            """
        let output = try await run("python3", ["-c", program, path(archive)] + files.flatMap { [$0.key, $0.value] })
        try #require(output.status == 0, "\(output)")
    }

    /// Makes a wheel and puts it where the store of a Python index has it: its address is the digest of its content. Returns its path.
    func publishWheel(_ name: String, _ files: KeyValuePairs<String, String>) async throws -> String {
        try await zip("wheels/\(name)", files)
        let bytes = bytes("wheels/\(name)")
        var digest = RunningDigest(.blake2b256)
        unsafe bytes.withUnsafeBytes { unsafe digest.update($0) }
        let digits = digest.finish().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let path = "/packages/\(digits.prefix(2))/\(digits.dropFirst(2).prefix(2))/\(digits.dropFirst(4))/\(name)"
        try write("www\(path)", bytes)
        return path
    }
}
