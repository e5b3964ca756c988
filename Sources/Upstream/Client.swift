import EventLoop
import Message
import Requesting
import Server
import Synchronization
import TLS

/// Sends HTTP requests: straight to servers, through a proxy, through Larder's engine in this process, or over a Unix socket.
///
/// A client has a thread of its own. It keeps connections open for later requests. It ends when the last reference to it and to the bodies
/// of its responses is released.
///
/// ```swift
/// let client = try Client(.direct())
/// let response = try await client.send(Request(.get, "http://example.org/"))
/// print(response.status, try await response.body.collect().count)
/// ```
public final class Client: Sendable {
    /// The bounds of a client.
    public struct Options: Sendable {
        /// Requests that run at the same time. A request runs until its body has been read.
        public var requestsMax = 64
        /// Requests that wait until they may run. Beyond: `.tooManyRequests`.
        public var waitingMax = 10_000
        /// Bytes of each body that wait for a slow reader. Beyond: the server waits.
        public var bufferBytes = 256 << 10
        /// How long a connection stays open without a request.
        public var idleTime: Duration = .seconds(30)

        public init() {}
    }

    private let port: ClientPort
    private let thread: OwnedThread
    private let way: ClientWay
    private let bufferBytes: Int
    private let lastNumber = Atomic<RequestQueue.Number>(0)

    /// Starts a client.
    ///
    /// With `.engine`, this reads the files that the configuration names, and blocks meanwhile.
    ///
    /// - Throws: `.cannotStart`, or `.badConfiguration` for an engine.
    public init(_ way: Way, _ options: Options = Options()) throws(ClientError) {
        precondition(
            options.requestsMax > 0 && options.waitingMax >= 0 && options.bufferBytes > 0, "bounds are positive")
        let way = try way.opened()
        let start = LoopStart()
        let thread: ThreadHandle
        do throws(EventLoopError) {
            thread = try startThread(name: "upstream") { start.run(way, options) }
        } catch { throw .cannotStart("\(error)") }
        self.thread = OwnedThread(thread)
        self.way = way
        bufferBytes = options.bufferBytes
        port = try start.port()
    }

    /// What is worth knowing of the engine's configuration, such as a disk that another process uses. Empty for other ways.
    public var warnings: [String] { way.engine?.warnings ?? [] }

    /// How many requests have been given to the thread of the client.
    package var submittedCount: Int { state.withLock { $0.submitted } }

    private struct State {
        var submitted = 0
        var isClosed = false
    }
    private let state = Locked(State())

    deinit { port.do { $0.stop() } }

    /// Sends a request. Returns when the head of the final answer has arrived.
    ///
    /// If the task is cancelled, the request ends and its connection closes. An answer with an error status is an answer.
    public func send(_ request: Request) async throws(ClientError) -> Response {
        var request = request
        if request.decodesGzip { request.fields.append("Accept-Encoding", "gzip") }
        var form: RequestForm
        do throws(RequestFault) {
            form = try RequestForm(method: request.method.text, url: request.url, fields: request.fields.forms)
        } catch { throw .badRequest(error.reason) }
        var followed = 0
        while true {
            let response = try await send(form, request)
            let redirection = form.redirected(
                status: UInt16(response.status), location: response.head.fields.first(.location))
            guard request.redirectsMax > 0, case .follow(let next, let keepsBody) = redirection else { return response }
            guard followed < request.redirectsMax else { throw .tooManyRedirects(limit: request.redirectsMax) }
            followed += 1
            form = next
            if !keepsBody { request.body = .none }
        }
    }

    /// Opens a connection for a later request to this URL.
    public func connect(_ url: String) async throws(ClientError) {
        let request = Request(.get, url)
        let form: RequestForm
        do throws(RequestFault) {
            form = try RequestForm(method: "GET", url: url, fields: [])
        } catch { throw .badRequest(error.reason) }
        _ = try await exchange(
            Transfer(
                lastNumber.add(1, ordering: .relaxed).newValue, request, form, try RequestBody.none.opened(), head: [],
                bufferBytes: bufferBytes, port: port, isConnectionOnly: true))
    }

    private func send(_ form: RequestForm, _ request: Request) async throws(ClientError) -> Response {
        let body = try request.body.opened()
        let transfer = Transfer(
            lastNumber.add(1, ordering: .relaxed).newValue, request, form, body,
            head: form.head(way.form(for: form.target), body: body.framing, own: way.own(for: form.target)),
            bufferBytes: bufferBytes, port: port)
        produce(body, into: transfer)
        let head = try await exchange(transfer)
        let answerBody = Response.Body(transfer, client: self, isGzip: request.decodesGzip && head.isGzip)
        return Response(
            status: Int(head.status), fields: FieldLines(head.fields), body: answerBody,
            url: String(decoding: form.target.normalised, as: UTF8.self), head: head)
    }

    /// Waits for the head of the answer.
    private func exchange(_ transfer: Transfer) async throws(ClientError) -> AnswerHead {
        try await withTaskCancellationHandler {
            submit(transfer)
            return await transfer.answer.value()
        } onCancel: {
            transfer.answer.decide(.failure(.cancelled))
            transfer.abandon()
        }.get()
    }

    /// Gives a request to the thread. It gets all of them before the order to stop, and so none is forgotten.
    private func submit(_ transfer: Transfer) {
        state.withLock { state in
            guard !state.isClosed else { return transfer.fail(.closed) }
            state.submitted += 1
            port.do { $0.submit(transfer) }
        }
    }

    /// Produces a streamed body while it is sent, until the exchange ends: on the executor that the caller prefers, which a task of its own does
    /// not inherit (SE-0417).
    private func produce(_ body: OpenedBody, into transfer: Transfer) {
        guard case .produced(let produce) = body.content, let upload = transfer.upload else { return }
        let executor = unsafe withUnsafeCurrentTask { unsafe $0?.unownedTaskExecutor?.asTaskExecutor() }
        upload.isProduced(
            by: Task(executorPreference: executor) {
                do throws(ClientError) {
                    try await produce { piece throws(ClientError) in try await upload.write(piece) }
                    upload.end(.success(()))
                } catch { upload.end(.failure(error)) }
            })
    }

    /// Ends all requests with `.closed`, and waits for the threads. Not from a progress callback, which is on the client's thread.
    public func close() {
        state.withLock { $0.isClosed = true }
        port.do { $0.stop() }
        thread.join()
        way.engine?.stop()
        way.engine?.join()
    }
}

extension AnswerHead {
    fileprivate var isGzip: Bool {
        fields.first(.contentEncoding).map { equalsIgnoringCase($0, "gzip") || equalsIgnoringCase($0, "x-gzip") }
            ?? false
    }
}

/// Where the thread of a client reports whether its loop could be made.
private final class LoopStart: Sendable {
    private let outcome = Locked<Result<ClientPort, ClientError>?>(nil)
    private let signal = CountingSemaphore()

    func run(_ way: ClientWay, _ options: Client.Options) {
        do throws(ClientError) {
            let loop = try ClientLoop(way, options)
            outcome.withLock { $0 = .success(ClientPort(loop)) }
            signal.signal()
            loop.run()
        } catch {
            outcome.withLock { $0 = .failure(error) }
            signal.signal()
        }
    }

    func port() throws(ClientError) -> ClientPort {
        signal.wait()
        guard let outcome = outcome.withLock({ $0 }) else { preconditionFailure("the thread has reported") }
        return try outcome.get()
    }
}
