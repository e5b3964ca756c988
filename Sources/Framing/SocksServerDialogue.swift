package import Message

/// Where a SOCKS client wants to go (RFC 1928 §5).
package enum SocksTarget: Equatable, Sendable {
    /// As sent. It may be no host name at all.
    case name([UInt8], port: UInt16)
    case address(IPAddress, port: UInt16)
}

/// Answering a SOCKS5 client (RFC 1928), which says who it is with a user and a password if it has to (RFC 1929).
///
/// ```
/// greeting ─▶ [loggingIn ─▶ checking] ─▶ requesting ─▶ ended
/// ```
package struct SocksServerDialogue: Sendable {
    private enum State { case greeting, loggingIn, checking, requesting, ended }
    private var state = State.greeting
    private var received: [UInt8] = []
    private let password: Password

    /// What to do next. Behind `send`, ask `on([])` for what follows.
    package enum Step: Equatable, Sendable {
        /// Wait for more bytes.
        case wait
        case send([UInt8])
        /// Are these right? The answer is `checked`.
        case logIn(user: [UInt8], password: [UInt8])
        /// Open the tunnel, and answer with a `SocksReply`.
        case connect(SocksTarget)
        /// Send this, and close the connection.
        case refuse(reply: [UInt8], Fault)
    }

    package enum Fault: CaseIterable, Sendable, CustomStringConvertible {
        /// The bytes are not those of SOCKS5.
        case malformed
        /// The client offers no method of authentication that would do.
        case method
        /// The user or the password is wrong.
        case logIn
        /// BIND or UDP ASSOCIATE, or a command that nobody knows.
        case command
        case addressType

        package var description: String {
            switch self {
            case .malformed: "its bytes are not SOCKS5"
            case .method: "it offers no method of authentication that would do"
            case .logIn: "its user or its password is wrong"
            case .command: "it asks for another command than CONNECT"
            case .addressType: "its type of address is not known"
            }
        }
    }

    private static let version: UInt8 = 5
    private static let logInVersion: UInt8 = 1
    private static let noMethod: UInt8 = 0xFF
    private enum Authentication {
        static let none: UInt8 = 0
        static let password: UInt8 = 2
    }

    /// Whether the client says who it is.
    package enum Password: CaseIterable, Sendable {
        /// A client that insists on a password may send any.
        case ignored
        /// A client that offers a password is asked for it, and it has to be right.
        case optional
        case required
    }

    package init(password: Password) { self.password = password }

    /// What was received behind the request. It belongs into the tunnel.
    package var unread: [UInt8] { received }

    /// The most bytes that are kept before the request is complete: the three messages at their longest.
    package static let bytesMax = 2 + 255 + 3 + 255 + 255 + 4 + 1 + 255 + 2

    package mutating func on(_ bytes: [UInt8]) -> Step {
        received += bytes
        switch state {
        case .greeting: return greet()
        case .loggingIn: return logIn()
        case .checking: return .wait
        case .requesting: return request()
        case .ended: preconditionFailure("the dialogue has ended")
        }
    }

    /// The user and the password were checked.
    package mutating func checked(isRight: Bool) -> Step {
        guard case .checking = state else { preconditionFailure("nothing was asked") }
        guard isRight else { return refuse([SocksServerDialogue.logInVersion, 1], .logIn) }
        state = .requesting
        return .send([SocksServerDialogue.logInVersion, 0])
    }

    /// `VER NMETHODS METHODS` (RFC 1928 §3).
    private mutating func greet() -> Step {
        guard received.first ?? SocksServerDialogue.version == SocksServerDialogue.version else {
            return refuse([], .malformed)
        }
        guard received.count >= 2, received.count >= 2 + Int(received[1]) else { return .wait }
        let methods = take(2 + Int(received[1])).dropFirst(2)
        let isAsked = password == .required || (password == .optional && methods.contains(Authentication.password))
        if !isAsked, methods.contains(Authentication.none) {
            state = .requesting
            return .send([SocksServerDialogue.version, Authentication.none])
        }
        guard methods.contains(Authentication.password) else {
            return refuse([SocksServerDialogue.version, SocksServerDialogue.noMethod], .method)
        }
        state = .loggingIn
        return .send([SocksServerDialogue.version, Authentication.password])
    }

    /// `VER ULEN UNAME PLEN PASSWD` (RFC 1929 §2).
    private mutating func logIn() -> Step {
        guard received.first ?? SocksServerDialogue.logInVersion == SocksServerDialogue.logInVersion else {
            return refuse([SocksServerDialogue.logInVersion, 1], .malformed)
        }
        guard received.count >= 2 else { return .wait }
        let userEnd = 2 + Int(received[1])
        guard received.count > userEnd else { return .wait }
        let end = userEnd + 1 + Int(received[userEnd])
        guard received.count >= end else { return .wait }
        let message = take(end)
        state = .checking
        guard password != .ignored else { return checked(isRight: true) }
        return .logIn(user: Array(message[2..<userEnd]), password: Array(message[(userEnd + 1)...]))
    }

    /// `VER CMD RSV ATYP DST.ADDR DST.PORT` (RFC 1928 §4).
    private mutating func request() -> Step {
        guard received.first ?? SocksServerDialogue.version == SocksServerDialogue.version else {
            return refuse(SocksReply.generalFailure.bytes, .malformed)
        }
        guard received.count >= 4 else { return .wait }
        let addressEnd: Int
        switch received[3] {
        case 1: addressEnd = 8
        case 3:
            guard received.count >= 5 else { return .wait }
            addressEnd = 5 + Int(received[4])
        case 4: addressEnd = 20
        default: return refuse(SocksReply.addressTypeNotSupported.bytes, .addressType)
        }
        guard received.count >= addressEnd + 2 else { return .wait }
        let message = take(addressEnd + 2)
        guard message[1] == 1 else { return refuse(SocksReply.commandNotSupported.bytes, .command) }
        state = .ended
        let port = UInt16(message[addressEnd]) << 8 | UInt16(message[addressEnd + 1])
        switch message[3] {
        case 1: return .connect(.address(IPAddress(v4: UInt32(number(message[4..<8]))), port: port))
        case 3: return .connect(.name(Array(message[5..<addressEnd]), port: port))
        default:
            return .connect(.address(IPAddress(v6: number(message[4..<12]), low: number(message[12..<20])), port: port))
        }
    }

    private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    private mutating func take(_ count: Int) -> [UInt8] {
        let taken = Array(received[..<count])
        received.removeFirst(count)
        return taken
    }

    private mutating func refuse(_ reply: [UInt8], _ fault: Fault) -> Step {
        state = .ended
        return .refuse(reply: reply, fault)
    }
}
