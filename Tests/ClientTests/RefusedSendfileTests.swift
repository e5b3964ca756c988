import Foundation
import ProgramUnderTest
import Testing

/// The real executable where sendfile(2) fails on every file: because the medium cannot be read, and because a sandbox forbids the call.
@Suite(
    "Where sendfile fails, long bodies are copied",
    .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct RefusedSendfileTests {
    /// Starts another program, for which seccomp(2) answers sendfile with an error.
    private static let launcher = """
        import ctypes, errno, os, platform, struct, sys
        number = {"x86_64": 40, "aarch64": 71}[platform.machine()]
        LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
        rules = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, number),
                 (RETURN, 0, 0, 0x00050000 | getattr(errno, sys.argv[1])), (RETURN, 0, 0, 0x7fff0000)]
        program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
        filter = struct.pack("HP", len(rules), ctypes.addressof(program))
        libc = ctypes.CDLL(None, use_errno=True)
        for words in [(38, 1, 0, 0, 0), (22, 2, filter, 0, 0)]:
            if libc.prctl(*words) != 0:
                sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
        os.execv(sys.argv[2], sys.argv[2:])

        """

    @Test(arguments: ["EIO", "EINVAL", "EPERM"], ["size: 0", "size: 1GiB"])
    func `the client gets every byte`(_ error: String, _ size: String) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(
                in: place, server: "location / { add_header Cache-Control max-age=600; }")
            let text = (0..<300_000).map { "\(10_000_000 + $0)\n" }.joined()
            // In memory or on the disk in one piece, and on the disk in blocks.
            let files = ["short": String(text.prefix(500_000)), "long": text]
            for (name, content) in files { try place.write("www/\(name)", content.utf8) }
            let launcher = try place.write("launch.py", Self.launcher.utf8)
            let adminPort = FreePort.take()
            let configuration = """
                listen: [ { address: 127.0.0.1:0 } ]
                admin: { address: 127.0.0.1:\(adminPort), socket: \(place.path("admin.sock")) }
                cache: { memory: 64MiB, disk: { path: \(place.path("store")), \(size) } }
                log: { access: \(place.path("access.jsonl")) }
                \(Larder.openLoopback)

                """
            let larder = try await Larder.start(
                in: place, text: configuration, adminPort: adminPort,
                program: ["python3", launcher, error, Larder.executable])
            for (name, content) in files {
                for round in 1...4 {
                    let reply = try await place.curl("\(nginx.url)/\(name)", through: larder)
                    #expect(reply.text == content, "\(name), \(round)")
                    #expect(reply.isHit == (round > 1))
                }
                let part = try await place.curl("-r", "100000-399999", "\(nginx.url)/\(name)", through: larder)
                #expect(part.text == content.dropFirst(100_000).prefix(300_000), "\(name)")
                #expect(nginx.asked("/\(name)").count == 1)
            }
        }
    }
}
