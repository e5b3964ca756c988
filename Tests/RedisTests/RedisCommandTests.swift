import Foundation
import Glibc
import ProgramUnderTest
import Redis
import Testing

@Suite("RESP2: commands") struct RedisCommandTests {
    static let rows: [([String], String)] = [
        (["PING"], "*1\r\n$4\r\nPING\r\n"),
        (["GET", "a b"], "*2\r\n$3\r\nGET\r\n$3\r\na b\r\n"),
        (["SET", "k", ""], "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"),
        (["SET", "", "%s\r\n\0"], "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$5\r\n%s\r\n\0\r\n"),
    ]

    @Test(arguments: rows) func `a command is an array of bulk strings`(_ arguments: [String], _ expected: String) {
        var output = Array("before".utf8)
        RedisCommand.append(arguments.map { Array($0.utf8) }, to: &output)
        #expect(String(decoding: output, as: UTF8.self) == "before" + expected)
    }

    @Test(arguments: rows) func `the last argument may lie elsewhere`(_ arguments: [String], _ expected: String) {
        let bytes = arguments.map { Array($0.utf8) }
        var output: [UInt8] = []
        let last = bytes[bytes.count - 1]
        RedisCommand.append(Array(bytes.dropLast()), value: last.span, to: &output)
        #expect(String(decoding: output, as: UTF8.self) == expected)
    }

    @Test func `commands follow one another`() {
        var output: [UInt8] = []
        for _ in 0..<3 { RedisCommand.append([Array("PING".utf8)], to: &output) }
        #expect(String(decoding: output, as: UTF8.self) == String(repeating: "*1\r\n$4\r\nPING\r\n", count: 3))
    }
}

/// Commands and replies of a real server.
@Suite("RESP2: a server", .enabled(if: RedisServer.isInstalled, "package redis-server"))
struct RedisServerTests {
    @Test func `values of any bytes come back as they were sent`() throws {
        try withServer { server throws in
            #expect(try server.ask("PING") == .status(Array("PONG".utf8)))
            let values = [[], [0], Array("a\r\n$3\r\n".utf8), (0..<(256 << 10)).map { UInt8(truncatingIfNeeded: $0) }]
            for value in values {
                #expect(try server.ask([Array("SET".utf8), Array("k".utf8), value]) == .status(Array("OK".utf8)))
                #expect(try server.ask("GET", "k") == .bytes(value))
            }
            #expect(try server.ask("GET", "none") == .nothing)
            #expect(try server.ask("STRLEN", "k") == .integer(256 << 10))
        }
    }

    @Test func `commands that are sent together are answered in their order`() throws {
        try withServer { server throws in
            var output: [UInt8] = []
            for number in 0..<200 {
                let value = [UInt8(number)]
                RedisCommand.append(
                    [Array("SETEX".utf8), Array("k\(number)".utf8), Array("60".utf8)], value: value.span, to: &output)
                RedisCommand.append(["GET", "k\(number)"].map { Array($0.utf8) }, to: &output)
            }
            try server.send(output)
            for number in 0..<200 {
                #expect(try server.reply() == .status(Array("OK".utf8)))
                #expect(try server.reply() == .bytes([UInt8(number)]))
            }
        }
    }

    @Test func `what the server refuses has its code`() throws {
        try withServer { server throws in
            #expect(try server.ask("NONSENSE").errorCode == "ERR")
            #expect(try server.ask("LPUSH", "list", "a") == .integer(1))
            #expect(try server.ask("GET", "list").errorCode == "WRONGTYPE")
            #expect(try server.ask("AUTH", "nobody", "x").errorCode == "WRONGPASS")
            #expect(try server.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">").errorCode == "NOGROUP")
            #expect(try server.ask("CONFIG", "SET", "maxmemory", "1") == .status(Array("OK".utf8)))
            #expect(try server.ask("SET", "a", "b").errorCode == "OOM")
        }
    }

