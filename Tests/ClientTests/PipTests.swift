import Foundation
import Testing

@Suite(
    "pip",
    .enabled(
        if: Nginx.isInstalled && installed("pip3") != nil && installed("python3") != nil,
        "packages python3-pip, nginx-light"))
struct PipTests {
    /// A wheel by hand: what PEP 427 asks for and nothing else.
    private static let makeWheel = """
        import sys, zipfile
        with zipfile.ZipFile(sys.argv[1], "w") as wheel:
            wheel.writestr("larder_demo.py", "# " + "x" * 50000 + "\\n")
            info = "larder_demo-1.0.dist-info/"
            wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: larder-demo\\nVersion: 1.0\\n")
            wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
            wheel.writestr(info + "RECORD", "")
        """
    private static let wheel = "larder_demo-1.0-py3-none-any.whl"

    @Test func `a download by way of a simple index, the second from the cache`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.makeDirectory("www/files")
            let made = try await place.run(
                "python3", ["-c", Self.makeWheel, place.path("www/files/\(Self.wheel)")])
            try #require(made.status == 0, "\(made)")
            let content = place.bytes("www/files/\(Self.wheel)")
            try place.write("www/files/\(Self.wheel)", content)
            let digest = try await place.run("sha256sum", [place.path("www/files/\(Self.wheel)")]).out.prefix(64)
            try place.write(
                "www/simple/larder-demo/index.html",
                """
                <!DOCTYPE html><html><body>
                <a href="../../files/\(Self.wheel)#sha256=\(digest)">\(Self.wheel)</a></body></html>
                """.utf8)
            let larder = try await Larder.start(in: place)
            for round in 1...2 {
                let output = try await place.run(
                    "pip3",
                    [
                        "download", "--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-deps",
                        "--proxy",
                        larder.url, "--index-url", "\(nginx.url)/simple/", "--trusted-host", "127.0.0.1", "--retries",
                        "0", "-d", place.path("round-\(round)"), "larder-demo",
                    ])
                #expect(output.status == 0, "\(output)")
                #expect(place.bytes("round-\(round)/\(Self.wheel)") == content)
            }
            #expect(nginx.asked("/files/\(Self.wheel)").count == 1, "\(nginx.asked)")
            // pip asks for index pages with Cache-Control: max-age=0, so the second is a validation.
            let pages = nginx.asked("/simple/larder-demo/")
            #expect(pages.count == 2 && pages.last?.contains(" 304 ") == true, "\(pages)")
        }
    }
}
