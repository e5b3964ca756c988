package import Access
package import Credentials
package import Message
import Rules

/// A rule as requests refer to it: one word.
package final class Credential: Sendable {
    package let rule: CredentialRule

    package init(_ rule: CredentialRule) { self.rule = rule }
}

/// Which credential goes with a request.
package struct CredentialTable: Sendable {
    package let credentials: [Credential]
    /// Those for which clients hold placeholders.
    private let withPlaceholders: [Credential]
    private let others: [Credential]
    /// Those that routes may name.
    private let byName: [String: Credential]

    package init(_ rules: [CredentialRule] = []) {
        credentials = rules.map { Credential($0) }
        let forOrigins = credentials.filter { $0.rule.conditions != nil }
        withPlaceholders = forOrigins.filter { $0.rule.means.placeholderPlaces != nil }
        others = forOrigins.filter { $0.rule.means.placeholderPlaces == nil }
        byName = Dictionary(credentials.map { ($0.rule.name, $0) }) { first, _ in first }
    }

    /// No request carries one to its origin.
    package var isEmpty: Bool { withPlaceholders.isEmpty && others.isEmpty }

    /// The credential that a next proxy gets. Nil if there is none with that name: validation refuses such a configuration.
    package subscript(name: String) -> Credential? { byName[name] }

    package var hasPlaceholders: Bool { !withPlaceholders.isEmpty }

    package var dependsOnUser: Bool { credentials.contains { $0.rule.conditions?.dependOnUser == true } }

    /// The first credential whose conditions hold, of those that Larder sends by itself. Nil: Larder proves nothing.
    ///
    /// A path must match in every reading, because the client chooses how it is spelled.
    ///
    /// A tunnel that is not opened carries none, nor does a TRACE, which the origin would send back with all its fields (RFC 9110 §9.3.8).
    ///
    /// - Parameters:
    ///   - bringsOwn: the request of the client has `Authorization`.
    ///   - provesOrigin: whether TLS with the origin proves who it is. If not, it protects no better than http. Asked of https alone.
    package func credential(
        for request: AccessRequest, bringsOwn: Bool, provesOrigin: @autoclosure () -> Bool = true
    ) -> Credential? {
        guard !others.isEmpty, mayCarry(request) else { return nil }
        let found = others.first { credential in
            credential.rule.conditions?.holdForRequest(request, paths: .everySpelling) == true
                && (credential.rule.allowsPlainHTTP || (request.scheme == .https && provesOrigin()))
        }
        guard let found, !(bringsOwn && found.rule.clientUse == .pass) else { return nil }
        return found
    }

    /// The first credential whose conditions hold, but which is not sent because everybody on the way could read it. Asked where `credential` finds
    /// none, to say why.
    package func withheld(for request: AccessRequest, provesOrigin: Bool) -> Credential? {
        guard mayCarry(request), request.scheme == .http || !provesOrigin else { return nil }
        return others.first { credential in
            credential.rule.conditions?.holdForRequest(request, paths: .asSent) == true
                && !credential.rule.allowsPlainHTTP
        }
    }

    /// What becomes of the placeholder in the head of a request. Nil if there is none. Throws if it must not be there, or if a credential of the
    /// client's own is in the head where only placeholders are allowed.
    ///
    /// - Parameter candidates: what `placeholders` has returned for the request.
    package func use(
        _ examination: PlaceholderExamination, among candidates: [Credential], for request: AccessRequest, now: Moment
    ) throws(PlaceholderFault) -> (use: PlaceholderUse, credential: Credential)? {
        let credential = examination.placeholder.flatMap { placeholder in
            candidates.first { $0.rule.name == placeholder.credential }
        }
        let use = try examination.use(credential?.rule.means.placeholderPlaces, now: now)
        for other in withPlaceholders where other.rule.conditions?.holdForHost(of: request) == true {
            guard let places = other.rule.means.placeholderPlaces else { continue }
            try examination.requirePlaceholder(places, credential: other.rule.name, beside: use)
        }
        guard let use, let credential else { return nil }
        return (use, credential)
    }

    /// The credentials whose placeholders are replaced in the request. A path must match in every reading: the client chooses it.
    package func placeholders(for request: AccessRequest, provesOrigin: @autoclosure () -> Bool = true) -> [Credential]
    {
        guard !withPlaceholders.isEmpty, mayCarry(request) else { return [] }
        return withPlaceholders.filter { credential in
            credential.rule.conditions?.holdForRequest(request, paths: .everySpelling) == true
                && (credential.rule.allowsPlainHTTP || (request.scheme == .https && provesOrigin()))
        }
    }

    /// What the body of a request must not hold. A path counts that matches in any reading, and a request that gets no secret as well: the client's
    /// own credential is what is looked for.
    ///
    /// - Parameter types: the values of `Content-Type`.
    package func bodyRequirements(for request: AccessRequest, types: [ArraySlice<UInt8>]) -> [BodyRequirement] {
        withPlaceholders.compactMap { credential in
            guard let places = credential.rule.means.placeholderPlaces, places.isRequired, places.concernBodies,
                credential.rule.conditions?.holdForRequest(request, paths: .anySpelling) == true
            else { return nil }
            return BodyRequirement(places, credential: credential.rule.name, types: types)
        }
    }

    /// The fields, in lower case, in which a placeholder of a credential for the host may stand. What a client sends there is examined in the head, and
    /// nowhere else.
    package func fieldNames(forHostOf request: AccessRequest) -> Set<String> {
        Set(
            withPlaceholders.filter { $0.rule.conditions?.holdForHost(of: request) == true }
                .flatMap { $0.rule.means.placeholderPlaces?.fields ?? [] }.map { $0.lowercased() })
    }

    private func mayCarry(_ request: AccessRequest) -> Bool { !request.isTunnel && request.method != .trace }
}
