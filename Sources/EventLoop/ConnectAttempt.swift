import Glibc

/// Why no address could be connected to: the world's fault.
package enum ConnectError: Error, Equatable {
    case refused
    case unreachable
    case timedOut
    case noAddress
    case failed(errno: CInt)

    init(errno code: CInt) {
        switch code {
        case ECONNREFUSED: self = .refused
        case ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT, ENETDOWN, EHOSTDOWN: self = .unreachable
        case ETIMEDOUT: self = .timedOut
        default: self = .failed(errno: code)
        }
    }
}

/// What came of a connection attempt.
package enum ConnectOutcome: ~Copyable {
    /// A connected socket that never blocks, and the address that it leads to.
    case connected(Descriptor, SocketAddress)
    case failed(ConnectError)
}

/// Connecting to one of several addresses, after RFC 8305 §5 (Happy Eyeballs).
///
/// Families alternate. The next address is tried when the one before has had `attemptDelay`, or at once when it
/// failed; the first to connect wins and the others are closed. `done` is called once, never from inside `start`,
/// and not after `cancel`. An attempt keeps itself alive while under way.
package final class ConnectAttempt: TimedObject {
    private let loop: EventLoop
    private let addresses: [SocketAddress]
    private let attemptDelay: Duration
    private var done: ((consuming ConnectOutcome) -> Void)?
    private var keptAlive: ConnectAttempt?
    private var nextIndex = 0
    private var pending: [Try] = []
    private var failure: ConnectError?
    private var stagger = ClockEvent()

    /// One socket on its way.
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

        /// Hands the socket over.
        func release() -> Descriptor {
            guard let owner = owner.take() else { preconditionFailure("a socket is handed over once") }
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
    ///   - attemptDelay: head start of each address before the next; RFC 8305 §8 recommends 250 ms.
    ///   - timeout: for all addresses together.
    ///   - done: gets the connected socket, or why there is none.
    package static func start(
        _ addresses: [SocketAddress], loop: EventLoop, attemptDelay: Duration, timeout: Duration,
        done: @escaping (consuming ConnectOutcome) -> Void
    ) -> ConnectAttempt {
        let attempt = ConnectAttempt(interleaved(addresses), loop, attemptDelay, done)
        attempt.keptAlive = attempt
        attempt.tryNext()
        if attempt.done != nil && !attempt.pending.isEmpty { loop.timers.schedule(attempt, after: timeout) }
        return attempt
    }

    private init(
        _ addresses: [SocketAddress], _ loop: EventLoop, _ attemptDelay: Duration,
        _ done: @escaping (consuming ConnectOutcome) -> Void
    ) {
        self.loop = loop
        self.addresses = addresses
        self.attemptDelay = max(attemptDelay, .milliseconds(10))
        self.done = done
    }

    /// Gives up; `done` is not called.
    package func cancel() {
        done = nil
        end()
    }

    override package func timerFired() { finish(.failed(.timedOut)) }

    /// The addresses with families taking turns, each family in its order, the family of the first one leading (§4).
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

    /// Starts the next address, and those after it while they fail at once.
    private func tryNext() {
        stagger.stop()
        while nextIndex < addresses.count {
            let address = addresses[nextIndex]
            nextIndex += 1
            do {
                switch try Sockets.connect(address) {
                case .connected(let descriptor):
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
                note(error)
            }
        }
        if pending.isEmpty { failAfterTurn() }
    }

    private func startStagger() {
        guard nextIndex < addresses.count else { return }
        unsafe stagger.start(
            loop, after: attemptDelay, .once,
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
            finish(.connected(attempted.release(), attempted.address))
            return
        }
        pending.removeAll { $0 === attempted }
        attempted.writable.clear()
        note(ConnectError(errno: code))
        tryNext()
    }

    // MARK: Endings

    /// What stands in the way of the most promising address is told; an unreachable family is no news.
    private func note(_ error: ConnectError) {
        if failure == nil || failure == .unreachable { failure = error }
    }

    private func note(_ error: SocketError) {
        guard case .failed(_, let code) = error else { return note(.unreachable) }
        note(ConnectError(errno: code))
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

    /// A socket that nobody waits for any more closes with its outcome.
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
