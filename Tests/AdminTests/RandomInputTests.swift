import Message
import Testing

@testable import Admin
@testable import larder

@Suite("Hostile input neither traps nor hangs")
struct RandomInputTests {
    private static let words = [
        "<", ">", "</", "<!--", "-->", "--!>", "<style>", "</style>", "<script", "src=", "href", "'", "\"", "=", " ",
        "/", "url(", ")", "@import ",
        "\\", "\\41", "/*", "*/", "image-set(", "&#x110000;", "&#", "&amp", ";", "srcset", ",", "2x",
        "<base href=//a/../..>", "//", "http:", "[", "::",
        "%", "?", "#", "..", "\u{0}", "\u{fe}",
    ]

    @Test func `random pages, stylesheets and bodies of purges are read without a trap`() {
        var state: UInt64 = 7
        let base = TargetURI("http://example.org/dir/page".utf8)!
        for _ in 0..<1_000 {
            var text: [UInt8] = []
            for _ in 0..<30 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                text +=
                    state >> 60 == 0
                    ? [UInt8(truncatingIfNeeded: state >> 33)]
                    : Array(Self.words[Int(state >> 33) % Self.words.count].utf8)
            }
            for found in pageReferences(text, at: base) + stylesheetReferences(text, at: base) {
                #expect(TargetURI(found.target.normalised) == found.target)
            }
            for type in ["application/json", "application/x-www-form-urlencoded"] {
                do { _ = try purgeRequest(body: text, contentType: type) } catch {}
            }
            do { _ = try selection(ofQuery: String(decoding: text, as: UTF8.self)) } catch {}
        }
    }
}
