import Admin
import EventLoop
import Glibc
import Settings
import Testing

import Provisioning
@testable import larder

/// A directory for one test.
private func temporaryDirectory() throws -> String {
    var template = Array("/tmp/larder-admin-XXXXXX".utf8CString)
    let made = unsafe template.withUnsafeMutableBufferPointer { unsafe mkdtemp($0.baseAddress!) != nil }
    try #require(made)
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

@Suite("larder serve: opening the admin server")
struct OpenAdminTests {
    @Test func `if a socket cannot be created, the next path is used and named`() throws {
        let directory = try temporaryDirectory()
        let loop = try EventLoop()
        let server = AdminServer(proxy: ScriptedProxy(), loop: loop)
        let said = Locked<[String]>([])
        let console = Console(print: { _ in }, error: { line in said.withLock { $0.append(line) } })
        let own = "\(directory)/larder/admin.sock"
        openSocket(server, ["/nonexistent/run/admin.sock", own], console)
        #expect(fileExists(own))
        #expect(
            said.withLock { $0 } == [
                "warning: admin.socket: /nonexistent/run/admin.sock cannot be created; using \(own) instead"
            ])

        // Another Larder answers there: this one goes on without, and does not hide elsewhere.
        let second = AdminServer(proxy: ScriptedProxy(), loop: loop)
        openSocket(second, [own, "\(directory)/other.sock"], console)
        #expect(!fileExists("\(directory)/other.sock"))
        #expect(said.withLock { $0.last }?.contains("the address is in use") == true)

        second.close()
        server.close()
        #expect(!fileExists(own))
        _ = unsafe rmdir("\(directory)/larder")
        _ = unsafe rmdir(directory)
    }

    @Test(arguments: ["", "short\n", "has a space in its middle\n"])
    func `a token that is too short or has spaces is refused`(_ text: String)
        throws
    {
        let directory = try temporaryDirectory()
        let path = "\(directory)/token"
        try replaceFile(path, with: Array(text.utf8))
        var settings = Configuration().admin
        settings.address = nil
        settings.socket = nil
        settings.tokenFile = path
        let loop = try EventLoop()
        let error = #expect(throws: AdminStartFailure.self) {
            try openAdmin(settings, proxy: ScriptedProxy(), loop: loop, Console(print: { _ in }, error: { _ in }))
        }
        #expect(error?.message.contains("at least 16 visible characters") == true)
        _ = unsafe unlink(path)
        _ = unsafe rmdir(directory)
    }

    @Test func `a file is replaced in one step, keeps its mode, and is private when new`() throws {
        let directory = try temporaryDirectory()
        let path = "\(directory)/users"
        var status = stat()
        try replaceFile(path, with: [1])
        #expect(unsafe stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(unsafe chmod(path, 0o640) == 0)
        try replaceFile(path, with: [2, 3])
        #expect(try readFile(path) == [2, 3])
        #expect(unsafe stat(path, &status) == 0 && status.st_mode & 0o777 == 0o640)
        #expect(throws: FileError(path: path, code: EFBIG)) { try readFile(path, bytesMax: 1) }
        #expect(throws: FileError.self) { try replaceFile("\(directory)/no/users", with: []) }
        _ = unsafe unlink(path)
        #expect(unsafe rmdir(directory) == 0, "nothing is left beside the file")
    }
}
