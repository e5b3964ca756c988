import Foundation
import Testing

private let fileText = "the file that is looked for\n"

/// nginx redirects, and Larder follows for clients that do not.
@Suite(
    "origins: redirects, with real programs",
    .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct RedirectTests {
    private static let rule = "origins: [ { match: { port: PORT }, redirects: { max: 3 } } ]"

    private func with(_ body: (Workplace, Nginx, Nginx, Larder) async throws -> Void) async throws {
        try await Workplace.with { place in
            let files = try await Nginx.start(in: place)
            try place.write("www/file", fileText.utf8)
            try await Workplace.with { other in
                let first = try await Nginx.start(
                    in: other,
                    server: """
                        location /latest { add_header Cache-Control max-age=60 always; return 301 /v2/file; }
                        location /v2/ { return 302 \(files.url)/file?X-Amz-Signature=1; }
                        location /round { return 302 /round; }
                        """)
                let port = first.url.split(separator: ":").last ?? ""
                let rule = Self.rule.replacing("PORT", with: port)
                try await body(place, first, files, try await Larder.start(in: place, more: rule))
            }
        }
    }

    @Test func `curl without -L gets the file, whole and in parts, and the log says where it came from`() async throws {
        try await with { place, first, files, larder in
            for round in 1...3 {
                let reply = try await place.curl("\(first.url)/latest", through: larder)
                #expect(reply.status == 200 && reply.text == fileText, "\(reply)")
                #expect(reply.isHit == (round > 1))
                #expect(reply.fields["proxy-status"] == "larder; details=\"redirects followed: 2\"")
                #expect(reply.fields["location"] == nil && reply.fields["content-location"] == nil)
            }
            let part = try await place.curl("-r", "2-5", "\(first.url)/latest", through: larder)
            #expect(part.status == 206 && part.text == fileText.dropFirst(2).prefix(4), "\(part)")
            let head = try await place.curl("-I", "\(first.url)/latest", through: larder)
            #expect(head.status == 200 && head.fields["content-length"] == "\(fileText.utf8.count)", "\(head)")
            // The permanent redirect and the file are stored, and the one between them is not.
            #expect(first.asked("/latest").count == 1 && first.asked("/v2/file").count == 5)
            #expect(files.asked.count == 1)
            let round = try await place.curl("\(first.url)/round", through: larder)
            #expect(round.status == 502 && round.text.contains("redirect-loop"), "\(round)")
            #expect(try await larder.statistic("origins", "redirects_followed") == 10)
        }
    }

    @Test func `explain shows the rule, and where a stored redirect leads`() async throws {
        try await with { place, first, _, larder in
            let output = try await place.run(
                Larder.executable, ["explain", "--config", larder.configuration, "\(first.url)/latest"])
            #expect(output.out.contains("redirects followed, at most 3"), "\(output)")
            _ = try await place.curl("\(first.url)/latest", through: larder)
            let stored = try await place.run(
                Larder.executable, ["explain", "--config", larder.configuration, "\(first.url)/latest"])
            #expect(stored.out.contains("followed to \(first.url)/v2/file,"), "\(stored)")
        }
    }
}
