import ClientSetup
import Foundation
import Testing

@Suite("Rendering: docs/clients.md agrees with the table of tools")
struct ClientRenderingTests {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `LARDER_RENDER=1 writes the file that this compares`() throws {
        let file = Self.root.appending(path: "docs/clients.md")
        if ProcessInfo.processInfo.environment["LARDER_RENDER"] == "1" {
            try renderClientManual().write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == renderClientManual())
    }

    @Test func `every option of setup.sh is described`() throws {
        let text = renderClientManual()
        for option in ["--ca-sha256", "--ca-file", "--no-proxy", "--print", "--user", "--root", "--undo"] {
            #expect(text.contains("| `\(option)"), "\(option)")
        }
        for name in Pages.Name.allCases { #expect(text.contains("| `\(name.rawValue)` |")) }
    }
}
