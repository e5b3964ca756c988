import Glibc
import Testing

@testable import TLS

/// A client that speaks TLS with the proxy and begins TLS once more in its tunnel, and Larder's end of both. Driven in turns by the test.
private final class InnerLink {
    let link = Link()
    let outerClient: TLSSession
    let outer: TLSServerSession
    private(set) var client: TLSSession
    private(set) var server: TLSServerSession

    /// - Parameter readsBefore: the first inner records are read from the outer session before there is an inner one.
    init(_ ends: InnerEnds, readsBefore: Bool = true) throws {
        outerClient = try TLSSession(ends.clients, fd: link.clientFD, serverName: "a.test")
        outer = try TLSServerSession(
            ends.context, fd: link.serverFD, leaf: ends.leaf, received: [], records: ends.records)
        var isDone = false
        for _ in 0..<4 where !isDone {
            let (atClient, atServer) = (outerClient.handshake(), outer.handshake())
            isDone = atClient == .done && atServer == .done
        }
        guard isDone, outer.flush() == .done else { throw TLSFailure.truncated }
        client = try TLSSession(ends.clients, inside: outerClient, serverName: "a.test")
        var received: [UInt8] = []
        if readsBefore {
            _ = client.handshake()
            received = try outer.all()
        }
        server = try TLSServerSession(ends.context, inside: outer, leaf: ends.leaf, received: received)
    }

    /// One step of both ends. Returns true when both are done.
    func step() -> Bool {
        let (atClient, atServer) = (client.handshake(), server.handshake())
        return atClient == .done && atServer == .done
    }

    func connect() {
        var isDone = false
        for _ in 0..<4 where !isDone { isDone = step() }
        #expect(isDone)
    }
}

/// What makes both ends.
private struct InnerEnds {
    let clients: TLSClientContext
    let context: TLSServerContext
    let leaf: Leaf
    let records = RecordBuffer()

    init() throws {
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        let fixture = try AuthorityFixture(permitting: nil, at: Int64(now.tv_sec))
        clients = try TLSClientContext(authorities: .file(fixture.rootPath))
        context = try TLSServerContext()
        leaf = try LeafCache(fixture.authority).issue(#require(LeafName(host: "a.test")), at: Int64(now.tv_sec))
    }
}

extension TLSServerSession {
    fileprivate func read(_ count: Int = 100) -> (result: TLSResult, bytes: [UInt8]) {
        var bytes = [UInt8](repeating: 0, count: count)
        let result = unsafe bytes.withUnsafeMutableBytes { unsafe read(into: $0) }
        guard case .bytes(let got) = result else { return (result, []) }
        return (result, Array(bytes.prefix(got)))
    }

    /// All that is there.
    fileprivate func all() throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let (result, bytes) = read(65536)
            all += bytes
            switch result {
            case .bytes: continue
            case .wantRead: return all
            case .wantWrite, .closed: throw TLSFailure.truncated
            case .failed(let failure): throw failure
            }
        }
    }

    fileprivate func write(_ bytes: ArraySlice<UInt8>) -> TLSResult {
        unsafe bytes.withUnsafeBytes { bytes in
            var piece = unsafe iovec(iov_base: .init(mutating: bytes.baseAddress), iov_len: bytes.count)
            return unsafe withUnsafeMutablePointer(to: &piece) { unsafe write($0, 1) }
        }
    }

    fileprivate func write(_ text: String) -> TLSResult { write(Array(text.utf8)[...]) }
}

@Suite("TLS with a client inside of TLS with the same client")
struct InnerSessionTests {
    private let ends: InnerEnds

    init() throws { ends = try InnerEnds() }

    private func connected() throws -> InnerLink {
        let link = try InnerLink(ends)
        link.connect()
        return link
    }

    @Test(arguments: [true, false]) func `a handshake succeeds, and bytes go both ways`(_ readsBefore: Bool) throws {
        let link = try InnerLink(ends, readsBefore: readsBefore)
        link.connect()
        #expect(write(link.client, "question") == .bytes(8))
        #expect(link.server.read().bytes == Array("question".utf8))
        #expect(link.server.read().result == .wantRead)
        #expect(link.server.write("answer") == .bytes(6))
        #expect(!link.server.hasUnsentBytes)
        #expect(read(link.client).text == "answer")
    }

    @Test func `nothing of it is plain text in the outer session`() throws {
        let link = try connected()
        #expect(link.server.write("a secret answer") == .bytes(15))
        let carried = read(link.outerClient, 4096)
        #expect(!carried.text.contains("secret"))
        #expect(carried.text.utf8.count > 15)
    }

