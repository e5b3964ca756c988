import EventLoop
import Framing
import Glibc
import Message
import Settings

/// Sends requests to the running proxy over its admin socket. Blocks. Gives up if nothing arrives for `secondsMax`.
struct AdminClient {
    private static let secondsMax = 30
    /// The longest answer is `/transfers` of a busy proxy.
    private static let answerBytesMax = 64 << 20

    /// The sockets to try. The first one that accepts a connection is used.
    var paths: [String]

    enum Failure: Error, Equatable {
        /// Nothing listens at any of the paths.
        case nobodyThere(paths: [String])
        case notAllowed(path: String)
        case failed(path: String, code: CInt)
        case notAnAnswer(path: String)

        var text: String {
            switch self {
            case .nobodyThere(let paths) where paths.isEmpty:
                "the configuration turns the admin socket off (admin.socket)"
            case .nobodyThere(let paths):
                "no Larder is running: nothing answers at \(paths.joined(separator: " or "))"
            case .notAllowed(let path): "\(path): a Larder is running, but this user may not control it"
            case .failed(let path, let code): "\(path): \(systemErrorText(code))"
            case .notAnAnswer(let path): "\(path): the program that answers there is not Larder"
            }
        }
    }

    struct Answer: Equatable {
        var status: UInt16
        var body: [UInt8]
    }

    /// - Parameter body: JSON. Empty if the request has none.
    func ask(_ method: String, _ path: String, body: [UInt8] = []) throws(Failure) -> Answer {
        let connection = try begin(method, path, body: body)
        let bytes = try readToEnd(connection)
        guard let answer = Self.parse(bytes) else { throw .notAnAnswer(path: connection.path) }
        return answer
    }

    /// Requests lines and passes each on as it arrives, so that not all of them are in memory at once.
    ///
    /// - Returns: nil when all lines have arrived. If the server answers with something else, such as a refusal, returns that answer.
    func lines(_ path: String, _ each: (ArraySlice<UInt8>) -> Void) throws(Failure) -> Answer? {
        let connection = try begin("GET", path, body: [])
        var reader = LineReader()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let fd = connection.socket.rawValue
            let outcome = unsafe buffer.withUnsafeMutableBytes { unsafe IO.read(fd, into: $0) }
            switch (outcome, reader.state) {
            case (.bytes(let count), _): reader.receive(buffer[..<count], each)
            case (.closed, .whole): return nil
            case (.closed, .other):
                guard let answer = Self.parse(reader.held) else { throw .notAnAnswer(path: connection.path) }
                return answer
            case (.closed, .head), (.closed, .lines), (.closed, .broken): throw .notAnAnswer(path: connection.path)
            case (.wouldBlock, _): throw .failed(path: connection.path, code: ETIMEDOUT)
            case (.failed(let code), _): throw .failed(path: connection.path, code: code)
            }
        }
    }

    private func begin(_ method: String, _ path: String, body: [UInt8]) throws(Failure) -> Connection {
        let connection = try connectToFirst()
        var request: [UInt8] = Array("\(method) \(path) HTTP/1.1\r\nHost: larder\r\nConnection: close\r\n".utf8)
        if !body.isEmpty {
            request += "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n".utf8
        }
        request += "\r\n".utf8
        request += body
        if let code = writeAll(&request, to: connection.socket.rawValue) {
            throw .failed(path: connection.path, code: code)
        }
        return connection
    }

    private struct Connection: ~Copyable {
        let socket: Descriptor
        let path: String
    }

    private func connectToFirst() throws(Failure) -> Connection {
        var refusal: Failure?
        for path in paths {
            do throws(Failure) {
                return Connection(socket: try connect(path), path: path)
            } catch {
                if refusal == nil, error != .nobodyThere(paths: [path]) { refusal = error }
            }
        }
        throw refusal ?? .nobodyThere(paths: paths)
    }

    private func connect(_ path: String) throws(Failure) -> Descriptor {
        let address: SocketAddress
        do throws(SocketError) {
            address = try SocketAddress(unixPath: path)
        } catch {
            throw .failed(path: path, code: ENAMETOOLONG)
        }
        let raw = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard raw >= 0 else { throw .failed(path: path, code: errno) }
        let descriptor = Descriptor(adopting: raw)
        var limit = timeval(tv_sec: Self.secondsMax, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(raw, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        guard
            unsafe address.withSockaddr({ unsafe Glibc.connect(raw, $0.assumingMemoryBound(to: sockaddr.self), $1) })
                != 0
        else { return descriptor }
        switch errno {
        case ENOENT, ECONNREFUSED, ENOTDIR: throw .nobodyThere(paths: [path])
        case EACCES, EPERM: throw .notAllowed(path: path)
        default: throw .failed(path: path, code: errno)
        }
    }

    private func readToEnd(_ connection: borrowing Connection) throws(Failure) -> [UInt8] {
        let (fd, path) = (connection.socket.rawValue, connection.path)
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count <= Self.answerBytesMax {
            switch unsafe buffer.withUnsafeMutableBytes({ unsafe IO.read(fd, into: $0) }) {
            case .bytes(let count): bytes += buffer[..<count]
            case .closed: return bytes
            case .wouldBlock: throw .failed(path: path, code: ETIMEDOUT)
            case .failed(let code): throw .failed(path: path, code: code)
            }
        }
        throw .notAnAnswer(path: path)
    }

    /// Head and body of a complete response. Returns nil if it is cut off or is not a response.
    static func parse(_ bytes: [UInt8]) -> Answer? {
        var head = ResponseHead()
        var progress = HeadProgress()
        do throws(FramingError) {
            guard try parseResponseHead(bytes.span, into: &head, progress: &progress, limits: Limits()) else {
                return nil
            }
            let body = Array(bytes[head.byteCount...])
            switch try responseBodyLength(head, to: .get, bytes: bytes.span) {
            case .none: return Answer(status: head.status, body: [])
            case .length(let count): return UInt64(body.count) == count ? Answer(status: head.status, body: body) : nil
            case .untilClose: return Answer(status: head.status, body: body)
            case .chunked, .tunnel: return nil  // our own server sends neither
            }
        } catch {
            return nil
        }
    }
}

/// The client for `--socket`, or for the sockets that the configuration leads to. Returns nil after printing errors.
func adminClient(_ arguments: Arguments, _ console: Console) -> AdminClient? {
    if let path = arguments[.socket] { return AdminClient(paths: [path]) }
    let reading = readConfiguration(arguments)
    guard let configuration = reading.configuration else {
        for error in reading.errors { console.error("larder: \(error)") }
        return nil
    }
    return AdminClient(paths: adminSocketPaths(configuration.admin, environment: environmentVariable))
}
