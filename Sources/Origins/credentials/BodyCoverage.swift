package import Credentials
import Message

/// What of the body of a request a credential's proof covers.
package enum BodyCoverage: Equatable, Sendable {
    /// Nothing: the body is sent while it comes.
    case nothing
    /// Its bytes, or the members of the form that it is. They must be known before the head goes out.
    case whole
    /// The members of a form that cannot be read, because it has a content coding.
    case unreadable
}

extension CredentialMeans {
    /// What a request with these credentials proves about its body.
    ///
    /// - Parameters:
    ///   - type: the value of `Content-Type`.
    ///   - isEncoded: the client has sent the body in a content coding.
    ///   - isSecure: the origin is asked over TLS.
    ///   - challenge: what is answered. Nil if nothing is, or not yet.
    package func bodyCoverage(
        type: ArraySlice<UInt8>?, isEncoded: Bool, isSecure: Bool, answering challenge: AnswerableChallenge? = nil
    ) -> BodyCoverage {
        switch self {
        case .ticket, .bearer, .placeholder: return .nothing
        case .password:
            if case .digest(let digest)? = challenge, digest.needsBody { return .whole }
            return .nothing
        case .oauth1:
            // The members of a form are signed, and nothing else of a body (RFC 5849 §3.4.1.3.1).
            guard MemberSyntax(type: type) == .form else { return .nothing }
            return isEncoded ? .unreadable : .whole
        case .sigv4(_, let service):
            // Object stores accept a body that is not covered, if TLS protects it.
            return service == "s3" && isSecure ? .nothing : .whole
        }
    }
}
