import Foundation
import ProgramUnderTest
import Testing

/// curl, whose files Larder reads and whose cookies it keeps, and an origin that lets in who has its cookies.
@Suite("Cookie jars: curl")
struct CookieJarTests {
    /// `/login` sets three cookies. Everything else says which cookies came.
    private static func serve(_ head: String, _ connection: ScriptedConnection) {
        let lines = head.components(separatedBy: "\r\n")
        let cookies = lines.first { $0.lowercased().hasPrefix("cookie:") }?.dropFirst(8) ?? "none"
        let set =
            lines[0].contains("/login")
            ? "Set-Cookie: sid=s3cret\r\nSet-Cookie: kept=1; Path=/; Max-Age=1000; HttpOnly\r\n"
                + "Set-Cookie: deep=1; Path=/x\r\n" : ""
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(cookies.utf8.count)\r\n\(set)\r\n\(cookies)")
    }

    private static func configuration(in place: Workplace) -> String {
        """
        cookie_jars: [ { name: portal, file: \(place.path("portal.cookies")) } ]
        origins: [ { match: { host: 127.0.0.1 }, cookies: portal } ]
        """
    }

    @Test func `an operator logs in with curl -c, and clients get in through Larder, until the session is cleared`()
        async throws
    {
        try await Workplace.with { place in
            try await ScriptedOrigin.with(Self.serve) { origin in
                let login = try await place.curl(
                    "-c", place.path("portal.cookies"), "\(origin.url)/login", through: nil)
                #expect(login.status == 200, "\(login)")
                let larder = try await Larder.start(in: place, more: Self.configuration(in: place))
                let reply = try await place.curl("\(origin.url)/x/y", through: larder)
                #expect(
                    reply.text == "deep=1; kept=1; sid=s3cret" || reply.text == "deep=1; sid=s3cret; kept=1", "\(reply)"
                )
                #expect(larder.child.errors.contains("others can read"), "\(larder.child.errors)")
                let explained = try await larder.command("explain", "\(origin.url)/x/y")
                #expect(explained.out.contains("jar portal, 3 cookies"), "\(explained)")

                let cleared = try await larder.command("session", "clear", "portal")
                #expect(cleared.status == 0 && cleared.out == "forgot the cookies of 1 jar\n", "\(cleared)")
                #expect(try await place.curl("\(origin.url)/x/z", through: larder).text == "none")
                #expect(!textOfFile(place.path("portal.cookies")).contains("s3cret"))
                #expect(!larder.child.errors.contains("s3cret"))

                // While Larder runs, another log-in takes its place.
                _ = try await place.curl("-c", place.path("portal.cookies"), "\(origin.url)/login", through: nil)
                try await eventually("the new cookies are sent") { () async throws -> Bool in
                    try await place.curl("\(origin.url)/x/w", through: larder).text.contains("sid=s3cret")
                }
            }
        }
    }

    @Test func `a log-in through Larder is kept when it is killed, and curl -b reads the file`() async throws {
        try await Workplace.with { place in
            try await ScriptedOrigin.with(Self.serve) { origin in
                let larder = try await Larder.start(in: place, more: Self.configuration(in: place))
                let login = try await place.curl("\(origin.url)/login", through: larder)
                #expect(login.status == 200 && login.fields["set-cookie"] == nil, "\(login)")
                try await eventually("it is saved") { textOfFile(place.path("portal.cookies")).contains("deep") }
                larder.child.signal(SIGKILL)
                _ = try await larder.child.end(within: .seconds(30))

                let own = try await place.curl(
                    "-b", place.path("portal.cookies"), "\(origin.url)/x/y", through: nil)
                #expect(Set(own.text.components(separatedBy: "; ")) == ["deep=1", "sid=s3cret", "kept=1"], "\(own)")

                let next = try await Larder.start(in: place, more: Self.configuration(in: place))
                #expect(
                    try await place.curl("\(origin.url)/x/y", through: next).text == "deep=1; sid=s3cret; kept=1")
            }
        }
    }
}
