import EventLoop
import Glibc
import Provisioning
import Settings
import Upstream

/// Sends requests to the running proxy over its admin socket. Blocks. Gives up if nothing arrives for as long as `Patience` says.
struct AdminClient {
    /// How long it waits for an answer, and for more of it.
    enum Patience: Int {
        /// For what the server knows.
        case ordinary = 30
        /// For what waits for a disk, which may have much to write.
        case disk = 3600

        var duration: Duration { .seconds(rawValue) }
    }

    /// The longest answer is `/transfers` of a busy proxy.
    private static let answerBytesMax = 64 << 20

    /// The sockets to try. The first one that accepts a connection is used.
    var paths: [String]

    enum Failure: Error, Equatable {
        /// Nothing listens at any of the paths.
        case nobodyThere(paths: [String])
        case notAllowed(path: String)
        case failed(path: String, code: CInt)
        case silent(path: String, Patience)
        case notAnAnswer(path: String)
        case brokenOff(path: String)

        var text: String {
            switch self {
            case .nobodyThere(let paths) where paths.isEmpty:
                "the configuration turns the admin socket off (admin.socket)"
            case .nobodyThere(let paths):
                "no Larder is running: nothing answers at \(paths.joined(separator: " or "))"
            case .notAllowed(let path): "\(path): a Larder is running, but this user may not control it"
            case .failed(let path, let code): "\(path): \(systemErrorText(code))"
            case .silent(let path, let patience):
                "\(path): no answer for \(patience.rawValue) seconds; what was asked may still be under way"
            case .notAnAnswer(let path): "\(path): the program that answers there is not Larder"
            case .brokenOff(let path):
                "\(path): the connection ended before the whole answer had come; Larder was perhaps stopping"
            }
        }
    }

    struct Answer: Equatable {
        var status: UInt16
        var body: [UInt8]
    }

    /// - Parameter body: JSON. Empty if the request has none.
    func ask(
        _ method: String, _ path: String, body: [UInt8] = [], patience: Patience = .ordinary
    ) throws(Failure) -> Answer {
        try blocking { () throws(Failure) in
            let (response, place) = try await send(method, path, body, patience)
            return try await Self.read(response, at: place, patience)
        }
    }

    /// Requests lines and passes each on as it arrives, so that not all of them are in memory at once.
    ///
    /// - Returns: nil when all lines have arrived. If the server answers with something else, such as a refusal, returns that answer.
    func lines(_ path: String, _ each: (ArraySlice<UInt8>) -> Void) throws(Failure) -> Answer? {
        let (response, place) = try blocking { () throws(Failure) in try await send("GET", path, [], .ordinary) }
        // Lists are sent in chunks, so their length is not known.
        guard response.status == 200, response.body.length == nil else {
            return try blocking { () throws(Failure) in try await Self.read(response, at: place, .ordinary) }
        }
        var reader = LineReader()
        while let piece = try blocking({ () throws(Failure) in try await Self.next(of: response, at: place) }) {
            reader.receive(piece[...], each)
        }
        return nil
    }

    /// Sends a request to the first socket that accepts it.
    private func send(
        _ method: String, _ path: String, _ body: [UInt8], _ patience: Patience
    ) async throws(Failure) -> (Response, place: String) {
        var request = Request(Request.Method(method), "http://larder\(path)")
        request.timeLimits.answer = patience.duration
        request.timeLimits.silence = patience.duration
        if !body.isEmpty {
            request.fields.append("Content-Type", "application/json")
            request.body = .bytes(body)
        }
        var refusal: Failure?
        for place in paths {
            do throws(ClientError) {
                return (try await Client(.unixSocket(place)).send(request), place)
            } catch {
                guard let failure = Self.failureToConnect(error, at: place) else {
                    throw Self.failure(error, at: place, patience)
                }
                if refusal == nil, failure != .nobodyThere(paths: [place]) { refusal = failure }
            }
        }
        throw refusal ?? .nobodyThere(paths: paths)
    }

    private static func read(
        _ response: Response, at place: String, _ patience: Patience
    ) async throws(Failure) -> Answer {
        do throws(ClientError) {
            return Answer(
                status: UInt16(response.status), body: try await response.body.collect(upTo: answerBytesMax))
        } catch { throw failure(error, at: place, patience) }
    }

    private static func next(of response: Response, at place: String) async throws(Failure) -> [UInt8]? {
        do throws(ClientError) { return try await response.body.next() } catch {
            throw failure(error, at: place, .ordinary)
        }
    }

    /// Why nothing can be asked at this socket. Nil if the error is another one.
    private static func failureToConnect(_ error: ClientError, at place: String) -> Failure? {
        switch error {
        case .cannotConnect(_, ENOENT), .cannotConnect(_, ECONNREFUSED), .cannotConnect(_, ENOTDIR):
            .nobodyThere(paths: [place])
        case .cannotConnect(_, EACCES), .cannotConnect(_, EPERM): .notAllowed(path: place)
        case .cannotConnect(_, let code): .failed(path: place, code: code)
        case .cannotStart: .failed(path: place, code: ENAMETOOLONG)
        default: nil
        }
    }

    private static func failure(_ error: ClientError, at place: String, _ patience: Patience) -> Failure {
        switch error {
        case .timedOut: .silent(path: place, patience)
        case .brokeOff: .brokenOff(path: place)
        default: .notAnAnswer(path: place)
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
