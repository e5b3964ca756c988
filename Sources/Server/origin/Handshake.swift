import EventLoop
import Glibc
import Message
import TLS
import Transaction

/// The TLS handshake with an origin, between connect and the first request.
final class Handshake: TimedObject {
    /// Who waits; nil when it left.
    var fetch: Fetch?
    private let worker: Worker
    private let fd: CInt
    private var session: TLSSession?
    private var event = IOEvent()
    private var direction: Readiness = .read
    private let done: (Handshake, Result<TLSSession, Refusal>) -> Void
    private let make: () throws(TLSContextError) -> TLSSession

    init(
        worker: Worker, fd: CInt, context: TLSClientContext, serverName: String,
        done: @escaping (Handshake, Result<TLSSession, Refusal>) -> Void
    ) {
        self.worker = worker
        self.fd = fd
        self.done = done
        make = { () throws(TLSContextError) in try TLSSession(context, fd: fd, serverName: serverName) }
    }

    func start(timeout: Duration) {
        do {
            session = try make()
        } catch {
            return finish(.failure(.internalError))
        }
        worker.loop.timers.schedule(self, after: timeout)
        step()
    }

    private func step() {
        guard let session else { return }
        switch session.handshake() {
        case .done: finish(.success(session))
        case .wantRead: wait(for: .read)
        case .wantWrite: wait(for: .write)
        case .failed(let failure): finish(.failure(Refusal(failure)))
        }
    }

    private func wait(for readiness: Readiness) {
        if event.isAdded && direction == readiness { return }
        event.clear()
        direction = readiness
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe event.assign(
            worker.loop, fd: fd, readiness,
            { _, _, context in
                unsafe Unmanaged<Handshake>.fromOpaque(context!).takeUnretainedValue().step()
            }, context)
        event.add()
    }

    /// The worker ends.
    func abandon() { finish(.failure(.connectionTerminated)) }

    override func timerFired() { finish(.failure(.connectionTimeout)) }

    private func finish(_ result: Result<TLSSession, Refusal>) {
        event.clear()
        worker.loop.timers.cancel(self)
        done(self, result)
    }
}

extension Refusal {
    init(_ failure: TLSFailure) {
        switch failure {
        case .certificate: self = .tlsCertificate
        case .protocolError, .alertReceived: self = .tlsProtocol
        case .truncated, .connectionFailed: self = .connectionTerminated
        }
    }
}
