import ProgramUnderTest
import EventLoop
import Foundation
import Glibc

/// An origin that does with a connection what a test says: for what nginx would be too well-behaved to show.
///
/// Each connection is served on a thread of its own, which ends with its connection.
final class ScriptedOrigin: Sendable {
    private let listener: LoopbackListener
    private let open = Locked<(isClosed: Bool, fds: Set<CInt>)>((false, []))
    let heads = Locked<[String]>([])

    var port: UInt16 { listener.port }
    var url: String { "http://127.0.0.1:\(port)" }

    /// - Parameter serve: told of each request's head; answers through the connection. It is closed afterwards.
    static func with(
        _ serve: @escaping @Sendable (String, ScriptedConnection) -> Void,
        _ body: (ScriptedOrigin) async throws -> Void
    ) async throws {
        let origin = try ScriptedOrigin()
        Thread.detachNewThread { origin.accept(serve) }
        let result: Result<Void, any Error>
        do { result = .success(try await body(origin)) } catch { result = .failure(error) }
        origin.close()
        try result.get()
    }

    private init() throws { listener = try LoopbackListener() }

    private func accept(_ serve: @escaping @Sendable (String, ScriptedConnection) -> Void) {
        while true {
            let fd = Glibc.accept(listener.fd, nil, nil)
            guard fd >= 0 else { return }
            _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
            let isWelcome = open.withLock {
                guard !$0.isClosed else { return false }
                $0.fds.insert(fd)
                return true
            }
            guard isWelcome else {
                Glibc.close(fd)
                return
            }
            Thread.detachNewThread { [self] in
                let connection = ScriptedConnection(fd: fd)
                if let head = connection.readHead() {
                    heads.withLock { $0.append(head) }
                    serve(head, connection)
                }
                open.withLock { _ = $0.fds.remove(fd) }
                Glibc.close(fd)
            }
        }
    }

    private func close() {
        open.withLock {
            $0.isClosed = true
            for fd in $0.fds { shutdown(fd, CInt(SHUT_RDWR)) }
        }
        shutdown(listener.fd, CInt(SHUT_RDWR))
    }
}

/// One connection of a `ScriptedOrigin`, or of a test that is the client itself. Blocks.
struct ScriptedConnection: Sendable {
    let fd: CInt

    /// - Returns: false when the peer left.
    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.send(fd, $0.baseAddress! + sent, $0.count - sent, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// - Returns: what came, at most `count` bytes; empty at the end.
    func receive(_ count: Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let received = unsafe buffer.withUnsafeMutableBytes { unsafe recv(fd, $0.baseAddress!, $0.count, 0) }
        return Array(buffer.prefix(max(0, received)))
    }

    /// The body behind a head: with its length, or in chunks without extensions and trailers. What there is of one that breaks off.
    func readBody(after head: String) -> Data {
        let lower = head.lowercased()
        if let place = lower.range(of: "content-length: ") {
            return read(Int(lower[place.upperBound...].prefix { $0.isNumber }) ?? 0)
        }
        var body = Data()
        while lower.contains("transfer-encoding: chunked"), let line = readLine(), let count = Int(line, radix: 16) {
            body += read(count)
            guard readLine() == "", count > 0 else { break }
        }
        return body
    }

    private func read(_ count: Int) -> Data {
        var body = Data()
        while body.count < count {
            let piece = receive(count - body.count)
            guard !piece.isEmpty else { break }
            body += piece
        }
        return body
    }

    private func readLine() -> String? {
        var line: [UInt8] = []
        while !line.suffix(2).elementsEqual([13, 10]) {
            let byte = receive(1)
            guard !byte.isEmpty, line.count < 1024 else { return nil }
            line += byte
        }
        return String(decoding: line.dropLast(2), as: UTF8.self)
    }

    /// Up to and with the empty line, byte by byte so that the body is left; nil when the peer leaves before it.
    func readHead() -> String? {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            let byte = receive(1)
            guard !byte.isEmpty, head.count < 65_536 else { return nil }
            head += byte
        }
        return String(decoding: head, as: UTF8.self)
    }
}
