import EventLoop
import Framing
import Glibc
import Message

/// Sends requests to a proxy, over one connection as long as it stays open. Blocks. Used by one thread.
final class ProxyClient {
    enum Failure: Error, Equatable {
        case cannotConnect(String)
        /// The connection ended before the answer was complete.
        case broken
        case timeout
        /// The answer is not an HTTP response. The reason is that of the parser.
        case notHTTP(String)

        var text: String {
            switch self {
            case .cannotConnect(let reason): "the proxy cannot be reached: \(reason)"
            case .broken: "the connection broke off"
            case .timeout: "no answer for \(ProxyClient.silenceSecondsMax) s"
            case .notHTTP(let reason): "the answer is not HTTP: \(reason)"
            }
        }
    }

    struct Answer {
        var status: UInt16
        var fields: Fields
        /// The first bytes of the body, as many as the caller wants.
        var body: [UInt8]
        /// The length of the body that arrived.
        var bodyBytes: UInt64
    }

    /// Longer than the proxy itself waits for an origin.
    static let silenceSecondsMax = 180

    private let addresses: [SocketAddress]
    private let fields: [(name: String, value: String)]
    private var connection: ProxyConnection?
    private var input: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)
    private let limits: Limits

    init(addresses: [SocketAddress], fields: [(name: String, value: String)]) {
        self.addresses = addresses
        self.fields = fields
        var limits = Limits()
        limits.headBytesMax = 256 << 10
        self.limits = limits
    }

    /// - Parameter keeping: how many bytes of the body are kept. The rest is read and dropped.
    func get(_ target: TargetURI, keeping: Int = 0) throws(Failure) -> Answer {
        let port = target.port == target.scheme.defaultPort ? "" : ":\(target.port)"
        return try send(request(target.normalised, host: "\(target.host)\(port)"), keeping)
    }

    /// Asks for a page of the proxy's own, in origin-form.
    ///
    /// - Parameter host: the value of Host.
    func get(page path: String, host: String, keeping: Int) throws(Failure) -> Answer {
        try send(request(Array(path.utf8), host: host), keeping)
    }

    private func send(_ request: [UInt8], _ keeping: Int) throws(Failure) -> Answer {
        if connection != nil {
            // The proxy may have closed the idle connection: open a new one at once.
            do throws(Failure) {
                return try exchange(request, keeping)
            } catch {
                connection = nil
                guard error == .broken, input.isEmpty else { throw error }
            }
        }
        connection = try ProxyConnection(addresses)
        do throws(Failure) {
            return try exchange(request, keeping)
        } catch {
            connection = nil
            throw error
        }
    }

    /// Connects, and keeps the connection for the first request. Returns why that failed, or nil.
    func reasonNotToConnect() -> String? {
        do throws(Failure) {
            connection = try ProxyConnection(addresses)
            return nil
        } catch { return error.text }
    }

    private func exchange(_ request: [UInt8], _ keeping: Int) throws(Failure) -> Answer {
        input = []
        try connection?.send(request)
        let head = try readHead()
        let bytes = Array(input[..<head.byteCount])
        input.removeFirst(head.byteCount)
        var answer = Answer(
            status: head.status, fields: Fields(bytes: bytes, section: head.fields), body: [], bodyBytes: 0)
        let length: BodyLength
        do throws(FramingError) {
            length = try responseBodyLength(head, to: .get, bytes: bytes.span)
        } catch { throw .notHTTP(error.reason) }
        try readBody(length, keeping, into: &answer)
        let options = ConnectionOptions(head.fields, bytes: bytes.span)
        if length == .untilClose || !persists(minorVersion: head.minorVersion, options) || !input.isEmpty {
            connection = nil
        }
        return answer
    }

    private func request(_ target: [UInt8], host: String) -> [UInt8] {
        var bytes: [UInt8] = []
        appendRequestLine("GET".utf8, target, to: &bytes)
        appendFieldLine(.host, host.utf8, to: &bytes)
        for field in fields { appendFieldLine(field.name.utf8, field.value.utf8, to: &bytes) }
        return bytes + [0x0D, 0x0A]
    }

    // MARK: the answer

    /// Reads the final head. Interim heads are skipped (RFC 9110 §15.2).
    private func readHead() throws(Failure) -> ResponseHead {
        while true {
            var head = ResponseHead()
            var progress = HeadProgress()
            while try !parse(&head, &progress) { try receive() }
            if head.status >= 200 || head.status == 101 { return head }
            input.removeFirst(head.byteCount)
        }
    }

    private func parse(_ head: inout ResponseHead, _ progress: inout HeadProgress) throws(Failure) -> Bool {
        let bytes = input  // shares the memory
        do throws(FramingError) {
            return try parseResponseHead(bytes.span, into: &head, progress: &progress, limits: limits)
        } catch { throw .notHTTP(error.reason) }
    }

    private func readBody(_ length: BodyLength, _ keeping: Int, into answer: inout Answer) throws(Failure) {
        switch length {
        case .none, .tunnel: return
        case .length(let count):
            while answer.bodyBytes < count {
                if input.isEmpty { try receive() }
                let taken = Int(min(UInt64(input.count), count - answer.bodyBytes))
                answer.add(input[..<taken], keeping)
                input.removeFirst(taken)
            }
        case .chunked: try readChunks(keeping, into: &answer)
        case .untilClose:
            while true {
                answer.add(input[...], keeping)
                input = []
                do throws(Failure) { try receive() } catch {
                    guard error == .broken, connection?.hasClosed == true else { throw error }
                    return
                }
            }
        }
    }

    private func readChunks(_ keeping: Int, into answer: inout Answer) throws(Failure) {
        var decoder = ChunkedDecoder(limits: limits)
        while true {
            switch try step(&decoder) {
            case .needMore(let consumed):
                input.removeFirst(consumed)
                try receive()
            case .data(let consumed, let range):
                answer.add(input[range], keeping)
                input.removeFirst(consumed)
            case .end(let consumed):
                input.removeFirst(consumed)
                return
            }
        }
    }

    private func step(_ decoder: inout ChunkedDecoder) throws(Failure) -> ChunkedDecoder.Step {
        let bytes = input  // shares the memory
        do throws(FramingError) {
            return try decoder.step(bytes.span)
        } catch { throw .notHTTP(error.reason) }
    }

    private func receive() throws(Failure) {
        guard let connection else { throw .broken }
        input += try connection.receive(into: &buffer)
    }
}

extension ProxyClient.Answer {
    fileprivate mutating func add(_ bytes: ArraySlice<UInt8>, _ keeping: Int) {
        bodyBytes += UInt64(bytes.count)
        if body.count < keeping { body += bytes.prefix(keeping - body.count) }
    }
}
