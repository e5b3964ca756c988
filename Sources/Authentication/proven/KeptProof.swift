package import Credentials
package import Message
package import Rules
import Tokens

/// By what a client proved who it is for longer than one request: for a tunnel and what is in it, or for its whole connection.
///
/// It says whether that still holds, under what the configuration and its files say now. A password is not kept: its hash in the file tells
/// whether it is still right, and the digest of a token whether that is still in its file. Only credentials of which no file here knows, signed
/// tokens and passwords of a directory, are kept to be examined again. A token has the end that it had when it was accepted, by both clocks: to look at
/// it again makes it hold no longer, even if the wall clock was set back.
package struct KeptProof: Sendable {
    package enum Standing: Sendable, Equatable {
        /// The client is still known, perhaps with other groups. The identity is that of a connection, and holds until its `expiry`, or until
        /// something changes.
        case holds(Identity)
        /// These credentials have to be examined again, as if a request had them.
        case unknown(Secret)
        case ended
    }

    private enum Means: Sendable {
        /// The hash of the password.
        case password(user: String, hash: String)
        case digest(user: String, [HashAlgorithm: Secret])
        /// SHA-256 of the token.
        case token(digest: [UInt8], end: Expiry?)
        case credentials(Secret, end: Expiry?)
        /// Of Kerberos.
        case ticket(NegotiateSettings)
        case certificate(ClientCertificate, end: Expiry?)
        /// A program that has the proxy in its own process says who asks.
        case given
    }

    private var means: Means
    /// As it was proven, or found again.
    private var identity: Identity

    /// - Parameters:
    ///   - identity: the one that was proven.
    ///   - credentials: the value of `Proxy-Authorization` that proved it. Nil: none was needed with this request.
    ///   - material: what the files said when the client was examined.
    package init(
        _ identity: Identity, by credentials: Secret?, _ settings: AuthenticationSettings,
        _ material: AuthenticationMaterial, using hashing: some Hashing
    ) {
        self.identity = identity.ofConnection
        switch identity.scheme {
        case .basic:
            if let hash = material.users.hash(for: identity.name) {
                means = .password(user: identity.name, hash: hash)
            } else {
                means = .credentials(credentials ?? Secret([]), end: nil)
            }
        case .digest: means = .digest(user: identity.name, material.digestUsers.secrets(of: identity.name))
        case .bearer:
            let token = credentials.flatMap { Bearer.token(in: $0.bytes)?.token } ?? []
            if let digest = Bearer.digest(of: token, hashing), material.tokens.entry(digest) != nil {
                means = .token(digest: digest, end: identity.end)
            } else {
                means = .credentials(credentials ?? Secret([]), end: identity.end)
            }
        case .negotiate: means = .ticket(settings.negotiate)
        case .certificate: preconditionFailure("a certificate is no credential of a request")
        }
    }

    /// Returns nil if nobody knows the owner of the certificate.
    ///
    /// - Parameter end: when the certificate expires. Nil: it does not.
    package init?(_ certificate: ClientCertificate, until end: Expiry?, _ settings: AuthenticationSettings) {
        guard let identity = KeptProof.identity(of: certificate, until: end, settings) else { return nil }
        means = .certificate(certificate, end: end)
        self.identity = identity
    }

    /// Of a program that has the proxy in its own process. Nobody checks it.
    package init(given identity: Identity) {
        means = .given
        self.identity = identity.ofConnection
    }

    /// Takes what examining `Standing.unknown` credentials has shown.
    package mutating func renew(_ identity: Identity) {
        guard case .credentials(let secret, let first) = means, let seen = identity.end else {
            self.identity = identity.ofConnection
            return
        }
        let end = seen.asSeen(first: first)
        means = .credentials(secret, end: end)
        self.identity = Identity(
            name: identity.name, scheme: identity.scheme, groups: identity.groups,
            expiry: identity.expiry.map { min($0, end.uptime) } ?? end.uptime, end: end, scope: .connection)
    }

    /// - Parameters:
    ///   - hasChanged: whether settings or files may be others than at the last time, or the wall clock was set forward.
    ///   - now: the monotonic clock.
    package mutating func standing(
        _ settings: @autoclosure () -> AuthenticationSettings, _ material: @autoclosure () -> AuthenticationMaterial,
        hasChanged: Bool, now: Duration, wallTime: @autoclosure () -> WallTime
    ) -> Standing {
        guard hasChanged || (identity.expiry.map { now >= $0 } ?? false) else { return .holds(identity) }
        let settings = settings()
        let moment = Moment(uptime: now, wallTime: wallTime())
        guard let found = found(settings, material(), moment) else {
            guard case .credentials(let secret, let end) = means, settings.offered.contains(identity.scheme),
                end.map({ !$0.isOver(at: moment) }) ?? true
            else { return .ended }
            return .unknown(secret)
        }
        identity = found
        return .holds(found)
    }

    private mutating func found(
        _ settings: AuthenticationSettings, _ material: AuthenticationMaterial, _ now: Moment
    ) -> Identity? {
        switch means {
        case .given: return identity
        case .certificate(let certificate, let end):
            if let end, end.isOver(at: now) { return nil }
            return KeptProof.identity(of: certificate, until: end, settings)
        case .password, .digest, .token, .credentials, .ticket: break
        }
        guard settings.offered.contains(identity.scheme) else { return nil }
        switch means {
        case .password(let user, let hash):
            guard material.users.hash(for: user) == hash else { return nil }
            return Identity(
                name: user, scheme: .basic, groups: material.groups.groups(of: user), scope: .connection)
        case .digest(let user, let secrets):
            guard !secrets.isEmpty, material.digestUsers.secrets(of: user) == secrets else { return nil }
            return Identity(
                name: user, scheme: .digest, groups: material.groups.groups(of: user), scope: .connection)
        case .token(let digest, let first):
            guard let entry = material.tokens.entry(digest) else { return nil }
            let end = entry.expiry.map { Expiry(at: $0, seen: now).asSeen(first: first) }
            if let end, end.isOver(at: now) { return nil }
            means = .token(digest: digest, end: end)
            return Identity(
                name: entry.name, scheme: .bearer, groups: entry.groups, expiry: end?.uptime, end: end,
                scope: .connection)
        case .ticket(let then):
            guard then == settings.negotiate, let end = identity.expiry, now.uptime < end else { return nil }
            return identity
        case .credentials, .certificate, .given: return nil
        }
    }

    private static func identity(
        of certificate: ClientCertificate, until end: Expiry?, _ settings: AuthenticationSettings
    ) -> Identity? {
        settings.certificates.identity(of: certificate).map {
            Identity(name: $0.name, scheme: .certificate, groups: $0.groups, expiry: end?.uptime, scope: .connection)
        }
    }
}

extension Identity {
    fileprivate var ofConnection: Identity {
        Identity(name: name, scheme: scheme, groups: groups, expiry: expiry, end: end, scope: .connection)
    }
}
