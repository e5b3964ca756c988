import Foundation
import ProgramUnderTest
import Testing

@Suite(
    "Access rules with lists from files",
    .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct AccessListTests {
    private static func access(_ place: Workplace) -> String {
        """
        access:
          default: allow
          private_destinations: allow
          rules:
            - deny: { host: { file: \(place.path("blocked.txt")) }, reason: "blocked" }
            - deny: { path: "/seen/*", report: yes }
            - redirect: { path: "/old/*", to: "https://help.example/old" }
        """
    }

    @Test func `a list that changes is read again, and one with a fault is not`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: "location / { return 200 origin; }")
            try place.write("blocked.txt", "# nothing yet\n".utf8)
            let larder = try await Larder.start(in: place, access: Self.access(place))
            func status() async throws -> Int {
                try await place.curl("\(nginx.url)/x?\(UUID())", through: larder).status
            }
            #expect(try await status() == 200)
            try place.write("blocked.txt", "0.0.0.0 ads.example\n127.0.0.1\n".utf8)
            try await eventually("the list is in force") { try await status() == 403 }
            try place.write("blocked.txt", "ads.example\nnot a host\n".utf8)
            try await eventually("the fault is said") {
                larder.child.errors.contains("blocked.txt:2: \"not a host\" is not one host")
                    && larder.child.errors.contains("the earlier lists stay in force")
            }
            #expect(try await status() == 403)
            try place.write("blocked.txt", "ads.example\n".utf8)
            try await eventually("the list is in force") { try await status() == 200 }
        }
    }

    @Test func `check counts the entries, explain names the one that matches, and curl follows to the page`()
        async throws
    {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: "location / { return 200 origin; }")
            try place.write("blocked.txt", "*.ads.example\nb.example\n".utf8)
            let larder = try await Larder.start(in: place, access: Self.access(place))
            let check = try await place.run(Larder.executable, ["check", "--config", larder.configuration])
            #expect(
                check.status == 0
                    && check.out.contains("1.  deny: host \(place.path("blocked.txt")) (2 entries) (\"blocked\")"),
                "\(check)")
            #expect(check.out.contains("2.  deny: path /seen/* → report only"), "\(check)")
            let explained = try await larder.command("explain", "http://x.ads.example/")
            #expect(explained.out.contains("*.ads.example in \(place.path("blocked.txt"))"), "\(explained)")
            let reported = try await larder.command("explain", "\(nginx.url)/seen/x")
            #expect(reported.out.contains("rule 2 matches, and only reports"), "\(reported)")

            let sent = try await place.curl("\(nginx.url)/old/x", through: larder)
            #expect(sent.status == 302 && sent.fields["location"] == "https://help.example/old", "\(sent)")
            #expect(try await place.curl("\(nginx.url)/seen/x", through: larder).status == 200)
            try await eventually("the log has the report") {
                textOfFile(larder.accessLog).contains("\"reported\":[2]")
            }
            #expect(try await larder.statistic("requests", "reported") == 1)
        }
    }
}
