import Glibc

/// Why no address could be connected to.
package enum ConnectError: Error, Equatable, CustomStringConvertible {
    case refused
    case unreachable
    case timedOut
    case noAddress
    case failed(errno: CInt)

    package var description: String {
        switch self {
        case .refused: "the connection is refused"
        case .unreachable: "there is no route to it"
        case .timedOut: "it has not answered in time"
        case .noAddress: "it has no address"
        case .failed(let code): systemErrorText(code)
        }
    }

    init(errno code: CInt) {
        switch code {
        case ECONNREFUSED: self = .refused
        case ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT, ENETDOWN, EHOSTDOWN: self = .unreachable
        case ETIMEDOUT: self = .timedOut
        default: self = .failed(errno: code)
        }
    }

    fileprivate var kind: FailedAddresses.Failure {
        switch self {
        case .refused, .failed: .refused
        case .unreachable, .timedOut, .noAddress: .silent
        }
    }
}

/// The result of a connection attempt.
package enum ConnectOutcome: ~Copyable {
    /// A connected, non-blocking socket, and the address of its peer.
    case connected(Descriptor, SocketAddress)
    case failed(ConnectError)
}

/// Connects to one of several addresses, as in RFC 8305 §5 (Happy Eyeballs).
///
/// Families alternate. The next address is tried `attemptDelay` after the one before, or as soon as that one failed. The first that
/// connects wins, and the other sockets are closed. Addresses that failed lately (`FailedAddresses`) are tried last. `done` is called
/// once, never from within `start`, and not after `cancel`. An attempt retains itself until then.
package final class ConnectAttempt: TimedObject {
    private let loop: EventLoop
    private let addresses: [SocketAddress]
    private let options: ConnectOptions
    private let attemptDelay: Duration
    private let history: ConnectHistory
    private var done: ((consuming ConnectOutcome) -> Void)?
    private var keptAlive: ConnectAttempt?
    private var nextIndex = 0
    private var pending: [Try] = []
    private var failure: ConnectError?
    private var stagger = ClockEvent()

    /// One socket that is connecting.
    private final class Try {
        let address: SocketAddress
        private var owner: Descriptor?
        let fd: CInt
        var writable = IOEvent()
        private unowned let attempt: ConnectAttempt

        init(_ address: SocketAddress, _ descriptor: consuming Descriptor, _ attempt: ConnectAttempt) {
            self.address = address
            fd = descriptor.rawValue
            owner = consume descriptor
            self.attempt = attempt
        }

        /// Gives the socket to the caller.
        func release() -> Descriptor {
            guard let owner = owner.take() else { preconditionFailure("the socket was given away before") }
            return owner
        }

        func watch(_ loop: EventLoop) {
            unsafe writable.assign(
                loop, fd: fd, .write,
                { _, _, context in
                    let this = unsafe Unmanaged<Try>.fromOpaque(context!).takeUnretainedValue()
                    this.attempt.decided(this)
                }, Unmanaged.passUnretained(self).toOpaque())
            writable.add()
        }
    }

    /// - Parameters:
    ///   - options: of the sockets. An address whose family has none of `sources` must not be among `addresses`.
    ///   - attemptDelay: how long each address is tried before the next one; RFC 8305 §8 recommends 250 ms.
    ///   - deadline: when all addresses together have failed. If they come from a name, it is the deadline of its look-up: one limit bounds both.
    ///   - history: which addresses failed lately. The attempt adds to it.
    ///   - done: gets the connected socket, or the reason why there is none.
    package static func start(
        _ addresses: [SocketAddress], _ options: ConnectOptions = ConnectOptions(), loop: EventLoop,
        attemptDelay: Duration, by deadline: MonotonicTime,
        history: ConnectHistory, done: @escaping (consuming ConnectOutcome) -> Void
    ) -> ConnectAttempt {
        let ordered = history.failed.ordered(interleaved(addresses), at: loop.now)
        let attempt = ConnectAttempt(ordered, options, loop, attemptDelay, history, done)
        attempt.keptAlive = attempt
        attempt.tryNext()
        if attempt.done != nil && !attempt.pending.isEmpty { loop.timers.schedule(attempt, at: deadline) }
        return attempt
    }

    private init(
        _ addresses: [SocketAddress], _ options: ConnectOptions, _ loop: EventLoop, _ attemptDelay: Duration,
        _ history: ConnectHistory,
        _ done: @escaping (consuming ConnectOutcome) -> Void
    ) {
        self.loop = loop
        self.addresses = addresses
        self.options = options
        self.attemptDelay = max(attemptDelay, .milliseconds(10))
        self.history = history
        self.done = done
    }

    /// Closes all sockets. `done` is not called.
    package func cancel() {
        done = nil
        end()
    }

    override package func timerFired() {
        for silent in pending { history.failed.note(.silent, of: silent.address, at: loop.now) }
        finish(.failed(.timedOut))
    }

    /// The addresses with alternating families, beginning with the family of the first one. Within a family the order stays (§4).
    static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        let leading = addresses.filter { $0.family == first.family }
        let other = addresses.filter { $0.family != first.family }
        guard !other.isEmpty else { return addresses }
        var result: [SocketAddress] = []
        for index in 0..<max(leading.count, other.count) {
            if index < leading.count { result.append(leading[index]) }
            if index < other.count { result.append(other[index]) }
        }
        return result
    }

    /// Starts the next address, and the ones after it as long as they fail at once.
    private func tryNext() {
        stagger.stop()
        while nextIndex < addresses.count {
            let address = addresses[nextIndex]
            nextIndex += 1
            do {
                switch try Sockets.connect(address, options) {
                case .connected(let descriptor):
                    noteSuccess(of: address)
                    finishAfterTurn(descriptor, address)
                    return
                case .inProgress(let descriptor):
                    let started = Try(address, descriptor, self)
                    started.watch(loop)
                    pending.append(started)
                    startStagger()
                    return
                }
            } catch {
                note(error, of: address)
            }
        }
        if pending.isEmpty { failAfterTurn() }
    }

    private func startStagger() {
        guard nextIndex < addresses.count else { return }
        unsafe stagger.start(
            loop, after: attemptDelay,
            { _, _, context in
                let attempt = unsafe Unmanaged<ConnectAttempt>.fromOpaque(context!).takeUnretainedValue()
                attempt.stagger.hasFired()
                attempt.tryNext()
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func decided(_ attempted: Try) {
        let code = Sockets.pendingError(attempted.fd)
        guard code != 0 else {
            attempted.writable.clear()
            noteSuccess(of: attempted.address)
            finish(.connected(attempted.release(), attempted.address))
            return
        }
        pending.removeAll { $0 === attempted }
        attempted.writable.clear()
        note(ConnectError(errno: code), of: attempted.address)
        tryNext()
    }

    // MARK: The history

    /// The addresses that had the start of this one and are still pending count as failed: each has cost an `attemptDelay`.
    private func noteSuccess(of address: SocketAddress) {
        for slower in pending.prefix(while: { $0.address != address }) {
            history.failed.note(.silent, of: slower.address, at: loop.now)
        }
        history.failed.noteSuccess(of: address)
    }

    // MARK: Endings

    /// Reports the error of the most promising address. That a family is unreachable says little.
    private func note(_ error: ConnectError, of address: SocketAddress) {
        history.failed.note(error.kind, of: address, at: loop.now)
        if failure == nil || failure == .unreachable { failure = error }
    }

    private func note(_ error: SocketError, of address: SocketAddress) {
        guard case .failed(let call, let code) = error else { return note(ConnectError.unreachable, of: address) }
        // A descriptor, memory or an own address that this machine lacks says nothing about the other one.
        guard call != .bind, call != .option, code != EMFILE, code != ENFILE, code != ENOBUFS, code != ENOMEM else {
            if failure == nil || failure == .unreachable { failure = ConnectError(errno: code) }
            return
        }
        note(ConnectError(errno: code), of: address)
    }

    private func finishAfterTurn(_ descriptor: consuming Descriptor, _ address: SocketAddress) {
        let winner = Try(address, descriptor, self)
        closePending()
        pending = [winner]
        loop.afterTurn { [self] in
            guard done != nil else { return }
            finish(.connected(winner.release(), address))
        }
    }

    private func failAfterTurn() {
        let error = failure ?? .noAddress
        loop.afterTurn { [self] in finish(.failed(error)) }
    }

    /// Calls `done`. If nobody takes the socket out of the outcome, it closes.
    private func finish(_ outcome: consuming ConnectOutcome) {
        guard let done else { return }
        self.done = nil
        end()
        done(outcome)
    }

    private func end() {
        loop.timers.cancel(self)
        stagger.stop()
        closePending()
        keptAlive = nil
    }

    private func closePending() {
        for other in pending { other.writable.clear() }
        pending = []
    }
}
