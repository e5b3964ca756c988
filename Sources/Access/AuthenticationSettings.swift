import Rules

/// `access.authentication`: how clients prove who they are. Each scheme has a section of its own, and is offered if that section names
/// what the scheme needs; all that are offered are offered together.
package struct AuthenticationSettings: Sendable, Equatable {
    package var basic = BasicSettings()
    /// `certificates.map`: who the owner of a client certificate is.
    package var certificates = CertificateMap()

    package init() {}

    /// The schemes that are offered, the strongest first: a client takes the first one that it knows (RFC 9110 §11.6.1).
    package var offered: [AuthenticationSchemeName] { basic.usersFile == nil ? [] : [.basic] }

    /// Whether clients have to prove who they are.
    package var isRequired: Bool { !offered.isEmpty || !certificates.entries.isEmpty }
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

/// What the files gave that `access.authentication` names.
package struct AuthenticationMaterial: Sendable, Equatable {
    /// Those of `basic.users`.
    package var users = HtpasswdFile()

    package init() {}
}
