import Forwarding
package import Framing
package import Message

/// Why the bytes of a server are not an answer.
package enum ResponseFault: Error, Equatable, Sendable {
    case framing(FramingError)
    /// More interim responses than `Limits.interimResponsesMax`.
    case tooManyInterimResponses
    /// A 101, although no other protocol was asked for (RFC 9110 §15.2.2).
    case unexpectedUpgrade

    /// One word for messages, like `FramingError.reason`.
    package var reason: String {
        switch self {
        case .framing(let error): "\(error.reason)"
        case .tooManyInterimResponses: "too-many-interim-responses"
        case .unexpectedUpgrade: "unexpected-upgrade"
        }
    }
}

/// The final head of an answer, with bytes of its own.
package struct AnswerHead: Sendable, Equatable {
    package var status: UInt16
    package var fields: Fields
    package var length: BodyLength

    package init(status: UInt16, fields: Fields, length: BodyLength) {
        self.status = status
        self.fields = fields
        self.length = length
    }
}

/// Reads the answer to one request from a connection, in whatever pieces its bytes arrive (RFC 9112 §4, §6.3).
///
/// ```
/// head ──1xx──▶ head ──final head──▶ body ──last byte──▶ complete
/// ```
///
/// Interim responses are skipped (RFC 9110 §15.2).
package struct ResponseReader: ~Copyable {
    package enum Step: Equatable, Sendable {
        /// More bytes must arrive. The given bytes from the offset on are needed again.
        case more
        case head(AnswerHead)
        /// This range of the given bytes is content.
        case data(Range<Int>)
        /// The answer is complete. Bytes from the offset on do not belong to it.
        case end
    }

    private enum State { case head, body, complete }

    private let method: Method
    private let limits: Limits
    private var state = State.head
    private var progress = HeadProgress()
    private var interimCount = 0
    private var body = BodyReader()
    /// Whether the server keeps the connection open behind the answer (RFC 9112 §9.3).
    private var isPersistent = false

    /// - Parameter method: that of the request.
    package init(to method: Method, limits: Limits) {
        self.method = method
        self.limits = limits
    }

    package var isComplete: Bool { state == .complete }
    /// Whether the connection can carry another request now, as far as this answer is concerned.
    package var allowsReuse: Bool { state == .complete && isPersistent }

    /// Takes the next step.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that were not used yet, and those that have arrived since.
    ///   - offset: where to begin. Set to the end of the bytes that were used.
    /// - Throws: a fault of the server. The reader must not be used afterwards.
    package mutating func next(
        in bytes: borrowing Span<UInt8>, from offset: inout Int
    ) throws(ResponseFault) -> Step {
        switch state {
        case .head: return try nextHead(in: bytes, from: &offset)
        case .body: return try nextContent(in: bytes, from: &offset)
        case .complete: return .end
        }
    }

    /// Reports that the server closed its side. Returns whether the answer is complete.
    package mutating func closed() -> Bool {
        guard state == .body, body.closed() == .complete else { return state == .complete }
        isPersistent = false
        state = .complete
        return true
    }

    private mutating func nextHead(
        in bytes: borrowing Span<UInt8>, from offset: inout Int
    ) throws(ResponseFault) -> Step {
        while true {
            var head = ResponseHead()
            let rest = bytes.extracting(offset...)
            let length: BodyLength
            do throws(FramingError) {
                guard try parseResponseHead(rest, into: &head, progress: &progress, limits: limits) else {
                    return .more
                }
                length = try responseBodyLength(head, to: method, bytes: rest)
            } catch { throw .framing(error) }
            offset += head.byteCount
            progress = HeadProgress()
            guard head.status >= 200 else {
                guard head.status != 101 else { throw .unexpectedUpgrade }
                interimCount += 1
                guard interimCount <= limits.interimResponsesMax else { throw .tooManyInterimResponses }
                continue
            }
            let options = ConnectionOptions(head.fields, bytes: rest)
            isPersistent = length != .untilClose && persists(minorVersion: head.minorVersion, options)
            body = BodyReader(length, limits: limits)
            state = .body
            var own: [UInt8] = []
            own.append(rest, 0..<head.byteCount)
            return .head(
                AnswerHead(status: head.status, fields: Fields(bytes: own, section: head.fields), length: length))
        }
    }

    private mutating func nextContent(
        in bytes: borrowing Span<UInt8>, from offset: inout Int
    ) throws(ResponseFault) -> Step {
        do throws(FramingError) {
            switch try body.next(in: bytes, from: &offset) {
            case .data(let range): return .data(range)
            case .more: return .more
            case .end:
                state = .complete
                return .end
            }
        } catch { throw .framing(error) }
    }
}
