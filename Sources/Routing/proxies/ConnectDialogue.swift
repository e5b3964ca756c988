package import Credentials
import Framing
package import Message

/// Asking an HTTP proxy for a tunnel with CONNECT (RFC 9110 §9.3.6), once. A 407 ends it: who answers the challenge begins another one, over
/// the same connection if that persists.
///
/// ```
/// head ──2xx──▶ open
///   ├───407──▶ [reading the body] ─▶ challenged
///   └──other─▶ failed
/// ```
package struct ConnectDialogue: Sendable {
    private enum State {
        case head
        /// The challenges are known, and the rest of their message is read so that the connection can be used again.
        case body([Challenge], MessageBody)
    }
    private let destination: Endpoint
    private let ownProof: ProxyProof
    private let limits: Limits
    private var state = State.head
    private var received: [UInt8] = []
    private var progress = HeadProgress()
    private var interimCount = 0
    /// What the answer says about the credentials that it accepts (RFC 7615 §4). Nil if nothing.
    package private(set) var information: AuthenticationInfo?
    /// The challenges of an answer that opens the tunnel: the last token with which the proxy proves itself is one (RFC 4559 §5).
    package private(set) var proof: [Challenge] = []

    package init(to destination: Endpoint, proof: ProxyProof, limits: Limits) {
        self.destination = destination
        ownProof = proof
        self.limits = limits
    }

    package func begin() -> [UInt8] {
        var request = Array("CONNECT \(destination) HTTP/1.1\r\nHost: \(destination)\r\n".utf8)
        if let value = ownProof.authorization {
            request += Array("Proxy-Authorization: ".utf8) + value + Array("\r\n".utf8)
        }
        return request + Array("\r\n".utf8)
    }

    package mutating func on(_ bytes: [UInt8]) -> DialogueStep {
        switch state {
        case .head: return readHead(self.received + bytes)
        case .body(let challenges, let body): return read(body, bytes, of: challenges)
        }
    }

    /// The proxy has closed the connection.
    package func onClose() -> DialogueStep {
        switch state {
        case .head: .closed
        case .body(let challenges, _): .challenged(challenges, persists: false)
        }
    }

    private mutating func readHead(_ bytes: [UInt8]) -> DialogueStep {
        var received = bytes
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
            let headBytes = Array(received[..<head.byteCount])
            received.removeFirst(head.byteCount)
            progress = HeadProgress()
            switch head.status {
            case 101: return .fail(.unintelligible)
            case 100..<200:
                interimCount += 1
                guard interimCount <= limits.interimResponsesMax else { return .fail(.unintelligible) }
            // What says how long a body is has no meaning here (RFC 9110 §9.3.6).
            case 200..<300:
                information = values(.proxyAuthenticationInfo, of: head, headBytes).first.flatMap {
                    AuthenticationInfo($0)
                }
                proof = parseChallenges(values(.proxyAuthenticate, of: head, headBytes))
                return .open(unread: received)
            case 407: return challenged(head, headBytes, rest: received)
            default: return .fail(.refused(status: head.status))
            }
        }
    }

    // MARK: 407

    private mutating func challenged(_ head: ResponseHead, _ bytes: [UInt8], rest: [UInt8]) -> DialogueStep {
        guard case .answering = ownProof else { return .fail(.logIn) }
        let challenges = parseChallenges(values(.proxyAuthenticate, of: head, bytes))
        let length: BodyLength
        do throws(FramingError) {
            length = try responseBodyLength(head, to: .connect, bytes: bytes.span)
        } catch { return .fail(.unintelligible) }
        guard persists(minorVersion: head.minorVersion, ConnectionOptions(head.fields, bytes: bytes.span)),
            let body = MessageBody(length, limits: limits)
        else { return .challenged(challenges, persists: false) }
        return read(body, rest, of: challenges)
    }

    private mutating func read(_ body: MessageBody, _ bytes: [UInt8], of challenges: [Challenge]) -> DialogueStep {
        var body = body
        switch body.read(bytes) {
        case .more:
            state = .body(challenges, body)
            return .wait
        case .ended(let isClean): return .challenged(challenges, persists: isClean)
        case .tooLong: return .challenged(challenges, persists: false)
        }
    }

    private func values(_ name: FieldName, of head: ResponseHead, _ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        head.fields.lines.filter { $0.name == name }.map { bytes[$0.valueRange] }
    }
}

