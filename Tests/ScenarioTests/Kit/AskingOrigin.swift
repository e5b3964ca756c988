import EventLoop
import Foundation

/// A server that asks for a certificate of the client: `openssl s_server`. It answers each GET with a page of its own.
final class AskingOrigin {
    enum Demand: String, CaseIterable, Sendable {
        /// A client without a certificate is refused.
        case required = "-Verify"
        /// It goes on without one.
        case optional = "-verify"
    }

    let port: UInt16
    private let process = Process()
    private let directory: URL

    /// - Parameters:
    ///   - version: `-tls1_2` or `-tls1_3`. With TLS 1.3 the refusal comes when the handshake has ended for the client.
    ///   - trusted: clients with another certificate are refused. Nil: every certificate will do.
    init(
        _ certificate: MadeCertificate, _ demand: Demand, version: String, trusting trusted: MadeCertificate? = nil
    ) throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try certificate.certificate.write(
            to: directory.appendingPathComponent("c.pem"), atomically: true, encoding: .utf8)
        try certificate.key.write(to: directory.appendingPathComponent("k.pem"), atomically: true, encoding: .utf8)
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.currentDirectoryURL = directory
        process.arguments = [
            "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", "c.pem", "-key", "k.pem", version,
            demand.rawValue, "1", "-www",
        ]
        if let trusted {
            try trusted.certificate.write(
                to: directory.appendingPathComponent("t.pem"), atomically: true, encoding: .utf8)
            process.arguments? += ["-CAfile", "t.pem", "-verify_return_error"]
        }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        port = try AskingOrigin.port(output.fileHandleForReading)
        self.output = output
    }

    /// Kept open. Nobody reads the rest, which is short.
    private let output: Pipe

    func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

    func end() {
        // The proxy in this process blocks SIGTERM, and children inherit that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: directory)
    }

    /// It says `ACCEPT 127.0.0.1:41375` once it listens.
    private static func port(_ output: FileHandle) throws -> UInt16 {
        var text = ""
        while true {
            let more = output.availableData
            guard !more.isEmpty else { throw WireError("openssl s_server: \(text)") }
            text += String(decoding: more, as: UTF8.self)
            if let match = text.firstMatch(of: /ACCEPT 127\.0\.0\.1:([0-9]+)\n/), let port = UInt16(match.1) {
                return port
            }
        }
    }
}
