import Foundation
import Glibc
import ProgramUnderTest

/// The real program, running.
final class Larder: Sendable {
    private let program: Program
    /// Configuration, access log, store and output.
    let directory: String
    let port: UInt16

    /// Starts the program and waits until it serves.
    ///
    /// - Parameters:
    ///   - cache: the `cache:` section, in YAML.
    ///   - origins: the `origins:` section.
    ///   - credentials: the `credentials:` section.
    init(cache: String, origins: String, credentials: String, timeouts: String) throws {
        directory = try makeTemporaryDirectory("larder-soak")
        try Gate.htpasswd.write(toFile: "\(directory)/users.htpasswd", atomically: true, encoding: .utf8)
        let configuration = """
            listen: [ { address: 127.0.0.1:0 } ]
            workers: 2
            admin: { address: off, socket: \(directory)/admin.sock }
            log: { access: \(directory)/access.jsonl, level: info }
            timeouts: \(timeouts)
            origins: \(origins)
            credentials: \(credentials)
            dns: { hosts: { \(Question.originName): 127.0.0.1 } }
            \(Gate.access(usersFile: "\(directory)/users.htpasswd"))
            cache:
            \(cache.replacingOccurrences(of: "DIRECTORY", with: directory))

            """
        program = try Program.startLarder(in: directory, configuration: configuration)
        port = try program.waitUntilServing()
    }

    var isRunning: Bool { program.isRunning }
    var errors: String { program.errors }
    /// Ends the program with SIGTERM.
    /// - Returns: its exit status; 128 and more for a signal; nil if it did not end and was killed.
    func end(within seconds: Double = 30) -> Int32? {
        program.signal(SIGTERM)
        if let status = program.end(within: seconds) { return status }
        program.signal(SIGKILL)
        _ = program.end(within: seconds)
        return nil
    }

    func removeFiles() { try? FileManager.default.removeItem(atPath: directory) }

    // MARK: admin

    func statistic(_ group: String, _ name: String) throws -> Int {
        (try admin("GET", "/stats")[group] as? [String: Any])?[name] as? Int ?? 0
    }

    /// Asks the admin server, and returns its answer's JSON.
    func admin(_ method: String, _ path: String, body: String = "") throws -> [String: Any] {
        guard let socket = Socket.connect(unix: "\(directory)/admin.sock") else {
            throw Failure(description: "the admin socket does not answer: \(errors)")
        }
        socket.setPatience(seconds: 30)
        socket.send(
            "\(method) \(path) HTTP/1.1\r\nHost: larder\r\nConnection: close\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        var all: [UInt8] = []
        while case .bytes = socket.receive(into: &all, 65_536) {}
        let text = String(decoding: all, as: UTF8.self)
        guard let end = text.range(of: "\r\n\r\n"),
            let json = try JSONSerialization.jsonObject(with: Data(text[end.upperBound...].utf8)) as? [String: Any]
        else { throw Failure(description: "\(method) \(path): \(text)") }
        return json
    }
}
