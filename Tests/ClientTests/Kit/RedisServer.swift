import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// Debian's redis-server, without files, on a port of its own.
struct RedisServer: Sendable {
    let place: Workplace
    let child: Child
    let port: UInt16
    /// What redis-cli needs to be let in.
    let access: [String]

    static let isInstalled = installed("redis-server") != nil && installed("redis-cli") != nil

    /// - Parameters:
    ///   - port: that of one that has ended, whose place this one takes.
    ///   - words: more options. They may replace the port.
    ///   - access: options of redis-cli.
    static func start(
        in place: Workplace, port: UInt16? = nil, _ words: [String] = [], access: [String] = []
    ) async throws -> RedisServer {
        let port = port ?? FreePort.take()
        let folder = try place.makeDirectory("redis-\(port)")
        let child = try await place.start(
            "redis-server",
            ["--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder] + words)
        let server = RedisServer(place: place, child: child, port: port, access: access)
        try await eventually("redis is up; it said: \(child.output)\(child.errors)") {
            if let status = child.exitStatus {
                throw Failure(description: "redis ended with \(status): \(child.output)\(child.errors)")
            }
            return child.output.contains("Ready to accept connections")
        }
        return server
    }

    /// Another one with the port and without the data of this one, which has ended.
    func again(_ words: [String] = []) async throws -> RedisServer {
        try await RedisServer.start(in: place, port: port, words, access: access)
    }

    /// Ends it, as a crash does.
    func end() async throws {
        child.signal(SIGKILL)
        _ = try await child.end(within: .seconds(10))
    }

    /// What redis-cli prints.
    @discardableResult
    func ask(_ words: String...) async throws -> String { try await ask(words) }

    @discardableResult
    func ask(_ words: [String]) async throws -> String {
        let output = try await place.run("redis-cli", ["-p", "\(port)"] + access + words)
        #expect(output.status == 0, "\(words): \(output)")
        return output.out.trimmingCharacters(in: .newlines)
    }

    /// The names of records, or of parts of bodies (b).
    func names(_ kind: String = "r") async throws -> [String] {
        try await ask("--raw", "KEYS", "larder:1:\(kind):*").split(separator: "\n").map(String.init).sorted()
    }
}
