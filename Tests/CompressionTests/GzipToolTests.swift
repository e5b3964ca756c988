import Compression
import Foundation
import Testing

/// What the tool everybody has makes of ours, and we of its.
@Suite("gzip(1)")
struct GzipToolTests {
    static let contents: [[UInt8]] = [
        [], [0x1F], Array("larder\n".utf8), [UInt8](repeating: 7, count: 1 << 20), GzipTests.text(300_000),
    ]

    @Test(arguments: contents, [1, 6, 9]) func `gzip(1) reads what Larder writes`(_ content: [UInt8], _ level: Int)
        throws
    {
        let wire =
            gzip(Array(content.prefix(content.count / 2)), level: level)
            + gzip(Array(content.dropFirst(content.count / 2)), level: level)
        #expect(try run(["-dc"], wire) == content)
    }

    @Test(arguments: contents, ["-1", "-6", "-9"])
    func `Larder reads what gzip(1) writes`(_ content: [UInt8], _ level: String) throws {
        var stream = Stream(room: 5000)
        try stream.inflate(try run(["-c", level], content)[...])
        try stream.inflator.finish()
        #expect(stream.output == content)
    }

    @Test func `optional parts of the gzip head are skipped`() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "larder-gzip-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appending(path: "a name in the head.txt")
        try Data("content".utf8).write(to: file)
        let wire = try run(["-Nc", file.path], [])
        #expect(wire[3] & 0x08 != 0)  // FNAME
        var stream = Stream(room: 100)
        try stream.inflate(wire[...])
        try stream.inflator.finish()
        #expect(stream.output == Array("content".utf8))
    }

    /// Through files, so that neither side waits for the other.
    private func run(_ arguments: [String], _ input: [UInt8]) throws -> [UInt8] {
        let base = FileManager.default.temporaryDirectory.appending(path: "larder-gzip-\(UUID().uuidString)")
        let (given, made) = (base.appendingPathExtension("in"), base.appendingPathExtension("out"))
        defer { for file in [given, made] { try? FileManager.default.removeItem(at: file) } }
        try Data(input).write(to: given)
        try Data().write(to: made)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip"] + arguments
        process.standardInput = try FileHandle(forReadingFrom: given)
        process.standardOutput = try FileHandle(forWritingTo: made)
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return Array(try Data(contentsOf: made))
    }
}
