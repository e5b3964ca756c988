package import Credentials
import Framing
import Message

/// What follows from the bytes of a next proxy that has been asked for a tunnel.
package enum DialogueStep: Equatable, Sendable {
    /// Wait for more bytes.
    case wait
    case send([UInt8])
    /// The tunnel is open. These bytes came through it already.
    case open(unread: [UInt8])
    /// The proxy asks for credentials. `persists`: its connection can carry the answer.
    case challenged([Challenge], persists: Bool)
    case fail(NextProxyFailure)
    /// The connection ended too early.
    case closed
}

/// Asking a SOCKS5 proxy for a connection (RFC 1928), with a user and a password if it wants them (RFC 1929).
///
/// ```
/// choosing a method ─▶ [logging in] ─▶ requesting ─▶ open
/// ```
package struct SocksDialogue: Sendable {
    private enum State { case choosing, loggingIn, requesting, ended }
    private var state = State.choosing
    private var received: [UInt8] = []
    private let destination: Endpoint
    private let logIn: ProxyLogIn?

    private static let version: UInt8 = 5
    private enum Authentication {
        static let none: UInt8 = 0
        static let password: UInt8 = 2
    }

    package init(to destination: Endpoint, logIn: ProxyLogIn?) {
        self.destination = destination
        self.logIn = logIn
    }

    /// The first bytes: the methods on offer (RFC 1928 §3).
    package func begin() -> [UInt8] {
        logIn == nil
            ? [SocksDialogue.version, 1, Authentication.none]
            : [SocksDialogue.version, 2, Authentication.none, Authentication.password]
    }

    package mutating func on(_ bytes: [UInt8]) -> DialogueStep {
        received += bytes
        switch state {
        case .choosing: return choose()
        case .loggingIn: return finishLogIn()
        case .requesting: return finish()
        case .ended: preconditionFailure("the dialogue has ended")
        }
    }

    private mutating func choose() -> DialogueStep {
        guard received.first ?? SocksDialogue.version == SocksDialogue.version else { return fail(.unintelligible) }
        guard let answer = take(2) else { return .wait }
        // A server that says more than was asked for is out of step.
        guard received.isEmpty else { return fail(.unintelligible) }
        switch (answer[1], logIn) {
        case (Authentication.none, _): return request()
        case (Authentication.password, let logIn?):
            state = .loggingIn
            return .send(
                [1, UInt8(logIn.user.count)] + logIn.user + [UInt8(logIn.password.count)] + logIn.password)
        case (0xFF, _): return fail(.logIn)
        default: return fail(.unintelligible)
        }
    }

    private mutating func finishLogIn() -> DialogueStep {
        guard let answer = take(2) else { return .wait }
        guard answer[0] == 1, received.isEmpty else { return fail(.unintelligible) }
        return answer[1] == 0 ? request() : fail(.logIn)
    }

    /// CONNECT (RFC 1928 §4). A name is sent as it is: the proxy resolves it.
    private mutating func request() -> DialogueStep {
        state = .requesting
        let address: [UInt8]
        if let literal = IPAddress(strict: destination.host.utf8) {
            address = SocksDialogue.bytes(of: literal)
        } else {
            let name = Array(destination.host.utf8)
            precondition(name.count <= 255, "a host name has 253 bytes at most")
            address = [3, UInt8(name.count)] + name
        }
        return .send(
            [SocksDialogue.version, 1, 0] + address + [UInt8(destination.port >> 8), UInt8(destination.port & 0xFF)])
    }

    private static func bytes(of address: IPAddress) -> [UInt8] {
        if let v4 = address.v4 { return [1] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: v4 >> $0) } }
        let (high, low) = address.v6
        return [4]
            + [high, low].flatMap { half in
                stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> UInt64($0)) }
            }
    }

    /// The reply, with an address that means nothing for CONNECT through a proxy (RFC 1928 §6).
    private mutating func finish() -> DialogueStep {
        guard received.first ?? SocksDialogue.version == SocksDialogue.version else { return fail(.unintelligible) }
        guard received.count >= 2 else { return .wait }
        // A server may close after the reason, and send less than a whole reply.
        if received[1] != 0 {
            return fail(SocksReply(rawValue: received[1]).map { .socksRefused($0) } ?? .unintelligible)
        }
        guard received.count >= 5 else { return .wait }
        let addressLength: Int
        switch received[3] {
        case 1: addressLength = 4
        case 3: addressLength = 1 + Int(received[4])
        case 4: addressLength = 16
        default: return fail(.unintelligible)
        }
        guard take(4 + addressLength + 2) != nil else { return .wait }
        state = .ended
        return .open(unread: received)
    }

    private mutating func take(_ count: Int) -> [UInt8]? {
        guard received.count >= count else { return nil }
        defer { received.removeFirst(count) }
        return Array(received.prefix(count))
    }

    private mutating func fail(_ failure: NextProxyFailure) -> DialogueStep {
        state = .ended
        return .fail(failure)
    }
}
