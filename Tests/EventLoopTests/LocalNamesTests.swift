@testable import EventLoop
import Glibc
import Testing

/// A file in a directory of its own, removed at the end.
final class ScratchFile {
    private let directory: String
    let path: String

    init(_ text: String) {
        var template = Array("/tmp/larder-names-XXXXXX".utf8CString)
        let made = unsafe template.withUnsafeMutableBufferPointer { unsafe mkdtemp($0.baseAddress!) != nil }
        precondition(made, "no scratch directory")
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        path = directory + "/file"
        write(text)
    }

    deinit {
        _ = unsafe unlink(path)
        _ = unsafe rmdir(directory)
    }

    /// Replaces the file, as editors and package managers do.
    func write(_ text: String) {
        let temporary = path + ".new"
        let bytes = Array(text.utf8)
        let fd = unsafe open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        let count = unsafe bytes.withUnsafeBytes { buffer in unsafe Glibc.write(fd, buffer.baseAddress, buffer.count) }
        close(fd)
        let isMoved = unsafe rename(temporary, path) == 0
        precondition(count == bytes.count && isMoved, "the scratch file could not be written")
    }
}

@Suite("Names without a name server")
struct LocalNamesTests {
    private static func v4(_ number: UInt32) -> SocketAddress { SocketAddress(v4: number, port: 0) }
    private static let start = MonotonicTime(nanoseconds: 1)

    @Test func `the hosts file: comments, several names, several addresses, both families, any case`() {
        let file = HostsFile(
            text: Array(
                """
                # 192.0.2.9 comment.test
                192.0.2.7\tone.test Alias.Test absolute.test. # 192.0.2.9
                  2001:db8::7   one.test\r
                192.0.2.7 one.test
                192.0.2.8 one.test
                nonsense two.test
                192.0.2.9
                """.utf8))
        let one = [
            Self.v4(0xc000_0207), SocketAddress(v6: 0x2001_0db8_0000_0000, low: 7, port: 0), Self.v4(0xc000_0208),
        ]
        #expect(
            file.addresses == [
                "one.test": one, "alias.test": [Self.v4(0xc000_0207)], "absolute.test": [Self.v4(0xc000_0207)],
            ])
    }

    @Test func `a hosts file that changes is read again, at most every two seconds`() {
        let file = ScratchFile("192.0.2.7 one.test\n")
        var options = Resolver.Options()
        options.hostsFile = file.path
        var names = LocalNames(options, now: Self.start)
        #expect(names.addresses(of: "one.test", at: Self.start) == [Self.v4(0xc000_0207)])
        file.write("192.0.2.8 one.test other.test\n")
        let early = Self.start.advanced(by: .milliseconds(1999))
        #expect(names.addresses(of: "one.test", at: early) == [Self.v4(0xc000_0207)])
        let later = Self.start.advanced(by: .seconds(2))
        #expect(names.addresses(of: "other.test", at: later) == [Self.v4(0xc000_0208)])
        #expect(names.addresses(of: "one.test", at: later) == [Self.v4(0xc000_0208)])
    }

    @Test func `without a hosts file only localhost has an address`() {
        var options = Resolver.Options()
        options.hostsFile = "/nonexistent/hosts"
        var names = LocalNames(options, now: Self.start)
        for name in ["localhost", "a.localhost"] {
            #expect(names.addresses(of: name, at: Self.start)?.allSatisfy(\.isLoopback) == true)
        }
        #expect(names.addresses(of: "notlocalhost", at: Self.start) == nil)
    }

    @Test func `static entries come before the hosts file, and the longest wildcard counts`() {
        let file = ScratchFile("192.0.2.1 one.test a.two.test three.test\n")
        var options = Resolver.Options()
        options.hostsFile = file.path
        options.staticHosts = [
            .init(pattern: "one.test", addresses: [Self.v4(2)]), .init(pattern: "*.two.test", addresses: [Self.v4(3)]),
            .init(pattern: "*.b.two.test", addresses: [Self.v4(4)]),
        ]
        var names = LocalNames(options, now: Self.start)
        let expected: [(String, SocketAddress?)] = [
            ("one.test", Self.v4(2)), ("a.two.test", Self.v4(3)), ("a.a.two.test", Self.v4(3)),
            ("a.b.two.test", Self.v4(4)), ("b.two.test", Self.v4(3)), ("two.test", nil), ("atwo.test", nil),
            ("a.one.test", nil), ("three.test", Self.v4(0xc000_0201)),
        ]
        for (name, address) in expected {
            #expect(names.addresses(of: name, at: Self.start) == address.map { [$0] }, "\(name)")
        }
    }
}
