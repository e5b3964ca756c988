import EventLoop
import TLS
import Transaction

/// The TLS handshake with an origin, between connect and the first request.
final class Handshake: TimedObject {
    /// Who waits; nil when it left.
    var fetch: Fetch?
    private let worker: Worker
    private var transport: Transport?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    private let done: (Handshake, Refusal?) -> Void

    /// - Parameter done: called once, with nil when the transport is ready to be taken.
    init(worker: Worker, transport: consuming Transport, done: @escaping (Handshake, Refusal?) -> Void) {
        self.worker = worker
        self.done = done
        self.transport = consume transport
        super.init()
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe self.transport!.assign(
            &readEvent, on: worker.loop, .read, { _, _, context in unsafe handshake(context).step() }, context)
        unsafe self.transport!.assign(
            &writeEvent, on: worker.loop, .write, { _, _, context in unsafe handshake(context).step() }, context)
    }

    func start(timeout: Duration) {
        worker.loop.timers.schedule(self, after: timeout)
        step()
    }

    private func step() {
        switch transport?.handshake() {
        case .done: finish(nil)
        case .wantRead:
            writeEvent.remove()
            readEvent.add()
        case .wantWrite:
            readEvent.remove()
            writeEvent.add()
        case .failed(let failure): finish(Refusal(failure))
        case nil: return
        }
    }

    /// The transport, once the handshake is done.
    func takeTransport() -> Transport {
        guard let transport = transport.take() else { preconditionFailure("a transport is taken once") }
        return transport
    }

    /// The worker ends.
    func abandon() { finish(.connectionTerminated) }

    override func timerFired() { finish(.connectionTimeout) }

    private func finish(_ refusal: Refusal?) {
        readEvent.clear()
        writeEvent.clear()
        worker.loop.timers.cancel(self)
        if refusal != nil { transport = nil }
        done(self, refusal)
    }
}

private func handshake(_ context: UnsafeMutableRawPointer?) -> Handshake {
    unsafe Unmanaged<Handshake>.fromOpaque(context!).takeUnretainedValue()
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
