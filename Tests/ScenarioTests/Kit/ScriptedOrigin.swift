import EventLoop
import Foundation
import Synchronization

/// One request the origin waits for, and what it does then.
final class Expectation: Sendable {
    fileprivate enum Step: Sendable {
        case send([UInt8])
        case wait(Gate)
        case open(Gate)
        case readBody
        case close, reset, hang
        /// Sends this again and again until the other side has left; then the gate opens.
        case stream([UInt8], Gate)
        /// The connection is no longer HTTP: what comes is sent back, until the end.
        case echo
    }
    fileprivate let startLine: String
    fileprivate let conditions: [String]
    fileprivate let steps = Locked<[Step]>([])
    fileprivate let isUsed = Atomic<Bool>(false)

    fileprivate init(_ startLine: String, _ conditions: [String]) {
        self.startLine = startLine
        self.conditions = conditions
    }

    private func add(_ step: Step) -> Expectation {
        steps.withLock { $0.append(step) }
        return self
    }

    /// A whole response. `Content-Length` is added where no framing is given and the status has content.
    @discardableResult func replies(_ status: Int, _ fields: String..., body: String = "") -> Expectation {
        replies(status, fields, Array(body.utf8))
    }

    @discardableResult func replies(_ status: Int, _ fields: [String], _ body: [UInt8]) -> Expectation {
        var lines = fields
        let isFramed = fields.contains {
            $0.lowercased().hasPrefix("content-length:") || $0.lowercased().hasPrefix("transfer-encoding:")
        }
        if !isFramed && status >= 200 && status != 204 && status != 304 {
            lines.append("Content-Length: \(body.count)")
        }
        let head = "HTTP/1.1 \(status) Scripted\r\n" + lines.map { "\($0)\r\n" }.joined() + "\r\n"
        return add(.send(Array(head.utf8) + body))
    }

    @discardableResult func sends(_ text: String) -> Expectation { add(.send(Array(text.utf8))) }
    @discardableResult func sends(_ bytes: [UInt8]) -> Expectation { add(.send(bytes)) }
    @discardableResult func waits(for gate: Gate) -> Expectation { add(.wait(gate)) }
    @discardableResult func opens(_ gate: Gate) -> Expectation { add(.open(gate)) }
    /// Where the body of the request is read; without it, before the first step.
    @discardableResult func readsBody() -> Expectation { add(.readBody) }
    @discardableResult func closes() -> Expectation { add(.close) }
    @discardableResult func resets() -> Expectation { add(.reset) }
    /// Does nothing until the other side leaves.
    @discardableResult func hangs() -> Expectation { add(.hang) }
    /// Until the other side has ended or reset the connection.
    @discardableResult func echoes() -> Expectation { add(.echo) }
    /// Never comes to an end by itself: the same bytes again and again, until the other side has left.
    @discardableResult func streams(_ text: String, untilGone gate: Gate) -> Expectation {
        add(.stream(Array(text.utf8), gate))
    }
}

/// A server that does what its script says, on a port the kernel chose, each connection on a thread of its own.
///
/// A request takes the first unused expectation with its method and target. Conditions are field lines: `Name: value`
/// must be there so, `Name` must be there, `!Name` must not. What does not go by the script is a problem; the scenario
/// fails with all of them.
final class ScriptedOrigin: Sendable {
    let port: UInt16
    private let listener: CInt
    private let state = Locked(State())

    struct Received: Sendable {
        var message: SeenMessage
        var connection: Int
        subscript(_ name: String) -> String? { message[name] }
    }

    private struct State {
        var expectations: [Expectation] = []
        var received: [Received] = []
        var problems: [String] = []
        var wires: [Wire] = []
        var peers: [String] = []
        var isEnding = false
    }

