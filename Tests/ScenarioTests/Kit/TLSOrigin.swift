import EventLoop
import Foundation
import TLS

/// A self-signed certificate, made by the `openssl` command as an operator would make it.
struct MadeCertificate: Sendable {
    let certificate: String
    let key: String

    /// - Parameter names: as OpenSSL spells alternative names: `IP:127.0.0.1,DNS:a.test`.
    init(for names: String) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.currentDirectoryURL = directory
        process.arguments = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "1", "-subj", "/CN=larder scenario", "-addext", "subjectAltName=\(names)", "-keyout", "key.pem", "-out",
            "certificate.pem",
        ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw WireError("openssl req: \(process.terminationStatus)") }
        func text(_ name: String) throws -> String {
            try String(contentsOf: directory.appendingPathComponent(name), encoding: .utf8)
        }
        certificate = try text("certificate.pem")
        key = try text("key.pem")
    }
}

/// A server that speaks TLS and answers every request in the same way.
final class TLSOrigin: Sendable {
    enum Behaviour: Sendable, Equatable {
        /// The whole response; the connection goes on.
        case answers(String)
        /// The whole response, and a record behind it which arrives at the same time.
        case goesOn(String, behind: String)
        /// Then the connection ends, without the `close_notify` that would say it was all.
        case breaksOff(String)
        /// This head; then every byte comes back.
        case echoes(String)
        /// Not TLS, whatever the client says.
        case speaksPlainly
    }

    let port: UInt16
    private let listener: CInt
    private let context: TLSServerContext
    private let behaviour: Behaviour
    private let seen = Locked<(heads: [String], connections: Int, fds: [CInt])>(([], 0, []))

    init(_ certificate: MadeCertificate, _ behaviour: Behaviour) throws {
        context = try TLSServerContext(
            certificates: Array(certificate.certificate.utf8), privateKey: Array(certificate.key.utf8))
        self.behaviour = behaviour
        let socket = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: 0), reusePort: false, backlog: 16)
        port = try Sockets.localAddress(socket.rawValue).port
        listener = socket.release()
        Thread.detachNewThread { [self] in accept() }
    }

    /// The request heads that came, decrypted.
    var heads: [String] { seen.withLock { $0.heads } }
    var connectionCount: Int { seen.withLock { $0.connections } }
    func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

    func end() {
        _ = shutdown(listener, CInt(SHUT_RDWR))
        seen.withLock { for fd in $0.fds { _ = shutdown(fd, CInt(SHUT_RDWR)) } }
    }

    private func accept() {
        defer { close(listener) }
        while true {
            var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            if unsafe poll(&entry, 1, -1) < 0, errno == EINTR { continue }
            guard entry.revents & Int16(POLLHUP) == 0 else { return }
            guard case .accepted(let descriptor, _) = Sockets.accept(listener) else { continue }
            let fd = descriptor.release()
            seen.withLock {
                $0.connections += 1
                $0.fds.append(fd)
            }
            Thread.detachNewThread { [self] in
                serve(fd)
                seen.withLock { $0.fds.removeAll { $0 == fd } }
                close(fd)
            }
        }
    }

    private func wait(_ fd: CInt, _ events: Int32) -> Bool {
        var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
        return unsafe poll(&entry, 1, patience) > 0
    }

    /// Ends without a word where the client refuses us: what it says to its own client is what is looked at.
    private func serve(_ fd: CInt) {
        if behaviour == .speaksPlainly {
            guard wait(fd, POLLIN) else { return }
            let text = Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8)
            _ = unsafe text.withUnsafeBytes { unsafe IO.send(fd, $0) }
            return
        }
        guard let session = try? TLSSession(context, fd: fd), shakeHands(session, fd) else { return }
        while let head = readHead(session, fd) {
            seen.withLock { $0.heads.append(head) }
            switch behaviour {
            case .answers(let text): guard write(text, session, fd) else { return }
            case .goesOn(let text, let behind):
                cork(fd, true)
                guard write(text, session, fd), write(behind, session, fd) else { return }
                cork(fd, false)
            case .breaksOff(let text):
                _ = write(text, session, fd)
                return
            case .echoes(let text):
                guard write(text, session, fd) else { return }
                return echo(session, fd)
            case .speaksPlainly: return
            }
        }
    }

    /// While it is corked the kernel sends no segment that is not full.
    private func cork(_ fd: CInt, _ isCorked: Bool) {
        var value: CInt = isCorked ? 1 : 0
        _ = unsafe setsockopt(fd, CInt(IPPROTO_TCP), TCP_CORK, &value, socklen_t(MemoryLayout<CInt>.size))
    }

    private func echo(_ session: TLSSession, _ fd: CInt) {
        var buffer = [UInt8](repeating: 0, count: 16384)
        while true {
            switch unsafe buffer.withUnsafeMutableBytes({ unsafe session.read(into: $0) }) {
            case .bytes(let count):
                guard write(String(decoding: buffer[..<count], as: UTF8.self), session, fd) else { return }
            case .wantRead: guard wait(fd, POLLIN) else { return }
            case .wantWrite: guard wait(fd, POLLOUT) else { return }
            case .closed:
                _ = session.shutdown()
                return
            case .failed: return
            }
        }
    }

    private func shakeHands(_ session: TLSSession, _ fd: CInt) -> Bool {
        while true {
            switch session.handshake() {
            case .done: return true
            case .wantRead: guard wait(fd, POLLIN) else { return false }
            case .wantWrite: guard wait(fd, POLLOUT) else { return false }
            case .failed: return false
            }
        }
    }

    private func readHead(_ session: TLSSession, _ fd: CInt) -> String? {
        var head: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16384)
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            switch unsafe buffer.withUnsafeMutableBytes({ unsafe session.read(into: $0) }) {
            case .bytes(let count): head += buffer[..<count]
            case .wantRead: guard wait(fd, POLLIN) else { return nil }
            case .wantWrite: guard wait(fd, POLLOUT) else { return nil }
            case .closed, .failed: return nil
            }
        }
        return String(decoding: head, as: UTF8.self)
    }

    private func write(_ text: String, _ session: TLSSession, _ fd: CInt) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            switch unsafe rest.withUnsafeBytes({ unsafe session.write($0) }) {
            case .bytes(let count): rest = rest.dropFirst(count)
            case .wantRead: guard wait(fd, POLLIN) else { return false }
            case .wantWrite: guard wait(fd, POLLOUT) else { return false }
            case .closed, .failed: return false
            }
        }
        return true
    }
}