/// Reads over the body of a challenge, up to `challengeBodyBytesMax`.
private struct MessageBody: Sendable {
    enum Progress {
        case more
        /// - Parameter isClean: nothing follows that belongs to no message.
        case ended(isClean: Bool)
        /// It is cheaper to begin anew on another connection, or nobody knows where the body ends.
        case tooLong
    }
    private enum Kind {
        case counted(remaining: Int)
        case chunked(ChunkedDecoder)
    }
    private var kind: Kind
    private var count = 0
    private let countMax: Int

    /// Returns nil if the body ends with the connection, or is too long.
    init?(_ length: BodyLength, limits: Limits) {
        countMax = limits.challengeBodyBytesMax
        switch length {
        case .none: kind = .counted(remaining: 0)
        case .length(let length):
            guard length <= UInt64(countMax) else { return nil }
            kind = .counted(remaining: Int(length))
        case .chunked: kind = .chunked(ChunkedDecoder(limits: limits))
        case .untilClose, .tunnel: return nil
        }
    }

    mutating func read(_ bytes: [UInt8]) -> Progress {
        // Framing counts as well: chunks may be small.
        count += bytes.count
        switch kind {
        case .counted(let remaining):
            guard bytes.count >= remaining else {
                kind = .counted(remaining: remaining - bytes.count)
                return .more
            }
            return .ended(isClean: bytes.count == remaining)
        case .chunked(var decoder):
            guard count <= countMax else { return .tooLong }
            defer { kind = .chunked(decoder) }
            var offset = 0
            while true {
                do throws(FramingError) {
                    switch try decoder.step(bytes.span.extracting(offset...)) {
                    case .needMore: return .more
                    case .data(let consumed, _): offset += consumed
                    case .end(let consumed): return .ended(isClean: offset + consumed == bytes.count)
                    }
                } catch { return .tooLong }
            }
        }
    }
}

/// What a next proxy gets from Larder.
package enum ProxyProof: Sendable, Equatable {
    case none
    /// A user and a password, which need no challenge.
    case logIn(ProxyLogIn)
    /// The value of `Proxy-Authorization`. Nil: nothing yet. Challenges are reported, so that they can be answered.
    case answering([UInt8]?)

    /// The value of `Proxy-Authorization`.
    package var authorization: [UInt8]? {
        switch self {
        case .none: nil
        case .logIn(let logIn): logIn.basic
        case .answering(let value): value
        }
    }
}

/// Asking a next proxy for a tunnel, in the protocol that it speaks.
package enum ProxyDialogue: Sendable {
    case connect(ConnectDialogue)
    case socks(SocksDialogue)

    /// - Parameter proof: SOCKS answers no challenges, so `answering` proves nothing there.
    package init(with proxy: NextProxy, to destination: Endpoint, proof: ProxyProof, limits: Limits) {
        switch proxy.kind {
        case .http, .https: self = .connect(ConnectDialogue(to: destination, proof: proof, limits: limits))
        case .socks5:
            guard case .logIn(let logIn) = proof else {
                self = .socks(SocksDialogue(to: destination, logIn: nil))
                return
            }
            self = .socks(SocksDialogue(to: destination, logIn: logIn))
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

    /// The proxy has closed the connection.
    package func onClose() -> DialogueStep {
        switch self {
        case .connect(let connect): connect.onClose()
        case .socks: .closed
        }
    }

    /// What the answer says about the credentials that it accepts.
    package var information: AuthenticationInfo? {
        switch self {
        case .connect(let connect): connect.information
        case .socks: nil
        }
    }

    /// The challenges of an answer that opens the tunnel.
    package var proof: [Challenge] {
        switch self {
        case .connect(let connect): connect.proof
        case .socks: []
        }
    }
}
