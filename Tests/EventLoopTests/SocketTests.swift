import EventLoop
import CAres
import CLarder
import Glibc
import Testing

@Suite("Sockets")
struct SocketTests {
    struct Spelling: Sendable { var address: SocketAddress; var text: String }
    static let spellings = [
        Spelling(address: SocketAddress(v4: 0x7f00_0001, port: 80), text: "127.0.0.1:80"),
        Spelling(address: SocketAddress(v6: 0, low: 1, port: 443), text: "[::1]:443"),
        Spelling(address: SocketAddress(v6: 0x2001_0db8_0000_0000, low: 0xff, port: 0), text: "[2001:db8::ff]:0"),
    ]

    @Test(arguments: spellings) func `addresses have their usual spelling and survive the kernel's form`(
        _ row: Spelling
    ) {
        #expect(row.address.description == row.text)
        let back = unsafe row.address.withSockaddr { unsafe SocketAddress($0, length: Int($1)) }
        #expect(back == row.address)
        #expect(row.address.with(port: 9).port == 9)
    }

    @Test func `a client is accepted with its address, and an empty queue is not an error`() throws {
        let listener = try Sockets.listen(loopback(), reusePort: true, backlog: 16)
        let address = try Sockets.localAddress(listener.rawValue)
        #expect(address.port != 0)
        if case .wouldBlock = Sockets.accept(listener.rawValue) {} else { Issue.record("nobody waits yet") }
        let client = descriptor(try Sockets.connect(address))
        wait(listener.rawValue, for: POLLIN)
        guard case .accepted(let server, let peer) = Sockets.accept(listener.rawValue) else {
            throw TestFailure(what: "nobody connected")
        }
        #expect(peer == (try Sockets.localAddress(client.rawValue)))
        sendAll(client.rawValue, [1, 2, 3])
        Sockets.shutdownWrite(client.rawValue)
        #expect(receive(server.rawValue, 10) == [1, 2, 3])
    }

    @Test func `loopback connects without waiting, and is refused without waiting`() throws {
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 16)
        let address = try Sockets.localAddress(listener.rawValue)
        if case .inProgress = try Sockets.connect(address) { Issue.record("loopback should be done at once") }
        _ = consume listener
        #expect(throws: SocketError.failed(.connect, errno: ECONNREFUSED)) { _ = try Sockets.connect(address) }
    }

    @Test func `an address in use is reported`() throws {
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 16)
        let address = try Sockets.localAddress(listener.rawValue)
        #expect(throws: SocketError.addressInUse) { _ = try Sockets.listen(address, reusePort: false, backlog: 1) }
    }

    @Test func `an unused socket file is replaced, and one in use is not`() throws {
        let path = "/tmp/larder-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"
        let address = try SocketAddress(unixPath: path)
        defer { _ = unsafe unlink(path) }
        do {
            let listener = try Sockets.listen(address, reusePort: false, backlog: 4, unixMode: 0o600)
            var status = stat()
            #expect(unsafe stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
            #expect(throws: SocketError.addressInUse) { _ = try Sockets.listen(address, reusePort: false, backlog: 4) }
            #expect(try Sockets.localAddress(listener.rawValue) == address)
        }
        _ = try Sockets.listen(address, reusePort: false, backlog: 4)
    }

    @Test func `paths that are too long for a socket are refused`() throws {
        #expect(try SocketAddress(unixPath: String(repeating: "x", count: 107)).unixPath?.count == 107)
        #expect(throws: SocketError.pathTooLong) { try SocketAddress(unixPath: String(repeating: "x", count: 108)) }
        #expect(throws: SocketError.emptyPath) { try SocketAddress(unixPath: "") }
    }

    @Test func `reading and writing distinguish blocking, end and failure`() throws {
        let pair = try socketPair()
        var bytes: [UInt8] = [0, 0]
        func readOnce() -> IOResult {
            unsafe bytes.withUnsafeMutableBytes { unsafe IO.receive(pair.a.rawValue, into: $0) }
        }
        #expect(readOnce() == .wouldBlock)
        let written = unsafe withUnsafeTemporaryAllocation(of: iovec.self, capacity: 2) { vectors in
            var text = Array("abcd".utf8)
            return unsafe text.withUnsafeMutableBytes { text in
                unsafe vectors[0] = unsafe iovec(iov_base: text.baseAddress, iov_len: 1)
                unsafe vectors[1] = unsafe iovec(iov_base: text.baseAddress! + 3, iov_len: 1)
                return unsafe IO.writev(pair.b.rawValue, vectors.baseAddress!, 2)
            }
        }
        #expect(written == .bytes(2))
        wait(pair.a.rawValue, for: POLLIN)
        #expect(readOnce() == .bytes(2))
        #expect(bytes == Array("ad".utf8))
        Sockets.shutdownWrite(pair.b.rawValue)
        wait(pair.a.rawValue, for: POLLIN)
        #expect(readOnce() == .closed)
        #expect(unsafe bytes.withUnsafeBytes { unsafe IO.send(pair.b.rawValue, $0) } == .closed)
        #expect(unsafe bytes.withUnsafeBytes { unsafe IO.send(-1, $0) } == .failed(errno: EBADF))
    }
}
