import Glibc
import Testing

@testable import TLS

/// The client's and Larder's end of one opened tunnel, driven in turns by the test.
private final class OpenedLink {
    private let link = Link()
    let client: TLSSession
    let server: TLSServerSession

    init(_ clients: TLSClientContext, _ context: TLSServerContext, _ leaf: Leaf, _ records: RecordBuffer) throws {
        client = try TLSSession(clients, fd: link.clientFD, serverName: "a.test")
        server = try TLSServerSession(context, fd: link.serverFD, leaf: leaf, received: [], records: records)
    }

    /// One step of both ends. Returns true when both are done.
    func step() -> Bool {
        let (atClient, atServer) = (client.handshake(), server.handshake())
        return atClient == .done && atServer == .done
    }

    func readAtServer() -> (result: TLSResult, text: String) {
        var bytes = [UInt8](repeating: 0, count: 100)
        let result = unsafe bytes.withUnsafeMutableBytes { unsafe server.read(into: $0) }
        guard case .bytes(let count) = result else { return (result, "") }
        return (result, String(decoding: bytes.prefix(count), as: UTF8.self))
    }

    func writeAtServer(_ text: String) -> TLSResult {
        unsafe Array(text.utf8).withUnsafeBytes { bytes in
            var piece = unsafe iovec(iov_base: .init(mutating: bytes.baseAddress), iov_len: bytes.count)
            return unsafe withUnsafeMutablePointer(to: &piece) { unsafe server.write($0, 1) }
        }
    }

    /// The next records of the client, which the server has not read.
    func takeFromWire() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 1000)
        let count = unsafe recv(link.serverFD, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(count, 0)))
    }

    /// How many bytes the client has not read.
    var waitingAtClient: Int {
        var bytes = [UInt8](repeating: 0, count: 10_000)
        return unsafe max(0, recv(link.clientFD, &bytes, bytes.count, CInt(MSG_PEEK | MSG_DONTWAIT)))
    }

    func putOnWire(_ bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        _ = unsafe send(link.clientFD, bytes, bytes.count, 0)
    }
}

/// What makes both ends.
private struct Ends {
    private let clients: TLSClientContext
    private let context: TLSServerContext
    private let leaf: Leaf
    private let records = RecordBuffer()

    init() throws {
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        let fixture = try AuthorityFixture(permitting: nil, at: Int64(now.tv_sec))
        clients = try TLSClientContext(authorities: .file(fixture.rootPath))
        context = try TLSServerContext()
        leaf = try LeafCache(fixture.authority).issue(#require(LeafName(host: "a.test")), at: Int64(now.tv_sec))
    }

    func open() throws -> OpenedLink { try OpenedLink(clients, context, leaf, records) }
}

@Suite("TLS sessions with clients keep OpenSSL's buffers while they are busy")
struct ServerSessionTests {
    private let ends: Ends

    init() throws { ends = try Ends() }

    private func open() throws -> OpenedLink { try ends.open() }

    /// Takes the places of all sessions before.
    private func openOthers() throws -> [OpenedLink] {
        let others = try (0..<BufferHolders.placesMax).map { _ in try open() }
        for _ in 0..<3 { for other in others { _ = other.step() } }
        return others
    }

    private func connected() throws -> OpenedLink {
        let link = try open()
        var isDone = false
        for _ in 0..<4 where !isDone { isDone = link.step() }
        #expect(isDone)
        return link
    }

    @Test func `a busy session keeps its buffers, and one that others displaced gives them back`() throws {
        let link = try connected()
        #expect(link.server.keepsBuffers)
        let others = try openOthers()
        #expect(!link.server.keepsBuffers)
        for other in others { #expect(other.server.keepsBuffers) }
        #expect(write(link.client, "question") == .bytes(8))
        #expect(link.readAtServer().text == "question")
        #expect(link.server.keepsBuffers)
        #expect(link.writeAtServer("answer") == .bytes(6))
        #expect(read(link.client).text == "answer")
    }

    @Test func `sessions whose handshakes displace each other all succeed`() throws {
        let links = try (0..<BufferHolders.placesMax * 2 + 1).map { _ in try open() }
        var done = 0
        for _ in 0..<4 { done = links.reduce(0) { $0 + ($1.step() ? 1 : 0) } }
        #expect(done == links.count)
        for link in links { #expect(write(link.client, "question") == .bytes(8)) }
        for link in links { #expect(link.readAtServer().text == "question") }
    }

    /// Five bytes are the header of a record: OpenSSL before 3.0.14 forgets that it holds one.
    @Test(arguments: [1, 4, 5, 6, 20]) func `a displaced session keeps the part of a record that has arrived`(
        _ part: Int
    ) throws {
        let link = try connected()
        #expect(link.readAtServer().result == .wantRead)
        #expect(write(link.client, "question") == .bytes(8))
        let record = link.takeFromWire()
        link.putOnWire(record.prefix(part))
        #expect(link.readAtServer().result == .wantRead)
        let others = try openOthers()
        #expect(!link.server.keepsBuffers)
        link.putOnWire(record.dropFirst(part))
        #expect(link.readAtServer().text == "question")
        withExtendedLifetime(others) {}
    }

    @Test func `a displaced session keeps content that has not been read`() throws {
        let link = try connected()
        #expect(write(link.client, String(repeating: "a", count: 150)) == .bytes(150))
        #expect(link.readAtServer().text.utf8.count == 100)
        let others = try openOthers()
        #expect(link.readAtServer().text == String(repeating: "a", count: 50))
        withExtendedLifetime(others) {}
    }

    @Test func `a session that ends leaves its place`() throws {
        for _ in 0...BufferHolders.placesMax { _ = try connected() }
        let last = try connected()
        #expect(last.server.keepsBuffers)
    }
}

@Suite("The last records of a handshake with a client")
struct HandshakeEndTests {
    private let ends: Ends

    init() throws { ends = try Ends() }

    /// Both ends are done, and the server has session tickets for the client.
    private func connected() throws -> OpenedLink {
        let link = try ends.open()
        #expect(link.client.handshake() == .wantRead)
        #expect(link.server.handshake() == .wantRead)
        #expect(link.client.handshake() == .done)
        #expect(link.waitingAtClient == 0)
        #expect(link.server.handshake() == .done)
        return link
    }

    @Test func `they wait for the first answer, and go before it`() throws {
        let link = try connected()
        #expect(link.server.hasUnsentBytes && link.waitingAtClient == 0)
        #expect(write(link.client, "question") == .bytes(8))
        #expect(link.readAtServer().text == "question")
        #expect(link.waitingAtClient == 0)
        #expect(link.writeAtServer("answer") == .bytes(6))
        #expect(!link.server.hasUnsentBytes)
        #expect(link.waitingAtClient > 100)
        #expect(read(link.client).text == "answer")
    }

    @Test func `flush sends them if there is no answer`() throws {
        let link = try connected()
        #expect(link.server.flush() == .done)
        #expect(!link.server.hasUnsentBytes)
        let tickets = link.waitingAtClient
        #expect(tickets > 100)
        #expect(link.server.flush() == .done)
        #expect(link.waitingAtClient == tickets)
        #expect(read(link.client).result == .wantRead)
        #expect(link.writeAtServer("answer") == .bytes(6))
        #expect(read(link.client).text == "answer")
    }

    @Test func `a session that ends sends them before close_notify`() throws {
        let link = try connected()
        link.server.shutdown()
        #expect(link.waitingAtClient > 100)
        #expect(read(link.client).result == .closed)
    }
}
