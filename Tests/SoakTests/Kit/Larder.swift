import Foundation
import Glibc

/// What the soak could not do at all: start the proxy, open a port.
struct Failure: Error, CustomStringConvertible {
    var description: String
}

/// The real program, running. It dies with the thread that started it.
final class Larder {
    private let process = Process()
    /// Configuration, access log, store and output.
    let directory: String
    let port: UInt16

    /// The executable lies beside the test program, since both are products of this package; LARDER_EXECUTABLE names another.
    private static let executable: String = {
        if let path = ProcessInfo.processInfo.environment["LARDER_EXECUTABLE"] { return path }
        let bundle = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return "\((bundle as NSString).deletingLastPathComponent)/larder"
    }()

    /// Starts the program and waits until it serves.
    /// - Parameter cache: the `cache:` section, in YAML.
    init(cache: String, timeouts: String) throws {
        var template = Array("/tmp/larder-soak-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw Failure(description: "mkdtemp: errno \(errno)") }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let configuration = """
            listen: [ { address: 127.0.0.1:0 } ]
            workers: 2
            admin: { address: off, socket: \(directory)/admin.sock }
            log: { access: \(directory)/access.jsonl, level: info }
            timeouts: \(timeouts)
            access:
              rules:
                - allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ] }
            cache:
            \(cache.replacingOccurrences(of: "DIRECTORY", with: directory))

            """
        try configuration.write(toFile: "\(directory)/larder.yaml", atomically: true, encoding: .utf8)
        for name in ["out", "err"] { _ = FileManager.default.createFile(atPath: "\(directory)/\(name)", contents: nil) }
        process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
        process.arguments = [
            "--pdeathsig", "KILL", "--", Self.executable, "serve", "--config", "\(directory)/larder.yaml",
        ]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle(forWritingAtPath: "\(directory)/out")
        process.standardError = FileHandle(forWritingAtPath: "\(directory)/err")
        try process.run()
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            if let port = Self.port(in: Self.text("\(directory)/out")) {
                self.port = port
                return
            }
            guard process.isRunning, ContinuousClock.now < deadline else {
                throw Failure(description: "larder does not serve: \(Self.text("\(directory)/err"))")
            }
            usleep(5000)
        }
    }

    private static func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    }

    /// Of `larder 0.1.0 serves on 127.0.0.1:PORT`, once the line is whole.
    private static func port(in output: String) -> UInt16? {
        for line in output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        where line.contains(" serves on 127.0.0.1:") {
            return line.split(separator: ":").last.flatMap { UInt16($0) }
        }
        return nil
    }

    var isRunning: Bool { process.isRunning }
    var errors: String { Self.text("\(directory)/err") }
    /// Ends the program with SIGTERM.
    /// - Returns: its exit status; 128 and more for a signal; nil if it did not end and was killed.
    func end(within seconds: Double = 30) -> Int32? {
        if process.isRunning { process.terminate() }
        let deadline = ContinuousClock.now + .seconds(seconds)
        while process.isRunning {
            guard ContinuousClock.now < deadline else {
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
                return nil
            }
            usleep(5000)
        }
        return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
    }

    func removeFiles() { try? FileManager.default.removeItem(atPath: directory) }

    // MARK: admin

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

/// Runs bodies on threads of their own, and waits for all.
func inThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for number in 0..<count {
        group.enter()
        Thread.detachNewThread {
            body(number)
            group.leave()
        }
    }
    group.wait()
}

/// Runs a body that blocks on a thread of its own, not on one of those that all tests share.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