    @Test func `a stream is read as lists of ids and fields`() throws {
        try withServer { server throws in
            #expect(try server.ask("XINFO", "STREAM", "s").errorCode == "ERR")
            #expect(try server.ask("XADD", "s", "5-1", "a", "b") == .bytes(Array("5-1".utf8)))
            let reply = try server.ask("XREAD", "COUNT", "10", "STREAMS", "s", "0-0")
            let entry = try #require(reply.array?.first?.array?.last?.array?.first?.array)
            #expect(entry.first?.text == "5-1")
            #expect(entry.last?.array?.map(\.text) == ["a", "b"])
            #expect(try server.ask("XREAD", "STREAMS", "s", "5-1") == .nothing)
        }
    }

    /// What the follower of the stream relies on (StreamFollower.swift).
    @Test func `trimming changes the first id, and max-deleted-entry-id knows of XDEL alone`() throws {
        try withServer { server throws in
            for number in 1...5 { _ = try server.ask("XADD", "s", "\(number)-0", "a", "b") }
            let facts = { (name: String) throws -> String? in
                let list = try #require(try server.ask("XINFO", "STREAM", "s").array)
                let place = try #require(list.firstIndex { $0.text == name })
                return list[place + 1].text ?? list[place + 1].int.map { "\($0)" }
            }
            #expect(try server.ask("XTRIM", "s", "MAXLEN", "3") == .integer(2))
            #expect(try facts("recorded-first-entry-id") == "3-0")
            #expect(try facts("max-deleted-entry-id") == "0-0")
            #expect(try server.ask("XDEL", "s", "4-0") == .integer(1))
            #expect(try facts("max-deleted-entry-id") == "4-0")
            #expect(try server.ask("XTRIM", "s", "MAXLEN", "0") == .integer(2))
            #expect(try facts("last-generated-id") == "5-0")
            #expect(try facts("max-deleted-entry-id") == "4-0")
            #expect(try facts("length") == "0")
        }
    }
}

/// A server on a Unix socket in a directory of its own, and one connection to it.
final class RedisServer {
    static let isInstalled = FileManager.default.isExecutableFile(atPath: "/usr/bin/redis-server")

    private let program: Program
    private let fd: CInt
    private let reader = RedisReader()

    init(in directory: String) throws {
        let path = "\(directory)/socket"
        program = try Program(
            [
                "redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir",
                directory,
            ], logs: "\(directory)/server")
        let started = program
        fd = try eventually("redis-server listens; it said: \(started.output)\(started.errors)") {
            if let status = started.exitStatus {
                throw Failure(description: "redis-server ended with \(status): \(started.output)")
            }
            let fd = RedisServer.connect(path)
            return fd < 0 ? nil : fd
        }
    }

    deinit {
        close(fd)
        program.signal(SIGKILL)
        _ = program.end(within: 20)
    }

    private static func connect(_ path: String) -> CInt {
        let fd = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let isConnected = unsafe withUnsafeMutableBytes(of: &address) { raw in
            unsafe raw[2...].copyBytes(from: bytes)
            return unsafe Glibc.connect(
                fd, raw.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count)) == 0
        }
        if isConnected { return fd }
        close(fd)
        return -1
    }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { unsafe write(fd, $0.baseAddress! + sent, $0.count - sent) }
            guard count > 0 else { throw Failure(description: "write: errno \(errno)") }
            sent += count
        }
    }

    func reply() throws -> RedisReply {
        while true {
            if let reply = try reader.next() { return reply }
            var piece = [UInt8](repeating: 0, count: 16_384)
            let count = unsafe read(fd, &piece, piece.count)
            guard count > 0 else { throw Failure(description: "read: \(count), errno \(errno)") }
            reader.feed(Array(piece[..<count]))
        }
    }

    func ask(_ arguments: [[UInt8]]) throws -> RedisReply {
        var command: [UInt8] = []
        RedisCommand.append(arguments, to: &command)
        try send(command)
        return try reply()
    }

    func ask(_ words: String...) throws -> RedisReply { try ask(words.map { Array($0.utf8) }) }
}

private func withServer(_ body: (RedisServer) throws -> Void) throws {
    let directory = try makeTemporaryDirectory("larder-redis")
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try body(try RedisServer(in: directory))
}
