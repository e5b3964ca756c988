import CLarder
import Glibc
import Testing

@testable import Secrets

@Suite("Reading secrets")
struct SecretReadingTests {
    /// A directory that is removed with its files.
    final class Directory {
        let path: String
        init() throws {
            var template = Array("/tmp/larder-secrets-XXXXXX".utf8CString)
            try #require(unsafe mkdtemp(&template) != nil)
            path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }

        func write(_ text: String, to name: String) throws -> String {
            let fd = unsafe open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            try #require(fd >= 0)
            defer { _ = close(fd) }
            let bytes = Array(text.utf8)
            try #require(unsafe Glibc.write(fd, bytes, bytes.count) == bytes.count)
            return "\(path)/\(name)"
        }

        deinit {
            for name in ["secret", "other", "pipe"] { _ = unsafe unlink("\(path)/\(name)") }
            _ = unsafe rmdir(path)
        }
    }

    private static func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    private static func setTime(of path: String, _ seconds: Int, _ nanoseconds: Int) throws {
        let time = timespec(tv_sec: seconds, tv_nsec: nanoseconds)
        try #require(unsafe utimensat(AT_FDCWD, path, [time, time], 0) == 0)
    }

    @Test func `a file is read again only after it changed`() throws {
        let directory = try Directory()
        var file = SecretFile(path: try directory.write("one\nmore", to: "secret"), bytesMax: 100)
        try Self.setTime(of: file.path, 1, 1)
        #expect(try Self.text(file.readIfChanged()) == "one\n")
        #expect(try file.readIfChanged() == nil)
        // Each change alone: the size, a second, a nanosecond.
        for (text, seconds, nanoseconds) in [("three", 1, 1), ("seven", 2, 1), ("eight", 2, 2)] {
            _ = try directory.write(text, to: "secret")
            try Self.setTime(of: file.path, seconds, nanoseconds)
            #expect(try Self.text(file.readIfChanged()) == text)
            #expect(try file.readIfChanged() == nil)
        }
        // The inode, as when a file is replaced.
        let other = try directory.write("forty", to: "other")
        try Self.setTime(of: other, 2, 2)
        try #require(unsafe rename(other, file.path) == 0)
        #expect(try Self.text(file.readIfChanged()) == "forty")
        #expect(try file.readIfChanged() == nil)
    }

    @Test func `a file that was away is read again when it is back`() throws {
        let directory = try Directory()
        var file = SecretFile(path: try directory.write("one", to: "secret"), bytesMax: 100)
        _ = try file.readIfChanged()
        let other = "\(directory.path)/other"
        try #require(unsafe rename(file.path, other) == 0)
        #expect(throws: ReadFailure.system(ENOENT)) { try file.readIfChanged() }
        try #require(unsafe rename(other, file.path) == 0)
        #expect(try Self.text(file.readIfChanged()) == "one")
    }

    @Test func `a directory and a pipe are no files`() throws {
        let directory = try Directory()
        var file = SecretFile(path: directory.path, bytesMax: 100)
        #expect(throws: ReadFailure.notAFile) { try file.readIfChanged() }
        let pipe = "\(directory.path)/pipe"
        try #require(unsafe mkfifo(pipe, 0o600) == 0)
        file = SecretFile(path: pipe, bytesMax: 100)
        #expect(throws: ReadFailure.notAFile) { try file.readIfChanged() }
    }

    @Test(arguments: [10, 5000, 10_000]) func `the first line is bounded, and not what follows it`(_ limit: Int) throws
    {
        let directory = try Directory()
        let line = String(repeating: "a", count: limit)
        var file = SecretFile(path: try directory.write("\(line)\n\(line)", to: "secret"), bytesMax: limit)
        #expect(try file.readIfChanged()?.count == limit + 1)
        _ = try directory.write("\(line)b\n", to: "secret")
        #expect(throws: ReadFailure.tooLong) { try file.readIfChanged() }
    }

    @Test func `all of a file may be the secret`() throws {
        let directory = try Directory()
        var file = SecretFile(path: try directory.write("one\ntwo\n", to: "secret"), .everything, bytesMax: 8)
        #expect(try Self.text(file.readIfChanged()) == "one\ntwo\n")
        #expect(try file.readIfChanged() == nil)
        _ = try directory.write("one\nthree\n", to: "secret")
        #expect(throws: ReadFailure.fileTooLong) { try file.readIfChanged() }
    }

    @Test func `a variable is set or not`() throws {
        #expect(try !readVariable("PATH").isEmpty)
        #expect(throws: ReadFailure.notSet) { try readVariable("LARDER_NO_SUCH_VARIABLE") }
    }

    @Test func `a descriptor is read up to its first line, and closed`() throws {
        var ends: [CInt] = [-1, -1]
        try #require(unsafe clarder_pipe_for_program(&ends) == 0)
        defer { _ = close(ends[1]) }
        try #require(unsafe write(ends[1], "a b\nc", 5) == 5)
        // The writer stays open: the line is enough.
        #expect(try Self.text(readDescriptor(ends[0], bytesMax: 100)) == "a b\n")
        #expect(throws: ReadFailure.system(EBADF)) { try readDescriptor(-1, bytesMax: 100) }
    }

    private static func run(_ words: String..., timeout: Duration = .seconds(60)) throws -> String? {
        text(try readOutput(of: words, bytesMax: 10_000, timeout: timeout))
    }

    @Test func `a program writes its secret`() throws {
        #expect(try Self.run("sh", "-c", "echo secret; echo more") == "secret")
        #expect(try Self.run("printf", "%s", "a b") == "a b")
        // No input, so nothing waits for it.
        #expect(try Self.run("cat") == "")
        // More than a pipe holds.
        #expect(try Self.run("sh", "-c", "echo x; head -c 200000 /dev/zero") == "x")
    }

    @Test func `a program that fails has no secret`() {
        #expect(throws: ReadFailure.exited(3)) { try Self.run("sh", "-c", "echo secret; exit 3") }
        #expect(throws: ReadFailure.killed(SIGTERM)) { try Self.run("sh", "-c", "echo secret; kill -TERM $$") }
        #expect(throws: ReadFailure.system(ENOENT)) { try Self.run("larder-no-such-program") }
        #expect(throws: ReadFailure.tooLong) { try Self.run("head", "-c", "10001", "/dev/zero") }
    }

    /// Whichever stays open: the output or the process.
    @Test(arguments: ["sleep 600", "sleep 600 >/dev/null", "exec >&-; sleep 600"])
    func `a program that does not end is ended`(_ script: String) {
        #expect(throws: ReadFailure.timedOut) { try Self.run("sh", "-c", script, timeout: .milliseconds(20)) }
    }

    @Test func `every failure has a text`() {
        let failures: [ReadFailure] = [
            .system(ENOENT), .notAFile, .notSet, .tooLong, .exited(1), .killed(9), .timedOut,
        ]
        #expect(Set(failures.map(\.text)).count == failures.count)
        #expect(ReadFailure.system(ENOENT).text == "No such file or directory")
    }
}
