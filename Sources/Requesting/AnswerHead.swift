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