    /// No event of the socket announces what the outer session has decrypted.
    @Test func `records that came in one record of the carrier are reported as pending`() throws {
        let link = try connected()
        #expect(write(link.client, "one") == .bytes(3))
        let first = try link.outer.all()
        #expect(write(link.client, "two") == .bytes(3))
        let second = try link.outer.all()
        // As a client may put them: both in one record of the outer session.
        let joined = first + second
        #expect(unsafe joined.withUnsafeBytes { unsafe link.outerClient.write($0) } == .bytes(joined.count))
        #expect(link.server.read().bytes == Array("one".utf8))
        #expect(link.server.hasPendingBytes)
        #expect(link.server.read().bytes == Array("two".utf8))
        #expect(link.server.read().result == .wantRead)
        #expect(!link.server.hasPendingBytes)
    }

    @Test func `what the socket does not accept waits, and arrives whole`() throws {
        let link = try connected()
        let sent = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var (taken, came) = (0, [UInt8]())
        var hasWaited = false
        while came.count < sent.count {
            if taken < sent.count {
                switch link.server.write(sent[taken...]) {
                case .bytes(let count): taken += count
                case .wantWrite: hasWaited = true
                case let other: throw Unexpected(other)
                }
            } else if link.server.hasUnsentBytes {
                #expect([.done, .wantWrite].contains(link.server.flush()))
            }
            guard hasWaited || taken == sent.count else { continue }
            var buffer = [UInt8](repeating: 0, count: 65536)
            while true {
                guard
                    case .bytes(let count) = unsafe buffer.withUnsafeMutableBytes({ unsafe link.client.read(into: $0) })
                else { break }
                came += buffer.prefix(count)
            }
        }
        #expect(hasWaited)
        #expect(came == sent)
        #expect(!link.server.hasUnsentBytes)
    }

    private struct Unexpected: Error {
        let result: TLSResult
        init(_ result: TLSResult) { self.result = result }
    }

    @Test func `close_notify of the inner session is its end, and the outer one goes on`() throws {
        let link = try connected()
        #expect(link.client.shutdown() == .done)
        #expect(link.server.read().result == .closed)
        link.server.shutdown()
        #expect(read(link.client).result == .closed)
        #expect(link.outer.write("outer") == .bytes(5))
        #expect(read(link.outerClient).text == "outer")
    }

    @Test func `the end of the outer session alone is none of the inner one`() throws {
        let link = try connected()
        #expect(write(link.client, "half") == .bytes(4))
        #expect(link.outerClient.shutdown() == .done)
        #expect(link.server.read().bytes == Array("half".utf8))
        #expect(link.server.read().result == .failed(.truncated))
        #expect(link.server.failure == .truncated)
    }

    @Test func `neither is the end of the connection`() throws {
        let link = try connected()
        #expect(write(link.client, "half") == .bytes(4))
        _ = shutdown(link.link.clientFD, CInt(SHUT_WR))
        #expect(link.server.read().bytes == Array("half".utf8))
        #expect(link.server.read().result == .failed(.truncated))
    }

    @Test func `what is no record of the outer session breaks the inner one`() throws {
        let link = try connected()
        let noise = [UInt8](repeating: 0x17, count: 64)
        _ = unsafe send(link.link.clientFD, noise, noise.count, 0)
        #expect(link.server.read().result == .failed(.connectionFailed(errno: ECONNRESET)))
    }

    @Test func `what is no record of the inner session breaks it alone`() throws {
        let link = try connected()
        #expect(write(link.outerClient, String(repeating: "x", count: 64)) == .bytes(64))
        guard case .failed(.protocolError) = link.server.read().result else {
            Issue.record("noise was read")
            return
        }
        #expect(link.outer.failure == nil)
    }

    /// An inner session that takes a place for its buffers must not take those of its own carrier, which is in the midst of a call.
    @Test func `sessions that displace each other's buffers all succeed`() throws {
        let links = try (0..<BufferHolders.placesMax + 2).map { _ in try InnerLink(ends) }
        var done = 0
        for _ in 0..<4 { done = links.reduce(0) { $0 + ($1.step() ? 1 : 0) } }
        #expect(done == links.count)
        for link in links { #expect(write(link.client, "question") == .bytes(8)) }
        for link in links { #expect(link.server.read().bytes == Array("question".utf8)) }
        for link in links { #expect(link.server.write("answer") == .bytes(6)) }
        for link in links { #expect(read(link.client).text == "answer") }
    }
}
