/// `access.authentication.directory`: users who are not in the file of Basic are looked up in a directory (LDAP, RFC 4511).
package struct DirectorySettings: Sendable, Equatable {
    /// The directories, which have the same users, in the order in which they are asked. Empty: there is none.
    package var urls: [DirectoryURL] = []
    /// Whether connections of `ldap` URLs begin TLS (StartTLS, RFC 4511 §4.14).
    package var startsTLS = true
    /// Whether passwords may go to another machine without TLS.
    package var plainText = BasicSettings.Permission.deny
    /// The path of the authorities' certificates. Nil: those of `tls.ca_file`, or of the system.
    package var authorityFile: String?
    /// The name of the account that searches. Nil: nobody's, or the user's own.
    package var accountName: String?
    package var accountPasswordFile: String?

    /// Below which entry users are searched for. Nil: their names follow from `userName`.
    package var usersBase: String?
    package var usersFilter = DirectoryTemplate("(uid={user})", .filter)
    /// The name of a user's entry. Nil: it is searched for.
    package var userName: DirectoryTemplate?
    /// The attribute with the name of a user as rules and the log know it.
    package var nameAttribute = "uid"

    /// Below which entry groups are searched for. Nil: they are not.
    package var groupsBase: String?
    package var groupsFilter = DirectoryTemplate("(member={dn})", .filter)
    /// The attribute with the name of a group.
    package var groupAttribute = "cn"
    /// The attribute of the user's entry with the names of the entries of groups. Nil: there is none.
    package var memberAttribute: String?

    /// How long a directory may take to accept a connection, and to answer.
    package var timeout: Duration = .seconds(5)
    /// How long a password that was right, and the groups of its user, are remembered.
    package var lifetime: Duration = .seconds(300)

    package init() {}

    package var isConfigured: Bool { !urls.isEmpty }

    /// Whether a connection to the directory is encrypted.
    package func isSecured(_ url: DirectoryURL) -> Bool { url.isSecured || startsTLS }
}
