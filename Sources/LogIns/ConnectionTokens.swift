package import Credentials
package import EventLoop
import Kerberos
import Message

/// What makes the tokens of a log-in that belongs to a connection.
package enum TokenMeans: Sendable {
    case ntlm(NTLMCredential)
    case negotiate(NegotiateIdentity)
}

/// Makes the tokens of one log-in on one connection, NTLM or Negotiate (RFC 4559), as `ConnectionLogIn` asks for them. A log-in that begins anew needs
/// another one.
///
/// NTLM computes its messages at once. Negotiate may have to ask a key distribution center, which happens on other threads (`TicketShelf`).
///
/// A closure that is passed in is called once, on the thread of the loop, in a later turn. It is not called after `cancel`, nor if the object has been
/// released. One request at a time.
package final class ConnectionTokens: TimedObject {
    typealias Completion<Value> = (Result<Value, TokenFailure>) -> Void

    private enum Method {
        case ntlm(NTLMLogIn)
        case negotiate(NegotiateLogIn)
    }
    private enum State {
        case idle
        /// - Parameter number: of the desk. Nil if no other thread works.
        case working(number: UInt64?, Completion<[UInt8]>)
        case cancelled
    }
    private var method: Method
    private let desk: TokenDesk
    private let timeout: Duration
    private var state = State.idle

    /// How long a token may take. What hangs then goes on hanging, on a thread of its own.
    static let timeout: Duration = .seconds(10)

    /// - Parameters:
    ///   - host: of the server that is logged in to, as the configuration or the request names it.
    ///   - endPointHash: of the connection (`Transport.endPointHash`). Nil without TLS between Larder and that server.
    init(
        _ means: TokenMeans, host: String, endPointHash: [UInt8]?, desk: TokenDesk,
        timeout: Duration = ConnectionTokens.timeout
    ) {
        switch means {
        case .ntlm(let credential):
            method = .ntlm(NTLMLogIn(credential, NTLMCredential.Binding(host: host, endPoint: endPointHash)))
        case .negotiate(let identity):
            let bindings = endPointHash.map { Array("tls-server-end-point:".utf8) + $0 }
            method = .negotiate(NegotiateLogIn(identity, host: host, channelBindings: bindings))
        }
        self.desk = desk
        self.timeout = timeout
    }

    deinit { cancel() }

    /// What calls back.
    var loop: EventLoop { desk.loop }

    /// Makes the next token.
    ///
    /// - Parameters:
    ///   - received: the token of the server. Nil at first.
    ///   - then: gets the token, which is empty if nothing is left to say.
    func make(received: [UInt8]?, then: @escaping Completion<[UInt8]>) {
        switch method {
        case .ntlm(var logIn):
            let result = logIn.next(received, at: desk.wallTime)
            method = .ntlm(logIn)
            finishLater(result, then)
        case .negotiate(let logIn):
            perform(logIn, { tickets, asked in logIn.next(received, tickets, asked) }, then)
        }
    }

    /// Examines the last token of the server, which came with its acceptance: with it the server proves that it knows the key of its service. NTLM has
    /// no such token, and ignores one.
    func verify(_ proof: [UInt8], then: @escaping Completion<Void>) {
        let completion: Completion<[UInt8]> = { then($0.map { _ in }) }
        switch method {
        case .ntlm: finishLater(.success([]), completion)
        case .negotiate(let logIn): perform(logIn, { _, _ in logIn.verify(proof) }, completion)
        }
    }

    func cancel() {
        if case .working(let number?, _) = state { desk.cancel(number) }
        state = .cancelled
        desk.loop.timers.cancel(self)
    }

    private func perform(
        _ logIn: NegotiateLogIn,
        _ work: @escaping @Sendable (TicketShelf, TicketShelf.Asked) -> Result<[UInt8], TokenFailure>,
        _ then: @escaping Completion<[UInt8]>
    ) {
        guard
            let number = desk.perform(for: logIn.identity, work, then: { [unowned self] result in finish(result) })
        else { return finishLater(.failure(.overloaded), then) }
        begin(number, then)
        desk.loop.timers.schedule(self, after: timeout)
    }

    package override func timerFired() {
        guard case .working(let number?, _) = state else { return }
        desk.cancel(number)
        finish(.failure(.timedOut))
    }

    private func finishLater(_ result: Result<[UInt8], TokenFailure>, _ then: @escaping Completion<[UInt8]>) {
        begin(nil, then)
        desk.loop.afterTurn { [weak self] in self?.finish(result) }
    }

    private func begin(_ number: UInt64?, _ then: @escaping Completion<[UInt8]>) {
        guard case .idle = state else { preconditionFailure("one token at a time, and none after the end") }
        state = .working(number: number, then)
    }

    private func finish(_ result: Result<[UInt8], TokenFailure>) {
        // Cancelled in the meantime.
        guard case .working(_, let then) = state else { return }
        state = .idle
        desk.loop.timers.cancel(self)
        then(result)
    }
}

