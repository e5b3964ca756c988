import EventLoop
import Glibc
import TLS
import Testing
import Transport

/// Two connected sockets that never block.
private func socketPair() throws -> (CInt, CInt) {
    var ends: [CInt] = [0, 0]
    try #require(unsafe socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
    for end in ends { _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) }
    return (ends[0], ends[1])
}

private func text(_ fd: CInt) -> String {
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = unsafe read(fd, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
}

private func write(_ text: String, to transport: borrowing Transport) -> IOResult {
    let bytes = Array(text.utf8)
    return unsafe bytes.withUnsafeBytes { unsafe transport.write($0) }
}

/// What a macro can hold of a transport, which it cannot copy.
private struct Waiting: Equatable {
    var read: Bool
    var write: Bool

    init(_ read: Bool, _ write: Bool) { (self.read, self.write) = (read, write) }

    init(of transport: borrowing Transport, toRead: Bool, toWrite: Bool) {
        read = transport.awaits(.read, toRead: toRead, toWrite: toWrite)
        write = transport.awaits(.write, toRead: toRead, toWrite: toWrite)
    }
}

private func read(_ transport: borrowing Transport) -> IOResult {
    var bytes = [UInt8](repeating: 0, count: 100)
    return unsafe bytes.withUnsafeMutableBytes { unsafe transport.read(into: $0) }
}

/// Writes until the socket takes nothing more.
private func fill(_ fd: CInt) {
    let junk = [UInt8](repeating: 0, count: 4096)
    while unsafe send(fd, junk, junk.count, CInt(MSG_NOSIGNAL)) > 0 {}
}

@Suite("Transports") struct TransportTests {
    @Test func `a plain transport reads, writes, gathers and closes`() throws {
        let (ours, theirs) = try socketPair()
        defer { close(theirs) }
        do {
            let transport = Transport(plain: Descriptor(adopting: ours))
            let plain = write("one", to: transport)
            #expect(plain == .bytes(3))
            #expect(text(theirs) == "one")
            let (head, body) = (Array("head".utf8), Array("body!".utf8))
            let written = unsafe head.withUnsafeBytes { head in
                unsafe body.withUnsafeBytes { body in
                    var vectors = unsafe [
                        iovec(iov_base: .init(mutating: head.baseAddress), iov_len: head.count),
                        iovec(iov_base: .init(mutating: body.baseAddress), iov_len: body.count),
                    ]
                    return unsafe transport.writev(&vectors, 2)
                }
            }
            #expect(written == .bytes(9))
            #expect(text(theirs) == "headbody!")
            let result = read(transport)
            #expect(result == .wouldBlock)
            let (mustBeDrained, isSecured, handshake) = (
                transport.mustBeDrained, transport.isSecured, transport.handshake()
            )
            #expect(!mustBeDrained && !isSecured && handshake == .done)
        }
        #expect(fcntl(ours, F_GETFD) == -1, "the socket closes with its transport")
    }

    @Test(arguments: [(true, false), (false, true), (true, true), (false, false)])
    func `a plain transport waits for the event that is named for it`(toRead: Bool, toWrite: Bool) throws {
        let (ours, theirs) = try socketPair()
        defer { close(theirs) }
        let transport = Transport(plain: Descriptor(adopting: ours))
        let waiting = Waiting(of: transport, toRead: toRead, toWrite: toWrite)
        #expect(waiting == Waiting(toRead, toWrite))
    }

    @Test func `one direction of a connection can be closed`() throws {
        let (ours, theirs) = try socketPair()
        defer { close(theirs) }
        let transport = Transport(plain: Descriptor(adopting: ours))
        transport.shutdownWrite()
        #expect(text(theirs) == "")
        _ = unsafe Glibc.write(theirs, "x", 1)
        let result = read(transport)
        #expect(result == .bytes(1))
    }

    @Test func `a plain socket is given away open`() throws {
        let (ours, theirs) = try socketPair()
        defer { close(theirs) }
        let transport = Transport(plain: Descriptor(adopting: ours))
        let descriptor = transport.surrender()?.release()
        #expect(descriptor == ours)
        #expect(fcntl(ours, F_GETFD) != -1)
        close(ours)
    }

    @Test func `a socket with TLS is closed rather than given away`() throws {
        let (ours, theirs) = try socketPair()
        defer { close(theirs) }
        let transport = try Transport(
            securing: Descriptor(adopting: ours), with: try TLSClientContext(), serverName: "a.test")
        let isSecured = transport.isSecured
        #expect(isSecured)
        let surrendered = transport.surrender()?.release()
        #expect(surrendered == nil)
        #expect(fcntl(ours, F_GETFD) == -1)
    }

    /// In a handshake that nobody has driven, the first write has to read, which makes OpenSSL ask for the other event.
    @Test func `a write under TLS that has to read waits until bytes arrive`() throws {
        let (ours, theirs) = try socketPair()
        defer { close(theirs) }
        let transport = try Transport(
            securing: Descriptor(adopting: ours), with: try TLSClientContext(), serverName: "a.test")
        let before = Waiting(of: transport, toRead: false, toWrite: true)
        #expect(before == Waiting(false, true))
        let result = write("request", to: transport)
        #expect(result == .wouldBlock)
        let after = Waiting(of: transport, toRead: false, toWrite: true)
        #expect(after == Waiting(true, false))
    }

    @Test func `a read under TLS that has to write waits until the socket has room`() throws {
        let (ours, theirs) = try socketPair()
        defer { close(theirs) }
        fill(ours)
        let transport = try Transport(
            securing: Descriptor(adopting: ours), with: try TLSClientContext(), serverName: "a.test")
        let result = read(transport)
        #expect(result == .wouldBlock)
        let after = Waiting(of: transport, toRead: true, toWrite: false)
        #expect(after == Waiting(false, true))
    }
}
