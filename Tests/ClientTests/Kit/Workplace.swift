import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// A directory and the programs that one test starts in it. All of it is gone when the test is.
final class Workplace: Sendable {
    let directory: String
    private let children = Locked<[Child]>([])
    private let serial = Locked(0)

    /// Two cores serve all tests: a handful of proxies and servers at a time is what they can do in good time.
    private static let turnstile = Turnstile(4)

    static func with(_ body: (Workplace) async throws -> Void) async throws {
        await turnstile.enter()
        let place: Workplace
        do {
            place = try Workplace()
        } catch {
            await turnstile.leave()
            throw error
        }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(place))
        } catch {
            result = .failure(error)
        }
        await place.clear()
        await turnstile.leave()
        try result.get()
    }

    private init() throws {
        var template = Array("/tmp/larder-clients-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw Failure(description: "mkdtemp: errno \(errno)") }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        try makeDirectory("home")
    }

    private func clear() async {
        for child in children.withLock({ $0.reversed() }) {
            await child.stop()
            // A sanitizer speaks up at the latest when its program ends.
            #expect(!child.errors.contains("Sanitizer: "), "\(child.errors)")
        }
        try? FileManager.default.removeItem(atPath: directory)
    }

    // MARK: files

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    @discardableResult
    func makeDirectory(_ name: String) throws -> String {
        try FileManager.default.createDirectory(atPath: path(name), withIntermediateDirectories: true)
        return path(name)
    }

    /// Writes a file; its directory is made where there is none.
    /// - Parameter age: days since it was last modified. Old files stay fresh for long by the heuristic of RFC 9111
    ///   §4.2.2, new ones for hardly a moment.
    @discardableResult
    func write(_ name: String, _ content: some Sequence<UInt8>, age days: Double = 40) throws -> String {
        let place = path(name)
        try FileManager.default.createDirectory(
            atPath: (place as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try Data(content).write(to: URL(fileURLWithPath: place))
        let date = Date(timeIntervalSinceNow: -days * 86_400)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: place)
        return place
    }

    func bytes(_ name: String) -> [UInt8] {
        Array(FileManager.default.contents(atPath: path(name)) ?? Data())
    }

    // MARK: programs

    /// The environment of all programs: nothing of whoever runs the tests that could steer a client.
    private var environment: [String: String] {
        var result = ["HOME": path("home"), "LC_ALL": "C.UTF-8", "TMPDIR": directory, "GIT_CONFIG_NOSYSTEM": "1"]
        result["PATH"] = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        result["PATH"]! += ":/usr/sbin:/sbin"
        for name in ["ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS"] {
            result[name] = ProcessInfo.processInfo.environment[name]
        }
        return result
    }

    private func order(
        _ program: String, _ arguments: [String], environment more: [String: String], input: String?,
        in folder: String?,
        inherited: CInt?
    ) -> Child.Order {
        let number = serial.withLock {
            $0 += 1
            return $0
        }
        return Child.Order(
            program: program, arguments: arguments, environment: environment.merging(more) { $1 },
            directory: folder ?? directory, input: input ?? "/dev/null", inherited: inherited,
            logs: path("\(number)-\((program as NSString).lastPathComponent)"))
    }

    /// Starts a program that runs until the test ends.
    func start(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], input: String? = nil,
        in folder: String? = nil, inherited: CInt? = nil, lastSignal: String? = nil
    ) async throws -> Child {
        var order = order(
            program, arguments, environment: environment, input: input, in: folder, inherited: inherited)
        if let lastSignal { order.lastSignal = lastSignal }
        let child = try await Child.start(order)
        children.withLock { $0.append(child) }
        return child
    }

    /// What a program that came to its end left behind.
    struct Output: CustomStringConvertible {
        var status: Int32
        var out: String
        var err: String
        var description: String { "status \(status)\n--- out\n\(out)\n--- err\n\(err)" }
    }

    /// Runs a program to its end.
    func run(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], input: String? = nil,
        in folder: String? = nil, within limit: Duration = .seconds(60)
    ) async throws -> Output {
        let child = try await start(program, arguments, environment: environment, input: input, in: folder)
        let status = try await child.end(within: limit)
        children.withLock { $0.removeAll { $0 === child } }
        return Output(status: status, out: child.output, err: child.errors)
    }

    /// Runs a program of Python that needs this module.
    func runPython(
        with module: String, _ program: String, _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> Output {
        let interpreter = try #require(python(with: module), "no Python has \(module)")
        return try await run(interpreter, ["-c", program] + arguments, environment: environment)
    }
}

/// Where a program is on this machine; nil where it is not.
func installed(_ program: String) -> String? {
    copies(of: program).first
}

/// A Python that has this module, as in the environment that Tests/install-clients.sh makes; nil where there is none.
func python(with module: String) -> String? {
    copies(of: "python3").first { python in
        let library = "\((python as NSString).deletingLastPathComponent)/../lib"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: library)) ?? []
        return versions.contains {
            FileManager.default.fileExists(atPath: "\(library)/\($0)/site-packages/\(module)")
        }
    }
}

private func copies(of program: String) -> [String] {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/bin", "/sbin"])
        .map { "\($0)/\(program)" }.filter { FileManager.default.isExecutableFile(atPath: $0) }
}
