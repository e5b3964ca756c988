import Rules
package import Tokens

/// `access.authentication`: how clients prove who they are. Each scheme has a section of its own, and is offered if that section names
/// what the scheme needs; all that are offered are offered together.
package struct AuthenticationSettings: Sendable, Equatable {
    package var basic = BasicSettings()
    package var bearer = BearerSettings()
    package var negotiate = NegotiateSettings()

    package init() {}

    /// The schemes that are offered, the strongest first: a client takes the first one that it knows (RFC 9110 §11.6.1).
    package var offered: [AuthenticationSchemeName] {
        (negotiate.keytab == nil ? [] : [.negotiate]) + (bearer.isOffered ? [.bearer] : [])
            + (basic.usersFile == nil ? [] : [.basic])
    }

    /// Whether clients have to prove who they are.
    package var isRequired: Bool { !offered.isEmpty }
}

/// `access.authentication.basic` (RFC 7617).
package struct BasicSettings: Sendable, Equatable {
    package var realm = "larder"
    /// The path of an htpasswd file. Nil: the scheme is not offered.
    package var usersFile: String?
    /// How long credentials that were right are accepted without hashing the password again.
    package var remember: Duration = .seconds(60)

    package init() {}
}

/// `access.authentication.bearer` (RFC 6750).
package struct BearerSettings: Sendable, Equatable {
    package var realm = "larder"
    /// The path of a file with the hashes of opaque tokens.
    package var tokensFile: String?
    /// The keys that sign tokens. Nil: only opaque tokens are accepted.
    package var keys: KeySetSource?
    /// What signed tokens have to say.
    package var terms = TokenTerms()
    /// How long after a success the keys of a URL are fetched again.
    package var keysRefresh: Duration = .seconds(300)
    /// How long the keys of a URL are used if they cannot be fetched again.
    package var keysKept: Duration = .seconds(86_400)

    package init() {}

    package var isOffered: Bool { tokensFile != nil || keys != nil }
}

/// `access.authentication.negotiate` (RFC 4559).
package struct NegotiateSettings: Sendable, Equatable {
    /// The path of a keytab. Nil: the scheme is not offered.
    package var keytab: String?
    /// The service whose tickets are accepted. Nil: all of the keytab.
    package var principal: String?
    /// The realm whose users are known without it. Nil: every name has its realm.
    package var ownRealm: String?

    package init() {}
}

/// What the files gave that `access.authentication` names.
package struct AuthenticationMaterial: Sendable, Equatable {
    /// Those of `basic.users`.
    package var users = HtpasswdFile()
    /// Those of `bearer.tokens`.
    package var tokens = TokenFile()
    /// Those of `bearer.jwt.jwks`. Nil: there are none, or they could not be fetched.
    package var tokenKeys: JSONWebKeySet?

    package init() {}
}
