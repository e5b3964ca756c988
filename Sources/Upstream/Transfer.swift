import EventLoop
import Forwarding
import Framing
import Message
import Requesting

/// One request and its answer: what the task of the program and the thread of the client have in common.
final class Transfer: Sendable {
    let number: RequestQueue.Number
    let priority: RequestQueue.Priority
    let form: RequestForm
    /// The head as it is sent.
    let head: [UInt8]
    let framing: BodyLength
    /// A body that is in memory, and can be sent again.
    let bytes: [UInt8]
    /// A body that is streamed. Nil if it is in memory.
    let upload: UploadPipe?
    /// A connection is wanted, and nothing is sent.
    let isConnectionOnly: Bool
    let timeLimits: Request.TimeLimits
    let answer = Promise<AnswerHead>()
    let download: DownloadPipe
    private let report: (@Sendable (Request.Progress) -> Void)?
    private let port: ClientPort

    init(
        _ number: RequestQueue.Number, _ request: Request, _ form: RequestForm, _ body: OpenedBody, head: [UInt8],
        bufferBytes: Int, port: ClientPort, isConnectionOnly: Bool = false
    ) {
        self.isConnectionOnly = isConnectionOnly
        self.number = number
        priority = request.priority.form
        self.form = form
        self.head = head
        framing = body.framing
        timeLimits = request.timeLimits
        report = request.progress
        self.port = port
        switch body.content {
        case .bytes(let bytes):
            self.bytes = bytes
            upload = nil
        case .produced:
            bytes = []
            upload = UploadPipe(capacity: bufferBytes, length: body.length) { port.do { $0.uploadGrew(number) } }
        }
        download = DownloadPipe(
            capacity: bufferBytes, onRoom: { port.do { $0.readerMadeRoom(number) } },
            onCancel: { port.do { $0.cancel(number) } })
    }

    /// The answer is not wanted any more. Does nothing if it is complete.
    func abandon() {
        guard !download.isFinished else { return }
        download.end(.failure(.cancelled))
        port.do { [number] in $0.cancel(number) }
    }

    // MARK: the client's thread

    /// Whether it was abandoned, or has ended.
    var isOver: Bool { download.hasEnded }

    func fail(_ error: ClientError) {
        answer.decide(.failure(error))
        end(.failure(error))
    }

    func end(_ result: Result<Void, ClientError>) {
        upload?.close()
        download.end(result)
    }

    func report(_ progress: Request.Progress) { report?(progress) }
    var reportsProgress: Bool { report != nil }
}

/// How other threads reach the loop of a client. After the end of the loop, nothing happens.
struct ClientPort: Sendable {
    private let inbox: Inbox
    private let reference: ClientLoopReference

    init(_ loop: ClientLoop) {
        inbox = loop.loop.inbox
        reference = ClientLoopReference(loop)
    }

    func `do`(_ job: @escaping @Sendable (ClientLoop) -> Void) {
        inbox.post { [reference] in job(reference.value) }
    }
}

/// A reference for jobs in the loop's own inbox. Such a job runs on the loop's thread while the loop lives, or never.
@safe private struct ClientLoopReference: @unchecked Sendable {
    private unowned(unsafe) let reference: ClientLoop
    init(_ loop: ClientLoop) { unsafe reference = loop }
    var value: ClientLoop { unsafe reference }
}
