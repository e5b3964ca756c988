import Foundation
import ProgramUnderTest
import Testing

@Suite(
    "apt",
    .enabled(
        if: Nginx.isInstalled && installed("apt-get") != nil && installed("dpkg-deb") != nil,
        "packages apt, dpkg, nginx-light"))
struct AptTests {
    private static let count = 12

    /// A repository of a dozen packages, and apt's own directories, all in the workplace.
    private func with(users: Bool = false, _ body: (Workplace, Nginx, Larder) async throws -> Void) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try await makeRepository(place)
            for folder in ["etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"] {
                try place.makeDirectory("apt/\(folder)")
            }
            try place.write("apt/state/status", [])
            try place.write("apt/etc/sources.list", "deb [trusted=yes] \(nginx.url)/ debian/\n".utf8)
            let larder = users ? try await Larder.startWithUsers(in: place) : try await Larder.start(in: place)
            try await body(place, nginx, larder)
        }
    }

    private func makeRepository(_ place: Workplace) async throws {
        var index = ""
        for number in 1...Self.count {
            let name = "larder-demo-\(number)"
            let control = "Package: \(name)\nVersion: 1.0\nArchitecture: all\nMaintainer: A Tester <t@example.org>\n"
            try place.write("build/\(name)/DEBIAN/control", "\(control)Description: made for a test\n".utf8)
            try place.write("build/\(name)/usr/share/\(name)/data", noise(20_000 + number))
            let file = "www/debian/\(name)_1.0_all.deb"
            try place.makeDirectory("www/debian")
            let built = try await place.run(
                "dpkg-deb", ["-Znone", "--root-owner-group", "-b", place.path("build/\(name)"), place.path(file)])
            try #require(built.status == 0, "\(built)")
            let content = place.bytes(file)
            try place.write(file, content)
            index += "\(control)Filename: debian/\(name)_1.0_all.deb\nSize: \(content.count)\n"
            index += "SHA256: \(try await place.digest(of: file))\nDescription: made for a test\n\n"
        }
        try place.write("www/debian/Packages", index.utf8)
        let digest = try await place.digest(of: "www/debian/Packages")
        try place.write(
            "www/debian/Release",
            "Origin: larder\nDate: Sat, 01 Aug 2026 00:00:00 UTC\nSHA256:\n \(digest) \(index.utf8.count) Packages\n"
                .utf8)
    }

    private func apt(
        _ place: Workplace, _ larder: Larder, _ words: [String], in folder: String? = nil, as credentials: String? = nil
    ) async throws -> Workplace.Output {
        let options = [
            "Dir=\(place.path("apt"))", "Dir::Etc=etc", "Dir::State=state", "Dir::State::status=state/status",
            "Dir::Cache=cache", "Dir::Log=log", "APT::Sandbox::User=root", "APT::Architecture=amd64",
            "Acquire::Languages=none", "Acquire::http::Proxy=\(larder.url(as: credentials))/",
            "Acquire::http::Pipeline-Depth=10",
            "Acquire::Retries=0", "Debug::NoLocking=true",
        ]
        let output = try await place.run(
            "apt-get", options.flatMap { ["-o", $0] } + ["-q"] + words, environment: ["APT_CONFIG": "/dev/null"],
            in: folder)
        try #require(output.status == 0, "\(output)")
        return output
    }

    private var packages: [String] { (1...Self.count).map { "larder-demo-\($0)" } }

    @Test func `update and download, again from the cache`() async throws {
        try await with { place, nginx, larder in
            for round in 1...2 {
                let folder = try place.makeDirectory("round-\(round)")
                _ = try await apt(place, larder, ["update"])
                let output = try await apt(
                    place, larder, ["download", "larder-demo-1", "larder-demo-2"], in: folder)
                #expect(
                    place.bytes("round-\(round)/larder-demo-2_1.0_all.deb")
                        == place.bytes("www/debian/larder-demo-2_1.0_all.deb"), "\(output)")
            }
            #expect(nginx.asked("/debian/larder-demo-1_1.0_all.deb").count == 1)
            #expect(nginx.asked("/debian/larder-demo-2_1.0_all.deb").count == 1)
        }
    }

    @Test func `a second update asks with If-Modified-Since and hears 304`() async throws {
        try await with { place, nginx, larder in
            _ = try await apt(place, larder, ["update"])
            let second = try await apt(place, larder, ["update"])
            #expect(second.out.contains("Hit:"), "\(second)")
            // apt asks for indices with Cache-Control: max-age=0: the origin is asked, and has nothing new.
            let log = textOfFile(larder.accessLog)
            try await eventually("a 304 in the log: \(log)") { textOfFile(larder.accessLog).contains("\"status\":304") }
            let asked = nginx.asked("/debian/Release")
            #expect(asked.count == 2 && asked.last?.contains(" 304 ") == true, "\(nginx.asked)")
        }
    }

    @Test func `a new index reaches apt at the next update`() async throws {
        try await with { place, nginx, larder in
            _ = try await apt(place, larder, ["update"])
            let index = textOfFile(place.path("www/debian/Packages"))
                .replacingOccurrences(of: "Version: 1.0", with: "Version: 2.0")
                .replacingOccurrences(of: "_1.0_", with: "_2.0_")
            try place.write("www/debian/Packages", index.utf8, age: 1)
            let digest = try await place.digest(of: "www/debian/Packages")
            try place.write(
                "www/debian/Release",
                "Origin: larder\nDate: Sun, 02 Aug 2026 00:00:00 UTC\nSHA256:\n \(digest) \(index.utf8.count) Packages\n"
                    .utf8,
                age: 1)
            _ = try await apt(place, larder, ["update"])
            let offered = try await apt(place, larder, ["download", "--print-uris", "larder-demo-1"])
            #expect(offered.out.contains("larder-demo-1_2.0_all.deb"), "\(offered)")
        }
    }

    @Test func `a password in the proxy's URL`() async throws {
        try await with(users: true) { place, _, larder in
            _ = try await apt(place, larder, ["update"], as: "ali:sesame")
            let folder = try place.makeDirectory("got")
            _ = try await apt(place, larder, ["download", "larder-demo-1"], in: folder, as: "ali:sesame")
            #expect(
                place.bytes("got/larder-demo-1_1.0_all.deb") == place.bytes("www/debian/larder-demo-1_1.0_all.deb"))
        }
    }

    @Test func `a dozen packages in a pipeline, in order, on few connections`() async throws {
        try await with { place, nginx, larder in
            _ = try await apt(place, larder, ["update"])
            let before = try await larder.statistic("clients", "accepted")
            for round in 1...2 {
                let folder = try place.makeDirectory("round-\(round)")
                _ = try await apt(place, larder, ["download"] + packages, in: folder)
                for name in packages {
                    #expect(
                        place.bytes("round-\(round)/\(name)_1.0_all.deb")
                            == place.bytes("www/debian/\(name)_1.0_all.deb"))
                }
            }
            #expect(try await larder.statistic("clients", "accepted") - before == 2, "one per apt")
            for name in packages { #expect(nginx.asked("/debian/\(name)_1.0_all.deb").count == 1) }
        }
    }
}
