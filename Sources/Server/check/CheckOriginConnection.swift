import ClientSetup
import EventLoop
import Framing
import Glibc
import Message

/// One connection to the origin of `larder doctor`: reads requests without a body, and answers each at once.
///
/// Its other end is in this process, so an answer of some hundred bytes always fits into the socket: an end that does not read is cut off.
final class CheckOriginConnection {
    private let socket: Descriptor
    private let way: CheckOrigin.Way
    private let records: Locked<CheckRecords>
    private let limits: Limits
    private var readEvent = IOEvent()
    private var input: [UInt8] = []
    private var progress = HeadProgress()
    private var head = RequestHead()
    private var ended: (() -> Void)?

    init(_ socket: consuming Descriptor, way: CheckOrigin.Way, records: Locked<CheckRecords>, limits: Limits) {
        self.socket = socket
        self.way = way
        self.records = records
        self.limits = limits
    }

    /// - Parameter ended: is called once, when the connection has ended. The owner releases it afterwards.
    func start(on loop: EventLoop, ended: @escaping () -> Void) {
        self.ended = ended
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe readEvent.assign(
            loop, fd: socket.rawValue, .read,
            { _, _, context in
                unsafe Unmanaged<CheckOriginConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef {
                    $0.onReadable()
                }
            }, context)
        readEvent.add()
    }

    private func onReadable() {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        let fd = socket.rawValue
        switch unsafe buffer.withUnsafeMutableBytes({ unsafe IO.receive(fd, into: $0) }) {
        case .bytes(let count): input += buffer[..<count]
        case .wouldBlock: return
        case .closed, .failed: return end()
        }
        // Bytes that are no HTTP are those of a tunnel in which the client speaks TLS with an origin that does not.
        while !input.isEmpty {
            do throws(FramingError) {
                let bytes = input
                guard try parseRequestHead(bytes.span, into: &head, progress: &progress, limits: limits) else { return }
            } catch { return end() }
            progress = HeadProgress()
            guard answer() else { return end() }
            input.removeFirst(head.byteCount)
        }
    }

    /// Answers the request whose head lies at the beginning of `input`. Returns false if the connection must end.
    private func answer() -> Bool {
        let method = String(decoding: input[head.methodRange], as: UTF8.self)
        let path = String(decoding: input[head.target.pathRange], as: UTF8.self)
        let answer = records.withLock {
            CheckOrigin.answer(way, method: method, path: path, remembering: &$0)
        }
        let hasBody = head.fields.present.contains(.contentLength) || head.fields.present.contains(.transferEncoding)
        let storing = answer.mayBeStored ? "public, max-age=600" : "no-store"
        let text =
            "HTTP/1.1 \(answer.status) \(answer.status == 200 ? "OK" : "Method Not Allowed")\r\n"
            + "Content-Type: text/plain\r\nCache-Control: \(storing)\r\nContent-Length: \(answer.body.utf8.count)\r\n"
            + (hasBody ? "Connection: close\r\n" : "") + "\r\n" + (method == "HEAD" ? "" : answer.body)
        var bytes = Array(text.utf8)
        let fd = socket.rawValue
        let sent = unsafe bytes.withUnsafeMutableBytes {
            unsafe send(fd, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
        }
        return sent == bytes.count && !hasBody
    }

    private func end() {
        readEvent.clear()
        _ = shutdown(socket.rawValue, CInt(SHUT_RDWR))
        ended?()
        ended = nil
    }
}
