package import Credentials
package import Rules
package import Tokens

/// `access.authentication`: how clients prove who they are. Each scheme has a section of its own, and is offered if that section names
/// what the scheme needs; all that are offered are offered together.
package struct AuthenticationSettings: Sendable, Equatable {
    package var basic = BasicSettings()
    package var digest = DigestSettings()
    /// The path of a file with the groups of the users of `basic`, `digest` and `directory`. Nil: they are in no others.
    package var groupsFile: String?
    package var bearer = BearerSettings()
    package var directory = DirectorySettings()
    package var negotiate = NegotiateSettings()
    /// `certificates.map`: who the owner of a client certificate is.
    package var certificates = CertificateMap()
    /// `required`: whether every request has to carry credentials. Otherwise rules say which ones have to.
    package var isForAll = true

    package init() {}

    /// The schemes that are offered, the strongest first: a client takes the first one that it knows (RFC 9110 §11.6.1).
    package var offered: [AuthenticationSchemeName] {
        var offered: [AuthenticationSchemeName] = []
        if negotiate.keytab != nil { offered.append(.negotiate) }
        if digest.usersFile != nil { offered.append(.digest) }
        if bearer.isOffered { offered.append(.bearer) }
        // Whoever is in a directory logs in with Basic.
        if basic.usersFile != nil || directory.isConfigured { offered.append(.basic) }
        return offered
    }

    /// Whether clients can prove who they are.
    package var isConfigured: Bool { !offered.isEmpty || !certificates.entries.isEmpty }

    /// Whether every client has to prove who it is.
    package var isRequired: Bool { isConfigured && isForAll }

    /// The files that are read again when they change.
    package var files: [String] {
        var files = [
            basic.usersFile, digest.usersFile, groupsFile, bearer.tokensFile, directory.accountPasswordFile,
            directory.authorityFile,
        ].compactMap(\.self)
        if case .file(let path) = bearer.keys { files.append(path) }
        return files
    }
}

/// `access.authentication.basic` (RFC 7617).
package struct BasicSettings: Sendable, Equatable {
    package var realm = "larder"
    /// The path of an htpasswd file. Nil: all users are in the directory, if there is one; otherwise the scheme is not offered.
    package var usersFile: String?
    /// Whether the file may have hashes that can be guessed fast.
    package var weakHashes: Permission = .deny
    /// How long credentials that were right are accepted without hashing the password again.
    package var remember: Duration = .seconds(60)

    package enum Permission: String, CaseIterable, Sendable { case deny, allow }

    package init() {}
}

/// `access.authentication.digest` (RFC 7616).
package struct DigestSettings: Sendable, Equatable {
    /// A part of every hash in the users' file.
    package var realm = "larder"
    /// The path of a file as htdigest writes it. Nil: the scheme is not offered.
    package var usersFile: String?
    /// Whether MD5 is offered too, behind the others.
    package var md5 = MD5Offer.needed
    /// How long a nonce can be used.
    package var nonceLifetime: Duration = .seconds(300)
    /// What digests may cover.
    package var protection = DigestProtectionOffer.auth

    package enum MD5Offer: String, CaseIterable, Sendable {
        /// While a user has no other hash. JDKs take the last challenge, and since 20 refuse MD5: one that nobody needs would keep
        /// them out.
        case needed
        case yes, no
    }

    package init() {}
}

/// `qop` (RFC 7616 §3.3): what the proxy offers a digest to cover beside method and target.
package enum DigestProtectionOffer: String, Sendable, CaseIterable {
    /// Nothing.
    case auth
    /// The body of the request as well, if the client wants it.
    case authInt = "auth-int"
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
    /// Those of `digest.users`.
    package var digestUsers = DigestFile()
    package var groups = GroupsFile()
    /// Those of `bearer.tokens`.
    package var tokens = TokenFile()
    /// Those of `bearer.jwt.jwks`. Nil: there are none, or they could not be fetched.
    package var tokenKeys: JSONWebKeySet?
    /// What `directory.password_file` has.
    package var directoryPassword: Secret?

    package init() {}
}
