import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import TLS

/// A node of a fleet that answers what a test says. It has the certificate of the fleet, so that the others ask it.
///
/// Each connection is served on a thread of its own.
final class ScriptedNode: Sendable {
    private let listener: CInt
    private let context: TLSServerContext
    private let seen = Locked<(isClosed: Bool, connections: Int, heads: [String], fds: Set<CInt>)>((false, 0, [], []))

    /// Those that the node has accepted.
    var connectionCount: Int { seen.withLock { $0.connections } }
    /// The heads of the questions, on all connections.
    var heads: [String] { seen.withLock { $0.heads } }

    /// - Parameter answer: is told of each question, and answers it. Returns whether the connection goes on.
    static func with(
        _ port: UInt16, of peers: Fleet.Peers, _ answer: @escaping @Sendable (String, SecuredConnection) -> Bool,
        _ body: (ScriptedNode) async throws -> Void
    ) async throws {
        let node = try ScriptedNode(port, peers)
        Thread.detachNewThread { node.accept(answer) }
        let result: Result<Void, any Error>
        do { result = .success(try await body(node)) } catch { result = .failure(error) }
        node.close()
        try result.get()
    }

    private init(_ port: UInt16, _ peers: Fleet.Peers) throws {
        context = try TLSServerContext(
            certificates: try peers.bytes(of: "node.crt"), privateKey: try peers.bytes(of: "node.key"))
        listener = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: port), reusePort: false, backlog: 64)
            .release()
        _ = fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) & ~O_NONBLOCK)
    }

    private func accept(_ answer: @escaping @Sendable (String, SecuredConnection) -> Bool) {
        defer { Glibc.close(listener) }
        while true {
            let fd = Glibc.accept(listener, nil, nil)
            guard fd >= 0 else { return }
            _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
            let isWelcome = seen.withLock {
                guard !$0.isClosed else { return false }
                $0.connections += 1
                $0.fds.insert(fd)
                return true
            }
            guard isWelcome else {
                Glibc.close(fd)
                return
            }
            Thread.detachNewThread { [self] in
                serve(fd, answer)
                seen.withLock { _ = $0.fds.remove(fd) }
                Glibc.close(fd)
            }
        }
    }

    private func serve(_ fd: CInt, _ answer: (String, SecuredConnection) -> Bool) {
        guard let session = try? TLSSession(context, fd: fd), let connection = SecuredConnection(session) else {
            return
        }
        while let head = connection.readHead() {
            seen.withLock { $0.heads.append(head) }
            guard answer(head, connection) else { return }
        }
    }

    private func close() {
        seen.withLock {
            $0.isClosed = true
            for fd in $0.fds { shutdown(fd, CInt(SHUT_RDWR)) }
        }
        shutdown(listener, CInt(SHUT_RDWR))
    }
}

/// A connection in TLS whose socket blocks.
final class SecuredConnection {
    private let session: TLSSession
    private let fd: CInt?
    /// Received, and not read yet.
    private var rest: ArraySlice<UInt8> = []

    /// Asks a node as another node does.
    static func connect(_ port: UInt16, of peers: Fleet.Peers) throws -> SecuredConnection {
        var options = TLSClientOptions()
        options.authorities = .file(peers.authority.certificate)
        options.identity = try ClientIdentity(
            certificates: try peers.bytes(of: "node.crt"), key: try peers.bytes(of: "node.key"))
        let fd = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        let status = unsafe SocketAddress(v4: 0x7F00_0001, port: port).withSockaddr {
            unsafe Glibc.connect(fd, $0.assumingMemoryBound(to: sockaddr.self), $1)
        }
        guard status == 0 else { throw Missing(description: "no connection to port \(port)") }
        let session = try TLSSession(try TLSClientContext(options), fd: fd, serverName: "127.0.0.1")
        guard let connection = SecuredConnection(session, closing: fd) else {
            throw Missing(description: "no handshake with port \(port)")
        }
        return connection
    }

    deinit { if let fd { close(fd) } }

    /// Nil if the handshake fails.
    ///
    /// - Parameter fd: is closed with this. Nil: somebody else closes it.
    init?(_ session: TLSSession, closing fd: CInt? = nil) {
        self.session = session
        self.fd = fd
        guard session.handshake() == .done else { return nil }
    }

    /// - Returns: false when the peer left.
    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var left = bytes[...]
        while !left.isEmpty {
            guard case .bytes(let count) = unsafe left.withUnsafeBytes({ unsafe session.write($0) }) else {
                return false
            }
            left = left.dropFirst(count)
        }
        return true
    }

    /// Answers a question of another node.
    ///
    /// - Parameter length: of the body. Nil: it is all there.
    @discardableResult
    func answer(_ verdict: String, _ body: [UInt8], of length: Int? = nil) -> Bool {
        send(
            """
            HTTP/1.1 200 OK\r
            Larder-Peer: \(verdict)\r
            Date: \(ScriptedOrigin.now)\r
            Cache-Control: max-age=600\r
            Content-Type: text/plain\r
            Content-Length: \(length ?? body.count)\r
            \r

            """) && send(body)
    }

    /// Up to and with the empty line; nil when the peer leaves before it.
    func readHead() -> String? {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            guard head.count < 65_536, let byte = readByte() else { return nil }
            head.append(byte)
        }
        return String(decoding: head, as: UTF8.self)
    }

    /// The final head, behind interim ones.
    func readHead(behindInterim: Bool) -> String? {
        while let head = readHead() {
            guard behindInterim, head.hasPrefix("HTTP/1.1 1") else { return head }
        }
        return nil
    }

    /// What there is of a body that breaks off.
    func readBody(_ count: Int) -> [UInt8] {
        var body: [UInt8] = []
        while body.count < count, let byte = readByte() { body.append(byte) }
        return body
    }

    private func readByte() -> UInt8? {
        if rest.isEmpty {
            var buffer = [UInt8](repeating: 0, count: 16_384)
            guard case .bytes(let count) = unsafe buffer.withUnsafeMutableBytes({ unsafe session.read(into: $0) })
            else { return nil }
            rest = buffer[..<count]
        }
        return rest.popFirst()
    }
}

extension Fleet {
    /// One node of a fleet of two, which has one worker. The other one is scripted.
    ///
    /// - Parameter plan: of the real node, the number 0.
    static func withScriptedNode(
        _ plan: Plan = Plan(), _ answer: @escaping @Sendable (String, SecuredConnection, FleetOrigin) -> Bool,
        _ body: (Fleet, ScriptedNode) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            let redis = try await RedisServer.start(in: place)
            let peers = try await Peers.make(2, in: place)
            var own = plan
            own.more = "workers: 1\n" + own.more
            try await with([peers.plan(0, own)], in: place, redis) { (fleet: Fleet) async throws -> Void in
                try await ScriptedNode.with(peers.ports[1], of: peers, { answer($0, $1, fleet.origin) }) {
                    (node: ScriptedNode) async throws -> Void in
                    try await body(fleet.asking(peers), node)
                }
            }
        }
    }
}

extension Fleet.Peers {
    fileprivate func bytes(of file: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: authority.place.path(file))))
    }
}
