import EventLoop
import Glibc
import Message
import Redis
import Settings
import TLS
import Transport

/// Why a command has no reply.
enum RedisFailure: Error, Equatable {
    /// There is no connection now, or it ended before the reply came.
    case disconnected
    /// The reply did not come in time. The command may have been performed.
    case late
    /// Too many bytes wait to be sent.
    case full
}

/// One connection to Redis: connects, logs in, sends commands as they come, and gives each the reply that belongs to it. When the connection ends it connects again
/// by itself, with growing pauses.
///
/// It belongs to the thread of its loop. Nothing is called back from within `start` and `send`, except `then` of a command that cannot be sent.
@safe final class RedisLink {
    typealias Then = (Result<RedisReply, RedisFailure>) -> Void

    /// What a link tells its owner.
    struct Events {
        /// The server has accepted the log-in. The text is what `INFO server` says; it is empty if the user may not ask.
        var opened: (String) -> Void
        /// The connection has ended, or could not be made: why, for the log.
        var failed: (String) -> Void
    }

    private enum State {
        case closed, connecting, greeting, open
    }

    /// A command whose reply has not come.
    private final class Command {
        let deadline: MonotonicTime
        private var then: Then?

        init(deadline: MonotonicTime, _ then: @escaping Then) {
            self.deadline = deadline
            self.then = then
        }

        var isOver: Bool { then == nil }

        func end(_ result: Result<RedisReply, RedisFailure>) {
            guard let then = then.take() else { return }
            then(result)
        }
    }

    private let terms: FleetTerms
    private let loop: EventLoop
    private let resolver: Resolver
    private var events: Events?
    private var state = State.closed
    private var transport: Transport?
    private var readEvent = IOEvent()
    private var writeEvent = IOEvent()
    private var ticket: ResolverTicket?
    private var attempt: ConnectAttempt?
    private let history = ConnectHistory()
    private var reader = RedisReader()
    private var output: [UInt8] = []
    private var sentBytes = 0
    private var commands: [Command] = []
    /// How many commands at the beginning of `commands` have their replies.
    private var repliedCount = 0
    private var isFlushing = false
    private var pauses = 0
    private var isStopped = false
    private var deadlines: PreciseTimer!
    private var pause: PreciseTimer!
    private let buffer: UnsafeMutableRawBufferPointer

    /// For the name and its addresses together, then for the TLS handshake and the log-in.
    static let connectTimeout = Duration.seconds(2)
    /// A server that leaves a command without a reply for so long beyond its deadline is gone.
    private static let silenceMax = Duration.seconds(2)
    private static let outputBytesMax = 32 << 20
    private static let bufferBytes = 64 << 10

    init(_ terms: FleetTerms, loop: EventLoop, resolver: Resolver) {
        self.terms = terms
        self.loop = loop
        self.resolver = resolver
        unsafe buffer = .allocate(byteCount: RedisLink.bufferBytes, alignment: 16)
        deadlines = PreciseTimer(loop) { [unowned self] in deadlinePassed() }
        pause = PreciseTimer(loop) { [unowned self] in connect() }
    }

    deinit { unsafe buffer.deallocate() }

    var isOpen: Bool { state == .open }

    /// Connects, now and whenever the connection ends.
    func start(_ events: Events) {
        precondition(self.events == nil, "a link starts once")
        self.events = events
        loop.afterTurn { [weak self] in self?.connect() }
    }

    /// Ends the connection for good. Commands without a reply fail.
    func stop() {
        isStopped = true
        pause.stop()
        clear()
    }

    /// Ends the connection because what it says cannot be used, and connects again.
    func reset(because reason: String) { fail(reason) }

    /// The server does what it is here for: the next pause is the shortest again.
    func isOfUse() { pauses = 0 }

    // MARK: connecting

    private func connect() {
        guard !isStopped, state == .closed else { return }
        state = .connecting
        let deadline = loop.now.advanced(by: RedisLink.connectTimeout)
        if let address = IPAddress(strict: terms.url.host.utf8) {
            return connect([SocketAddress(address, port: 0)], by: deadline)
        }
        if let known = resolver.cached(terms.url.host) { return resolved(known, by: deadline) }
        ticket = resolver.resolve(terms.url.host, by: deadline) { [weak self] outcome in
            self?.ticket = nil
            self?.resolved(outcome, by: deadline)
        }
    }

    private func resolved(_ outcome: Resolver.Outcome, by deadline: MonotonicTime) {
        switch outcome {
        case .success(let resolution): connect(resolution.addresses, by: deadline)
        case .failure(let error): fail("its name cannot be resolved: \(error)")
        }
    }

