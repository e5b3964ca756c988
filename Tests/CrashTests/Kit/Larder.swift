import Foundation
import Glibc

/// The real executable, running.
final class Larder: Sendable {
    /// What it is started with.
    struct Order: Sendable {
        /// Where its configuration, its socket and its output are.
        var directory: String
        var memoryMiB = 8
        /// nil: memory only.
        var disk: Disk?
        /// Words before the program's own: what starts it under a limit.
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

    /// It lies beside the test program, since both are products of this package; or LARDER_EXECUTABLE says where it is.
    static let executable: String = {
        if let path = ProcessInfo.processInfo.environment["LARDER_EXECUTABLE"] { return path }
        let bundle = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return "\((bundle as NSString).deletingLastPathComponent)/larder"
    }()

    /// Starts it, and does not wait until it is ready.
    static func launch(_ order: Order) throws -> Program {
        let file = "\(order.directory)/larder.yaml"
        try order.configuration.write(toFile: file, atomically: true, encoding: .utf8)
        let logs = "\(order.directory)/larder"
        // The line that says it is ready is to be this one's.
        try? FileManager.default.removeItem(atPath: "\(logs).out")
        return try Program(order.wrapper + [executable, "serve", "--config", file], logs: logs)
    }

    /// Starts it and waits until it is ready. Blocks.
    init(_ order: Order) throws {
        let program = try Self.launch(order)
        self.program = program
        socket = order.socket
        port = try eventually("larder is ready; it said: \(program.output)\(program.errors)") {
            if let status = program.exitStatus {
                throw Failure(description: "larder ended with status \(status): \(program.errors)")
            }
            return readyPort(program.output)
        }
    }

    func connect() throws(SocketError) -> Stream { try Stream.connect(port: port) }

    // MARK: admin

    /// Asks the admin server: status and body. Blocks.
    func admin(_ method: String, _ path: String, body: String = "") throws -> (status: Int, body: [UInt8]) {
        let stream = try Stream.connect(unix: socket)
        try stream.send(
            "\(method) \(path) HTTP/1.1\r\nHost: larder\r\nConnection: close\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
        let answer = try readAnswer(stream, to: method)
        return (answer.status, answer.body)
    }

    /// Purges, as the command line does. True: it was acknowledged.
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

/// `larder 0.1.0 serves on 127.0.0.1:PORT`, once the line is whole.
private func readyPort(_ output: String) -> UInt16? {
    for line in output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    where line.hasPrefix("larder ") && line.contains(" serves on 127.0.0.1:") {
        return line.split(separator: ":").last.flatMap { UInt16($0) }
    }
    return nil
}