/// The messages of NTLM: two of the client.
private struct NTLMLogIn {
    private enum State { case ready, negotiated, over }
    private let credential: NTLMCredential
    private let binding: NTLMCredential.Binding
    private var state = State.ready

    init(_ credential: NTLMCredential, _ binding: NTLMCredential.Binding) {
        self.credential = credential
        self.binding = binding
    }

    mutating func next(_ received: [UInt8]?, at time: WallTime) -> Result<[UInt8], TokenFailure> {
        switch (state, received) {
        case (.ready, nil):
            state = .negotiated
            return .success(NTLMCredential.negotiate)
        case (.negotiated, let received?):
            state = .over
            do throws(NTLMFault) {
                let challenge = try NTLMChallenge(received)
                return .success(
                    try credential.authenticate(
                        challenge, binding, clientChallenge: randomBytes(8), at: time, using: OpenSSLHashing()))
            } catch { return .failure(.ntlm(error)) }
        case (.over, _): return .failure(.outOfOrder)
        case (.ready, .some), (.negotiated, nil): preconditionFailure("the first message has no answer before it")
        }
    }
}

/// The messages of Negotiate, made where calls may block: one at a time, by one thread after the other.
private final class NegotiateLogIn: Sendable {
    private struct State {
        var context: SecurityContext?
        var isComplete = false
    }
    let identity: NegotiateIdentity
    private let host: String
    private let channelBindings: [UInt8]?
    /// Held for as long as a call takes: nobody else wants it then.
    private let state = Locked(State())

    init(_ identity: NegotiateIdentity, host: String, channelBindings: [UInt8]?) {
        self.identity = identity
        self.host = host
        self.channelBindings = channelBindings
    }

    func next(
        _ received: [UInt8]?, _ tickets: TicketShelf, _ asked: TicketShelf.Asked
    ) -> Result<[UInt8], TokenFailure> {
        state.withLock { state in
            do throws(GSSAPIFailure) {
                guard let received else { return .success(try begin(&state, tickets, asked)) }
                guard !state.isComplete else { return .failure(.outOfOrder) }
                return .success(try step(&state, received))
            } catch { return .failure(.kerberos(error)) }
        }
    }

    func verify(_ proof: [UInt8]) -> Result<[UInt8], TokenFailure> {
        state.withLock { state in
            // The server has proven itself in an earlier message.
            guard !state.isComplete else { return .success([]) }
            do throws(GSSAPIFailure) {
                _ = try step(&state, proof)
                return state.isComplete ? .success([]) : .failure(.unproven)
            } catch { return .failure(.kerberos(error)) }
        }
    }

    private func begin(
        _ state: inout State, _ tickets: TicketShelf, _ asked: TicketShelf.Asked
    ) throws(GSSAPIFailure) -> [UInt8] {
        precondition(state.context == nil, "a log-in begins once")
        let ticket = try tickets.ticket(for: identity, asked)
        do throws(GSSAPIFailure) {
            state.context = try SecurityContext(
                service: identity.service, host: host, ticket, channelBindings: channelBindings)
            return try step(&state, nil)
        } catch {
            tickets.forget(ticket, of: identity)
            throw error
        }
    }

    private func step(_ state: inout State, _ received: [UInt8]?) throws(GSSAPIFailure) -> [UInt8] {
        guard let context = state.context else { preconditionFailure("a log-in begins with a token of its own") }
        let (token, isComplete) = try context.step(received)
        state.isComplete = isComplete
        return token
    }
}