    private func connect(_ addresses: [SocketAddress], by deadline: MonotonicTime) {
        let places = addresses.compactMap { IPAddress($0) }.map { SocketAddress($0, port: terms.url.port) }
        attempt = ConnectAttempt.start(
            places, ConnectOptions(sources: [], device: nil, fastOpen: false, keepAlive: .seconds(30)), loop: loop,
            attemptDelay: .milliseconds(250), by: deadline, history: history
        ) { [weak self] outcome in
            // If the link is gone, the socket in `outcome` closes here.
            guard let self else { return }
            attempt = nil
            switch consume outcome {
            case .connected(let socket, _): connected(socket)
            case .failed(let error): fail("it cannot be connected to: \(error)")
            }
        }
    }

    private func connected(_ socket: consuming Descriptor) {
        Sockets.setNoDelay(socket.rawValue)
        if let tls = terms.tls {
            do throws(TLSContextError) {
                transport = try Transport(securing: socket, with: tls, serverName: terms.url.host)
            } catch { return fail("TLS cannot be used: \(error)") }
        } else {
            transport = Transport(plain: socket)
        }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe transport?.assign(&readEvent, on: loop, .read, { _, _, it in unsafe link(it).isReady() }, context)
        unsafe transport?.assign(&writeEvent, on: loop, .write, { _, _, it in unsafe link(it).isReady() }, context)
        // The handshake and the log-in together take no longer than one command.
        deadlines.start(at: loop.now.advanced(by: RedisLink.connectTimeout))
        shakeHands()
    }

    private func shakeHands() {
        switch transport?.handshake() {
        case .done: greet()
        case .failed(let failure): fail("TLS failed: \(failure)")
        case .wantRead:
            writeEvent.remove()
            readEvent.add()
        case .wantWrite:
            readEvent.remove()
            writeEvent.add()
        case nil: break
        }
    }

    // MARK: log-in

    private func greet() {
        state = .greeting
        readEvent.add()
        writeEvent.remove()
        let wait = RedisLink.connectTimeout
        if let password = terms.password {
            let user = terms.url.user.map { [Array($0.utf8)] } ?? []
            write([word("AUTH")] + user + [password], within: wait) { [weak self] in self?.answered("the log-in", $0) }
        }
        if terms.url.database > 0 {
            write([word("SELECT"), Array("\(terms.url.database)".utf8)], within: wait) { [weak self] in
                self?.answered("the database \(self?.terms.url.database ?? 0)", $0)
            }
        }
        // It is for those who look at the server. It may be forbidden.
        write([word("CLIENT"), word("SETNAME"), Array("larder-\(terms.node)".utf8)], within: wait) { _ in }
        write([word("PING")], within: wait) { [weak self] in self?.answered("PING", $0) }
        write([word("INFO"), word("server")], within: wait) { [weak self] result in
            guard let self, state == .greeting else { return }
            guard case .success(let reply) = result else { return fail("it does not answer") }
            state = .open
            events?.opened(reply.data.map { String(decoding: $0, as: UTF8.self) } ?? "")
        }
    }

    /// Goes on if the server has accepted a step of the log-in.
    private func answered(_ step: String, _ result: Result<RedisReply, RedisFailure>) {
        guard state == .greeting else { return }
        switch result {
        case .success(.error(let text)):
            fail("it refuses \(step): \(String(decoding: text.prefix(200), as: UTF8.self))")
        case .success: break
        case .failure: fail("it does not answer")
        }
    }

    // MARK: commands

    /// Sends a command.
    ///
    /// - Parameters:
    ///   - value: the last argument, if it is long.
    ///   - wait: how long the reply may take.
    ///   - then: called once.
    func send(_ arguments: [[UInt8]], value: [UInt8]? = nil, within wait: Duration, then: @escaping Then) {
        guard state == .open else { return then(.failure(.disconnected)) }
        guard output.count - sentBytes < RedisLink.outputBytesMax else { return then(.failure(.full)) }
        write(arguments, value: value, within: wait, then: then)
    }

    private func write(_ arguments: [[UInt8]], value: [UInt8]? = nil, within wait: Duration, then: @escaping Then) {
        if let value {
            RedisCommand.append(arguments, value: value.span, to: &output)
        } else {
            RedisCommand.append(arguments, to: &output)
        }
        let deadline = loop.now.advanced(by: wait)
        commands.append(Command(deadline: deadline, then))
        if deadlines.deadline.map({ deadline < $0 }) ?? true { deadlines.start(at: deadline) }
        guard !isFlushing else { return }
        // One write for the commands of a turn.
        isFlushing = true
        loop.afterTurn { [weak self] in
            self?.isFlushing = false
            self?.flush()
        }
    }

