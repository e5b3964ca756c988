import ProgramUnderTest
import Foundation
import Glibc
import Testing

/// The real executable with a configuration that says nothing about a disk tier. It runs as a user who may not write to
/// /var/lib, so that nothing of this machine is touched.
@Suite(
    "The disk tier that nobody configured",
    .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct DefaultDiskTests {
    private static let nobody: uid_t = 65_534

    /// The state directory of the user that Larder runs as.
    private func stateDirectory(_ place: Workplace) throws -> String {
        let path = try place.makeDirectory("state")
        if getuid() == 0 {
            #expect(unsafe chmod(place.directory, 0o711) == 0 && chown(path, Self.nobody, Self.nobody) == 0)
        }
        return path
    }

    /// Whoever runs the tests as root has Larder run as nobody, from a copy that nobody can read.
    private func program(_ place: Workplace) async throws -> [String] {
        guard getuid() == 0 else { return [Larder.executable] }
        let copy = place.path("larder")
        if !FileManager.default.fileExists(atPath: copy) {
            // By another program: no child of this one may hold the copy open for writing when it is started.
            let output = try await place.run("install", ["-m", "755", Larder.executable, copy])
            try #require(output.status == 0, "\(output)")
        }
        let user = "\(Self.nobody)"
        return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--pdeathsig", "KILL", "--", copy]
    }

    private func start(
        _ place: Workplace, _ state: String, file: String = "larder.yaml", cache: String = "memory: 64MiB"
    ) async throws -> Larder {
        let port = FreePort.take()
        let text = """
            listen: [ { address: 127.0.0.1:0 } ]
            admin: { address: 127.0.0.1:\(port), socket: off }
            cache: { \(cache) }
            log: { access: off }
            \(Larder.openLoopback)

            """
        return try await Larder.start(
            in: place, text: text, adminPort: port, file: file, program: try await program(place),
            environment: ["XDG_STATE_HOME": state])
    }

    private func isHit(_ place: Workplace, _ url: String, _ larder: Larder) async throws -> Bool {
        try await place.curl("-H", "Cache-Control: only-if-cached", url, through: larder).isHit
    }

    private func stop(_ larder: Larder) async throws {
        larder.child.signal(SIGTERM)
        #expect(try await larder.child.end(within: .seconds(30)) == 0, "\(larder.child.errors)")
    }

    @Test func `what was fetched is a hit after a restart`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/a", "a\n".utf8)
            let state = try stateDirectory(place)
            let first = try await start(place, state)
            #expect(try await place.curl("\(nginx.url)/a", through: first).status == 200)
            try await stop(first)
            let second = try await start(place, state)
            #expect(try await isHit(place, "\(nginx.url)/a", second))
            #expect(!second.child.errors.contains("warning"), "\(second.child.errors)")
            #expect(FileManager.default.fileExists(atPath: "\(state)/larder/larder-store"))
        }
    }

    @Test func `size 0 keeps nothing on the disk`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/a", "a\n".utf8)
            let state = try stateDirectory(place)
            let first = try await start(place, state, cache: "disk: { size: 0 }")
            #expect(try await place.curl("\(nginx.url)/a", through: first).status == 200)
            try await stop(first)
            let second = try await start(place, state, cache: "disk: { size: 0 }")
            #expect(try await !isHit(place, "\(nginx.url)/a", second))
            #expect(!FileManager.default.fileExists(atPath: "\(state)/larder"))
        }
    }

    @Test(arguments: ["memory: 64MiB", "disk: { path: STATE/own, size: 64MiB }"])
    func `a second process on the same directory runs in memory only and says so`(_ cache: String) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/a", "a\n".utf8)
            let state = try stateDirectory(place)
            let cache = cache.replacingOccurrences(of: "STATE", with: state)
            let first = try await start(place, state, cache: cache)
            let second = try await start(place, state, file: "second.yaml", cache: cache)
            #expect(
                second.child.errors.contains("second.yaml:3: cache.disk: \(state)/")
                    && second.child.errors.contains(
                        "is in use by another process: zone default stores responses in memory only"),
                "\(second.child.errors)")
            #expect(try await place.curl("\(nginx.url)/a", through: second).status == 200)
            #expect(try await isHit(place, "\(nginx.url)/a", second))
            // A reload changes nothing about that, and has nothing to complain about.
            second.child.signal(SIGHUP)
            try await eventually("the reload; it said: \(second.child.errors)") {
                second.child.errors.contains("is in force")
            }
            #expect(!second.child.errors.contains("next start"), "\(second.child.errors)")
            try await stop(second)
            #expect(try await !isHit(place, "\(nginx.url)/a", first))
        }
    }
}
