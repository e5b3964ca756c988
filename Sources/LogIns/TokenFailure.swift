package import Credentials
package import Kerberos

/// Why there is no token for a log-in that belongs to a connection.
package enum TokenFailure: Error, Equatable, Sendable {
    /// The library has no ticket or no token, or the server does not prove who it is.
    case kerberos(GSSAPIFailure)
    /// The message of the server is none that NTLM can answer, or there is no answer.
    case ntlm(NTLMFault)
    /// The server goes on after the last message.
    case outOfOrder
    /// The server's last message leaves the log-in incomplete.
    case unproven
    /// No answer came from the key distribution center within `ConnectionTokens.timeout`.
    case timedOut
    /// Too many log-ins wait for theirs.
    case overloaded

    /// Whether somebody has judged the credentials, and refuses them. Repeating that may lock an account.
    var isRefusal: Bool {
        switch self {
        case .kerberos(let failure): failure.isRefusal
        case .ntlm, .outOfOrder, .unproven, .timedOut, .overloaded: false
        }
    }
}

/// For the log.
extension TokenFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .kerberos(let failure): "\(failure)"
        case .ntlm(let fault): fault.explanation
        case .outOfOrder: "the server goes on after the last message of the log-in"
        case .unproven: "the server does not prove who it is"
        case .timedOut: "the key distribution center did not answer in time"
        case .overloaded: "too many log-ins wait for the key distribution center"
        }
    }
}

extension NTLMFault {
    fileprivate var explanation: String {
        switch self {
        case .notAChallenge: "the message of the server is no challenge of NTLM"
        case .tooLong: "the challenge of the server is too long"
        case .outOfBounds: "the challenge of the server ends early"
        case .malformedTargetInfo: "the challenge of the server has malformed attributes"
        case .noUnicode: "the server does not understand Unicode"
        case .nameTooLong: "the user, the domain or the host has too long a name"
        case .passwordIsNotUTF8: "the password is not UTF-8"
        case .hashUnavailable(let algorithm): "OpenSSL does not offer \(algorithm.rawValue), which NTLM needs"
        }
    }
}
