import Foundation
import ProgramUnderTest

/// The real executable, running.
final class Larder: Sendable {
    /// How it is started.
    struct Order: Sendable {
        /// The directory of its configuration, its socket and its output.
        var directory: String
        var memoryMiB = 8
        /// Nil if responses are in memory only.
        var disk: Disk?
        /// Words before those of the program, such as a program that starts it with a limit.
        var wrapper: [String] = []

        struct Disk: Sendable {
            var path: String
            var sizeMiB: Int
            var syncMilliseconds = 200
        }
    }

    let program: Program
    let port: UInt16
    let socket: String

    /// Starts the program, and does not wait until it serves.
    static func launch(_ order: Order) throws -> Program {
        try Program.startLarder(in: order.directory, configuration: order.configuration, wrapper: order.wrapper)
    }

    /// Starts the program, and waits until it serves. Blocks.
    init(_ order: Order) throws {
        program = try Self.launch(order)
        socket = order.socket
        port = try program.waitUntilServing()
    }

    func connect() throws(SocketError) -> Stream { try Stream.connect(port: port) }

    // MARK: admin

    /// Sends a request to the admin server. Returns status and body. Blocks.
    func admin(_ method: String, _ path: String, body: String = "") throws -> (status: Int, body: [UInt8]) {
        let stream = try Stream.connect(unix: socket)
        try stream.send(
            "\(method) \(path) HTTP/1.1\r\nHost: larder\r\nConnection: close\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        let answer = try readAnswer(stream, to: method)
        return (answer.status, answer.body)
    }

    /// Purges like the command line. Returns whether the purge was acknowledged.
    func purge(_ conditions: [String: String]) throws -> Bool {
        let body = String(decoding: try JSONEncoder().encode(conditions), as: UTF8.self)
        return try admin("POST", "/purge", body: body).status == 200
    }

    /// What `/stats` says.
    func statistics() throws -> [String: Any] {
        let answer = try admin("GET", "/stats")
        return try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any] ?? [:]
    }
}

extension Larder.Order {
    var socket: String { "\(directory)/admin.sock" }

    var configuration: String {
        let disk =
            disk.map { "disk: { path: \($0.path), size: \($0.sizeMiB)MiB, sync: \($0.syncMilliseconds)ms }" }
            ?? "disk: { path: \(directory)/none, size: 0 }"
        return """
            listen: [ { address: 127.0.0.1:0 } ]
            workers: 2
            admin: { address: off, socket: \(socket) }
            cache:
              memory: \(memoryMiB)MiB
              object_size_max: 8MiB
              \(disk)
            log: { access: off, level: info }
            timeouts: { drain: 3s }
            access:
              rules:
                - allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ] }

            """
    }
}
