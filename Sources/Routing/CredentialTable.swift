package import Access
import Message
import Rules

/// A rule as requests refer to it: one word.
package final class Credential: Sendable {
    package let rule: CredentialRule

    package init(_ rule: CredentialRule) { self.rule = rule }
}

/// Which credential goes with a request.
package struct CredentialTable: Sendable {
    package let credentials: [Credential]

    package init(_ rules: [CredentialRule] = []) { credentials = rules.map { Credential($0) } }

    package var isEmpty: Bool { credentials.isEmpty }

    package var dependsOnUser: Bool { credentials.contains { !$0.rule.conditions.users.isEmpty } }

    /// The first credential whose conditions hold. Nil: Larder proves nothing.
    ///
    /// A tunnel that is not opened carries none, nor does a TRACE, which the origin would send back with all its fields (RFC 9110 §9.3.8).
    ///
    /// - Parameters:
    ///   - bringsOwn: the request of the client has `Authorization`.
    ///   - provesOrigin: whether TLS with the origin proves who it is. If not, it protects no better than http. Asked of https alone.
    package func credential(
        for request: AccessRequest, bringsOwn: Bool, provesOrigin: @autoclosure () -> Bool = true
    ) -> Credential? {
        guard !isEmpty, !request.isTunnel, request.method != .trace else { return nil }
        let found = credentials.first { credential in
            credential.rule.conditions.holdForRequest(request, paths: .asSent)
                && (credential.rule.allowsPlainHTTP || (request.scheme == .https && provesOrigin()))
        }
        guard let found, !(bringsOwn && found.rule.clientUse == .pass) else { return nil }
        return found
    }
}
