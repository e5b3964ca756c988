import Foundation
import Glibc
import ProgramUnderTest
import let ProgramUnderTest.larderExecutable
import func ProgramUnderTest.readyPort
import Testing

/// The real executable, running, with a configuration made for one test.
struct Larder: Sendable {
    let place: Workplace
    let child: Child
    let port: UInt16
    let adminPort: UInt16
    let configuration: String
    let socket: String
    let accessLog: String

    var url: String { "http://127.0.0.1:\(port)" }
    /// What programs are told by their environment.
    var proxy: [String: String] { proxy(as: nil) }

    /// - Parameter credentials: `user:password`.
    func proxy(as credentials: String?) -> [String: String] {
        let place = url(as: credentials)
        return ["http_proxy": place, "https_proxy": place]
    }

    func url(as credentials: String?) -> String {
        credentials.map { url.replacingOccurrences(of: "http://", with: "http://\($0)@") } ?? url
    }

    static let executable = larderExecutable

    /// Whoever opens loopback to the test's servers, and nothing else.
    static let openLoopback = """
        access:
          rules:
            - allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ] }
        """

    /// The text of a configuration whose every path lies in the workplace.
    ///
    /// - Parameter listener: more keys of the entry of `listen`, with a comma in front.
    static func configuration(
        in place: Workplace, port: UInt16 = 0, adminPort: UInt16, access: String = openLoopback, more: String = "",
        listener: String = ""
    ) -> String {
        """
        listen: [ { address: 127.0.0.1:\(port)\(listener) } ]
        admin:
          address: 127.0.0.1:\(adminPort)
          socket: \(place.path("admin.sock"))
        cache: { memory: 64MiB, disk: { size: 0 } }
        log: { access: \(place.path("access.jsonl")), level: info }
        \(access)
        \(more)

        """
    }

    /// The rules of one that asks for a password: ali's is sesame.
    static func accessForAli(in place: Workplace) async throws -> String {
        try place.write("word", "sesame\n".utf8)
        let made = try await place.run(executable, ["passwd", place.path("users"), "ali"], input: place.path("word"))
        try #require(made.status == 0, "\(made)")
        return """
            access:
              authentication: { basic: { realm: the larder, users: \(place.path("users")) } }
              rules: [ allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ], user: [ ali ] } ]
            """
    }

    static func startWithUsers(in place: Workplace) async throws -> Larder {
        try await start(in: place, access: try await accessForAli(in: place))
    }

    static func start(
        in place: Workplace, access: String = openLoopback, more: String = "", listener: String = ""
    ) async throws -> Larder {
        let adminPort = FreePort.take()
        let text = configuration(in: place, adminPort: adminPort, access: access, more: more, listener: listener)
        return try await start(in: place, text: text, adminPort: adminPort)
    }

    /// - Parameters:
    ///   - program: what starts the executable: the executable itself, or a program that takes it as an argument.
    ///   - inherited: what the process has as descriptor 3.
    static func start(
        in place: Workplace, text: String, adminPort: UInt16, file name: String = "larder.yaml",
        program: [String] = [executable], environment: [String: String] = [:], inherited: CInt? = nil
    ) async throws -> Larder {
        let file = try place.write(name, text.utf8)
        let child = try await place.start(
            program[0], program.dropFirst() + ["serve", "--config", file], environment: environment,
            inherited: inherited)
        let port = try await eventually("larder is ready; it said: \(child.output)\(child.errors)") {
            () async throws -> UInt16? in
            if let status = child.exitStatus {
                throw Failure(description: "larder ended with status \(status): \(child.errors)")
            }
            return readyPort(in: child.output)
        }
        return Larder(
            place: place, child: child, port: port, adminPort: adminPort, configuration: file,
            socket: place.path("admin.sock"), accessLog: place.path("access.jsonl"))
    }

    /// Runs another command of the same executable, with the same configuration.
    func command(_ words: String..., input: String? = nil) async throws -> Workplace.Output {
        try await place.run(Larder.executable, words + ["--config", configuration], input: input)
    }

    /// `larder stats --json`, a number by its path.
    func statistic(_ path: String...) async throws -> Int {
        let output = try await command("stats", "--json")
        var value: Any? = try JSONSerialization.jsonObject(with: Data(output.out.utf8))
        for name in path { value = (value as? [String: Any])?[name] }
        return try #require(value as? Int, "no \(path) in \(output.out)")
    }

    /// A line of /proc/PID/status in bytes.
    func memory(_ name: String) throws -> Int {
        let line = textOfFile("/proc/\(child.pid)/status").split(separator: "\n").first { $0.hasPrefix("\(name):") }
        let kibibytes = line?.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Int($0) }
        return try #require(kibibytes, "no \(name)") * 1024
    }
}
