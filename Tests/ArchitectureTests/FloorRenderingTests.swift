import Foundation
import Testing

/// The drawing of the floors in docs/architecture.md.
@Suite("Rendering: the floors in docs/architecture.md")
struct FloorRenderingTests {
    private static let document = "docs/architecture.md"
    private static let begin = "<!-- floors: rendered from Package.swift -->\n"
    private static let end = "<!-- end of floors -->"

    @Test func `LARDER_RENDER=1 writes the drawing that this compares`() throws {
        let text = try Tree.text(Self.document)
        let start = try #require(text.range(of: Self.begin)).upperBound
        let stop = try #require(text.range(of: Self.end, range: start..<text.endIndex)).lowerBound
        let drawn = text.replacingCharacters(in: start..<stop, with: Self.drawing(of: Rooms.declared))
        if ProcessInfo.processInfo.environment["LARDER_RENDER"] == "1" {
            let url = Tree.root.appendingPathComponent(Self.document)
            try drawn.write(to: url, atomically: true, encoding: .utf8)
        }
        #expect(try Tree.text(Self.document) == drawn, "LARDER_RENDER=1 swift test --filter Rendering writes it anew")
    }

    @Test func `each floor is a row, the highest first`() {
        let rooms = [
            DeclaredRoom(name: "Message", kind: .parser, floor: 0, dependencies: []),
            DeclaredRoom(name: "Rules", kind: .core, floor: 0, dependencies: []),
            DeclaredRoom(name: "Disk", kind: .edge, floor: 0, dependencies: []),
            DeclaredRoom(name: "Server", kind: .driver, floor: 1, dependencies: []),
        ]
        let expected = """
            | floor | core | edge | drivers |
            |---|---|---|---|
            | 1 | | | Server |
            | 0 | Message, Rules | Disk | |

            """
        #expect(Self.drawing(of: rooms) == expected)
    }

    private static func drawing(of rooms: [DeclaredRoom]) -> String {
        let rows = Set(rooms.map(\.floor)).sorted(by: >).map { floor in
            let cells = [Rooms.coreKinds, [.edge], [.driver]].map { kinds in
                rooms.filter { $0.floor == floor && kinds.contains($0.kind) }.map(\.name).joined(separator: ", ")
            }
            return "| \(floor) |" + cells.map { $0.isEmpty ? " |" : " \($0) |" }.joined()
        }
        return (["| floor | core | edge | drivers |", "|---|---|---|---|"] + rows).joined(separator: "\n") + "\n"
    }
}