    init() throws {
        let socket = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: 0), reusePort: false, backlog: 512)
        port = try Sockets.localAddress(socket.rawValue).port
        listener = socket.release()
        Thread.detachNewThread { [self] in accept() }
    }

    var authority: String { "127.0.0.1:\(port)" }
    func url(_ path: String) -> String { "http://\(authority)\(path)" }

    /// - Parameter startLine: method and target, such as `GET /a`.
    func expects(_ startLine: String, _ conditions: String...) -> Expectation {
        let expectation = Expectation(startLine, conditions)
        state.withLock { $0.expectations.append(expectation) }
        return expectation
    }

    var requests: [Received] { state.withLock { $0.received } }
    /// The address of the other side of each connection.
    var peers: [String] { state.withLock { $0.peers } }
    var connectionCount: Int { state.withLock { $0.wires.count } }

    /// What did not go by the script, expectations that nobody met among it.
    ///
    /// Waits while an expectation is not met: a request may have been sent that no thread of the origin has read yet.
    func problems() -> [String] {
        let deadline = Date(timeIntervalSinceNow: Double(patience) / 1000)
        while !unmet.isEmpty, state.withLock({ $0.problems.isEmpty }), Date() < deadline { usleep(500) }
        return state.withLock { $0.problems } + unmet.map { "nobody asked the origin for \($0.startLine)" }
    }

    private var unmet: [Expectation] {
        state.withLock { $0.expectations.filter { !$0.isUsed.load(ordering: .acquiring) } }
    }

    func end() {
        let wires: [Wire]? = state.withLock { state in
            // The second time the listener's number may be somebody else's.
            guard !state.isEnding else { return nil }
            state.isEnding = true
            defer { state.wires = [] }
            return state.wires
        }
        guard let wires else { return }
        _ = shutdown(listener, CInt(SHUT_RDWR))
        for wire in wires { wire.hangUp() }
    }

    private var isEnding: Bool { state.withLock { $0.isEnding } }

    private func accept() {
        defer { close(listener) }
        while !isEnding {
            var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            if unsafe poll(&entry, 1, -1) < 0, errno == EINTR { continue }
            guard entry.revents & Int16(POLLHUP) == 0 else { return }
            guard case .accepted(let descriptor, let peer) = Sockets.accept(listener) else { continue }
            let wire = Wire(adopting: descriptor.release(), "origin")
            let number = state.withLock { state in
                state.wires.append(wire)
                state.peers.append("\(peer)")
                return state.wires.count
            }
            Thread.detachNewThread { [self] in serve(wire, number) }
        }
    }

    private func serve(_ wire: Wire, _ number: Int) {
        defer { wire.hangUp() }
        let reader = HTTPReader(wire)
        do {
            while let head = try idleHead(reader) {
                guard try answer(head, reader, wire, number) else { return }
            }
        } catch {
            if !isEnding { state.withLock { $0.problems.append("\(error)") } }
        }
    }

    /// Waits for a request as long as the scenario lasts: an idle pooled connection is no problem.
    private func idleHead(_ reader: HTTPReader) throws -> SeenHead? {
        while true {
            var entry = pollfd(fd: reader.wire.fd, events: Int16(POLLIN), revents: 0)
            if unsafe poll(&entry, 1, 60_000) > 0 { break }
            if isEnding { return nil }
        }
        do { return try reader.head() } catch {
            // A connection that is given up between two requests.
            if "\(error)".contains("read:") { return nil }
            throw error
        }
    }

    /// - Returns: the connection goes on.
    private func answer(_ head: SeenHead, _ reader: HTTPReader, _ wire: Wire, _ number: Int) throws -> Bool {
        let expectation = take(head)
        var message = SeenMessage(head: head)
        let steps = expectation?.steps.withLock { $0 } ?? []
        let readsBodyLater = steps.contains { if case .readBody = $0 { true } else { false } }
        if !readsBodyLater { try reader.body(of: &message, untilClose: false) }
        let index = state.withLock { state in
            state.received.append(Received(message: message, connection: number))
            return state.received.count - 1
        }
        guard expectation != nil else {
            try wire.write(Array("HTTP/1.1 599 Unexpected\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8))
            return false
        }
        for step in steps {
            switch step {
            case .send(let bytes): try wire.write(bytes)
            case .wait(let gate): try gate.wait()
            case .open(let gate): gate.open()
            case .readBody:
                try reader.body(of: &message, untilClose: false)
                state.withLock { [message] in $0.received[index].message = message }
            case .close: return false
            case .reset:
                wire.reset()
                return false
            case .hang:
                do { while try !wire.read().isEmpty {} } catch {
                    // The other side may leave with a reset.
                    guard "\(error)".contains("read:") else { throw error }
                }
                return false
            case .stream(let bytes, let gate):
                try stream(bytes, to: wire, gate)
                return false
            case .echo:
                do {
                    while case let bytes = try reader.some(), !bytes.isEmpty { try wire.write(bytes) }
                } catch {
                    // A tunnel that is cut is reset, before or after its bytes have been read here.
                    guard "\(error)".contains("reset") || "\(error)".contains("Broken pipe") else { throw error }
                    return false
                }
                wire.finishWriting()
                return false
            }
        }
        return true
    }

    private func stream(_ bytes: [UInt8], to wire: Wire, _ gate: Gate) throws {
        let deadline = Date(timeIntervalSinceNow: Double(patience) / 1000)
        while Date() < deadline {
            do { try wire.write(bytes) } catch {
                guard "\(error)".contains("write:") else { throw error }
                return gate.open()
            }
        }
        throw WireError("origin: what has no end was still being read")
    }

    private func take(_ head: SeenHead) -> Expectation? {
        state.withLock { state in
            let wanted = head.startLine.split(separator: " ").prefix(2).joined(separator: " ")
            guard
                let found = state.expectations.first(where: {
                    $0.startLine == wanted && !$0.isUsed.load(ordering: .acquiring)
                })
            else {
                state.problems.append("unexpected request:\n\(head)")
                return nil
            }
            found.isUsed.store(true, ordering: .releasing)
            for condition in found.conditions where !meets(head, condition) {
                state.problems.append("the request should meet “\(condition)”:\n\(head)")
            }
            return found
        }
    }

    private func meets(_ head: SeenHead, _ condition: String) -> Bool {
        if condition.hasPrefix("!") { return head.all(String(condition.dropFirst())).isEmpty }
        if condition.contains(":") { return head.lines.contains(condition) }
        return !head.all(condition).isEmpty
    }
}
