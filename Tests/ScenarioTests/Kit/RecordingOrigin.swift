import EventLoop
import Foundation

/// A server on loopback that keeps every byte that comes, and speaks no protocol: what a scenario judges is what arrived on the wire.
final class RecordingOrigin: Sendable {
    let port: UInt16
    let address: UInt32
    private let listener: CInt
    private let greeting: [UInt8]
    private let answer: [UInt8]
    private let seen = Locked<(received: [[UInt8]], wires: [Wire], hasEnded: Bool)>(([], [], false))

    /// - Parameters:
    ///   - address: any of 127.0.0.0/8.
    ///   - greeting: what it sends before it has received anything.
    ///   - answer: what it sends when it has received something, once for each connection.
    init(address: UInt32 = 0x7F00_0001, port: UInt16 = 0, greeting: String = "", answer: String = "") throws {
        let socket = try Sockets.listen(SocketAddress(v4: address, port: port), reusePort: false, backlog: 64)
        self.port = try Sockets.localAddress(socket.rawValue).port
        self.address = address
        self.greeting = Array(greeting.utf8)
        self.answer = Array(answer.utf8)
        listener = socket.release()
        Thread.detachNewThread { [self] in accept() }
    }

    /// Two origins with one port, on 127.0.0.1 and 127.0.0.2. If another socket has the port on the second address, another port is tried.
    static func pair(_ first: String, _ second: String) throws -> (RecordingOrigin, RecordingOrigin) {
        var attempts = 20
        while true {
            let origin = try RecordingOrigin(answer: first)
            do {
                return (origin, try RecordingOrigin(address: 0x7F00_0002, port: origin.port, answer: second))
            } catch {
                origin.end()
                attempts -= 1
                if attempts == 0 { throw error }
            }
        }
    }

    /// An answer to any request of HTTP/1.
    static let page = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nforbidden"

    var connectionCount: Int { seen.withLock { $0.received.count } }
    /// The bytes of each connection.
    var received: [[UInt8]] { seen.withLock { $0.received } }
    var bytes: [UInt8] { received.flatMap(\.self) }

    /// May be called again: once only, the listener is still its own.
    func end() {
        let wires = seen.withLock { seen in
            defer { seen.hasEnded = true }
            if !seen.hasEnded { _ = shutdown(listener, CInt(SHUT_RDWR)) }
            return seen.wires
        }
        for wire in wires { wire.hangUp() }
    }

    private func accept() {
        defer { close(listener) }
        while true {
            var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            if unsafe poll(&entry, 1, -1) < 0, errno == EINTR { continue }
            guard entry.revents & Int16(POLLHUP) == 0 else { return }
            guard case .accepted(let descriptor, _) = Sockets.accept(listener) else { continue }
            let wire = Wire(adopting: descriptor.release(), "recording origin")
            let number = seen.withLock { seen in
                seen.received.append([])
                seen.wires.append(wire)
                return seen.received.count - 1
            }
            Thread.detachNewThread { [self] in serve(wire, number) }
        }
    }

    /// Ends without a word where the other side leaves: what came is what is looked at.
    private func serve(_ wire: Wire, _ number: Int) {
        defer { wire.hangUp() }
        do {
            try wire.write(greeting)
            while case let bytes = try wire.read(), !bytes.isEmpty {
                let isFirst = seen.withLock { seen in
                    seen.received[number] += bytes
                    return seen.received[number].count == bytes.count
                }
                if isFirst { try wire.write(answer) }
            }
        } catch { return }
    }
}

/// A ClientHello as a client might write it (RFC 8446 §4.1.2).
struct HelloBytes {
    /// The server_name extension, if there is one.
    var name: String?
    /// Bytes of the padding extension (RFC 7685).
    var padding = 0
    /// The content of encrypted_client_hello (RFC 9849 §5).
    var encryptedHello: [UInt8]?
    /// The most bytes of the message in one record.
    var recordMax = 1 << 14

    /// An outer hello with random bytes, as a browser sends it to a server that does not know the extension (RFC 9849 §6.2).
    static let grease: [UInt8] =
        [0, 0, 1, 0, 1, 0x5A, 0, 32] + [UInt8](repeating: 0xA7, count: 32) + [0, 144]
        + [UInt8](repeating: 0x3C, count: 144)

    private static func vector(_ content: [UInt8], _ lengthBytes: Int) -> [UInt8] {
        (0..<lengthBytes).reversed().map { UInt8(truncatingIfNeeded: content.count >> (8 * $0)) } + content
    }

    var bytes: [UInt8] {
        var extensions: [UInt8] = []
        if let name {
            extensions += [0, 0] + Self.vector(Self.vector([0] + Self.vector(Array(name.utf8), 2), 2), 2)
        }
        if let encryptedHello { extensions += [0xFE, 0x0D] + Self.vector(encryptedHello, 2) }
        if padding > 0 { extensions += [0, 21] + Self.vector([UInt8](repeating: 0, count: padding), 2) }
        let body =
            [3, 3] + [UInt8](repeating: 9, count: 32) + [0, 0, 2, 0x13, 0x01, 1, 0] + Self.vector(extensions, 2)
        let message = [1] + Self.vector(body, 3)
        return stride(from: 0, to: message.count, by: recordMax).flatMap {
            [0x16, 3, 1] + Self.vector(Array(message[$0..<min($0 + recordMax, message.count)]), 2)
        }
    }
}
