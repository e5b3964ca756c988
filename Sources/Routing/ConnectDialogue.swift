import Framing
package import Message

/// Asking an HTTP proxy for a tunnel with CONNECT (RFC 9110 §9.3.6).
package struct ConnectDialogue: Sendable {
    private let destination: Endpoint
    private let logIn: ProxyLogIn?
    private let limits: Limits
    private var received: [UInt8] = []
    private var progress = HeadProgress()
    private var interimCount = 0

    package init(to destination: Endpoint, logIn: ProxyLogIn?, limits: Limits) {
        self.destination = destination
        self.logIn = logIn
        self.limits = limits
    }

    package func begin() -> [UInt8] {
        var request = Array("CONNECT \(destination) HTTP/1.1\r\nHost: \(destination)\r\n".utf8)
        if let logIn { request += Array("Proxy-Authorization: ".utf8) + logIn.basic + Array("\r\n".utf8) }
        return request + Array("\r\n".utf8)
    }

    package mutating func on(_ bytes: [UInt8]) -> DialogueStep {
        var received = self.received + bytes
        var progress = self.progress
        defer {
            self.received = received
            self.progress = progress
        }
        var head = ResponseHead()
        while true {
            do throws(FramingError) {
                let isComplete = try parseResponseHead(
                    received.span, into: &head, progress: &progress, limits: limits)
                guard isComplete else { return .wait }
            } catch { return .fail(.unintelligible) }
            received.removeFirst(head.byteCount)
            progress = HeadProgress()
            switch head.status {
            case 101: return .fail(.unintelligible)
            case 100..<200:
                interimCount += 1
                guard interimCount <= limits.interimResponsesMax else { return .fail(.unintelligible) }
            // What says how long a body is has no meaning here (RFC 9110 §9.3.6).
            case 200..<300: return .open(unread: received)
            case 407: return .fail(.logIn)
            default: return .fail(.refused(status: head.status))
            }
        }
    }
}

/// Asking a next proxy for a tunnel, in the protocol that it speaks.
package enum ProxyDialogue: Sendable {
    case connect(ConnectDialogue)
    case socks(SocksDialogue)

    package init(with proxy: NextProxy, to destination: Endpoint, limits: Limits) {
        switch proxy.kind {
        case .http, .https: self = .connect(ConnectDialogue(to: destination, logIn: proxy.logIn, limits: limits))
        case .socks5: self = .socks(SocksDialogue(to: destination, logIn: proxy.logIn))
        }
    }

    /// The bytes to send first.
    package func begin() -> [UInt8] {
        switch self {
        case .connect(let connect): connect.begin()
        case .socks(let socks): socks.begin()
        }
    }

    /// Takes bytes of the proxy. Not called after a step that ended the dialogue.
    package mutating func on(_ bytes: [UInt8]) -> DialogueStep {
        switch self {
        case .connect(var connect):
            let step = connect.on(bytes)
            self = .connect(connect)
            return step
        case .socks(var socks):
            let step = socks.on(bytes)
            self = .socks(socks)
            return step
        }
    }
}
