import Glibc
import Testing

@testable import Secrets

@Suite("Files that this process and others write")
struct PrivateFileTests {
    private static func text(_ content: PrivateFile.Content?) -> String? {
        content.map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    private static func mode(of path: String) throws -> mode_t {
        var status = stat()
        try #require(unsafe stat(path, &status) == 0)
        return status.st_mode & 0o777
    }

    @Test func `what is written is private, and is not read again until somebody else writes`() throws {
        let directory = try SecretReadingTests.Directory()
        var file = PrivateFile(path: try directory.write("one\ntwo", to: "secret"), bytesMax: 100)
        try #require(unsafe chmod(file.path, 0o644) == 0)
        let first = try file.readIfChanged()
        #expect(Self.text(first) == "one\ntwo" && first?.isExposed == true)
        #expect(try file.readIfChanged() == nil)
        #expect(file.replace(with: Array("three".utf8)) == nil)
        #expect(try file.readIfChanged() == nil && Self.mode(of: file.path) == 0o600)
        _ = try directory.write("four and more", to: "secret")
        let last = try file.readIfChanged()
        #expect(Self.text(last) == "four and more" && last?.isExposed == false)
    }

    @Test func `what a killed process left behind is in nobody's way`() throws {
        let directory = try SecretReadingTests.Directory()
        var file = PrivateFile(path: try directory.write("", to: "secret"), bytesMax: 100)
        _ = try directory.write("half", to: "secret.new-\(getpid())")
        #expect(file.replace(with: Array("whole".utf8)) == nil)
        var again = PrivateFile(path: file.path, bytesMax: 100)
        #expect(try Self.text(again.readIfChanged()) == "whole")
        #expect(unsafe access("\(file.path).new-\(getpid())", F_OK) != 0)
    }

    @Test func `a file that is too long or none is an error, and the next call tries again`() throws {
        let directory = try SecretReadingTests.Directory()
        var file = PrivateFile(
            path: try directory.write(String(repeating: "x", count: 101), to: "secret"), bytesMax: 100)
        for _ in 1...2 { #expect(throws: ReadFailure.fileTooLong) { try file.readIfChanged() } }
        var missing = PrivateFile(path: "\(directory.path)/missing", bytesMax: 100)
        #expect(throws: ReadFailure.system(ENOENT)) { try missing.readIfChanged() }
        var none = PrivateFile(path: directory.path, bytesMax: 100)
        #expect(throws: ReadFailure.notAFile) { try none.readIfChanged() }
        var elsewhere = PrivateFile(path: "\(directory.path)/missing/file", bytesMax: 100)
        #expect(elsewhere.replace(with: []) == ENOENT)
        #expect(file.replace(with: []) == nil)
    }
}