    private func deadlinePassed() {
        guard state == .open || state == .greeting else { return fail("it does not answer") }
        let now = loop.now
        var next: MonotonicTime?
        // A callback may send another command, which starts the timer for itself.
        for command in commands[repliedCount...] {
            if command.deadline <= now { command.end(.failure(.late)) }
            // The callback may have ended the connection.
            guard state != .closed else { return }
            let due = command.isOver ? command.deadline.advanced(by: RedisLink.silenceMax) : command.deadline
            guard due > now else { return fail("it does not answer") }
            next = min(next ?? due, due)
        }
        if let next, deadlines.deadline.map({ next < $0 }) ?? true { deadlines.start(at: next) }
    }

    // MARK: bytes

    private func isReady() {
        guard state != .connecting else { return shakeHands() }
        receive()
        if state != .closed { flush() }
    }

    private func flush() {
        guard state == .greeting || state == .open else { return }
        while sentBytes < output.count {
            let result = unsafe output.withUnsafeBytes {
                unsafe transport?.write(UnsafeRawBufferPointer(rebasing: $0[sentBytes...])) ?? .closed
            }
            switch result {
            case .bytes(let count): sentBytes += count
            case .wouldBlock: return watch()
            case .closed: return fail("it has closed the connection")
            case .failed(let code): return fail("the connection failed: \(systemErrorText(code))")
            }
        }
        output.removeAll(keepingCapacity: output.capacity <= 1 << 20)
        sentBytes = 0
        watch()
    }

    private func receive() {
        while state == .greeting || state == .open {
            switch unsafe transport?.read(into: buffer) ?? .closed {
            case .bytes(0), .closed: return fail("it has closed the connection")
            case .bytes(let count):
                unsafe reader.feed(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                guard deliver() else { return }
                if count < RedisLink.bufferBytes, transport?.mustBeDrained != true { return watch() }
            case .wouldBlock: return watch()
            case .failed(let code): return fail("the connection failed: \(systemErrorText(code))")
            }
        }
    }

    /// Gives the replies that have come to their commands. Returns false if the connection has ended.
    private func deliver() -> Bool {
        do throws(RedisProtocolError) {
            while let reply = try reader.next() {
                guard repliedCount < commands.count else {
                    fail("it sent a reply that no command asked for")
                    return false
                }
                let command = commands[repliedCount]
                repliedCount += 1
                if repliedCount == commands.count || repliedCount >= 256 {
                    commands.removeFirst(repliedCount)
                    repliedCount = 0
                }
                command.end(.success(reply))
                guard state != .closed else { return false }
            }
            return true
        } catch {
            fail("\(error)")
            return false
        }
    }

    private func watch() {
        guard state != .closed, transport != nil else { return }
        let writes = sentBytes < output.count
        transport?.wait(&readEvent, &writeEvent, toRead: true, toWrite: writes)
    }

    // MARK: the end

    private func fail(_ reason: String) {
        guard state != .closed else { return }
        clear()
        guard !isStopped else { return }
        events?.failed(reason)
        pauses = min(pauses + 1, 7)
        // From 100 ms to 10 s, and up to half of it more: the nodes of a fleet do not come back all at once.
        let milliseconds = min(100 << (pauses - 1), 10_000)
        pause.start(
            at: loop.now.advanced(by: .milliseconds(milliseconds + Int.random(in: 0...milliseconds / 2))))
    }

    private func clear() {
        state = .closed
        ticket?.cancel()
        ticket = nil
        attempt?.cancel()
        attempt = nil
        deadlines.stop()
        readEvent.clear()
        writeEvent.clear()
        transport = nil
        reader = RedisReader()
        output = []
        sentBytes = 0
        let left = commands[repliedCount...]
        commands = []
        repliedCount = 0
        for command in left { command.end(.failure(.disconnected)) }
    }

    private func word(_ text: StaticString) -> [UInt8] { redisWord(text) }
}

private func link(_ context: UnsafeMutableRawPointer?) -> RedisLink {
    unsafe Unmanaged<RedisLink>.fromOpaque(context!).takeUnretainedValue()
}

/// A word of a command.
func redisWord(_ text: StaticString) -> [UInt8] { Array("\(text)".utf8) }
