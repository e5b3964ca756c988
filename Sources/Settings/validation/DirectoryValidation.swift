import Access
import Authentication

/// Checks the settings of a directory that depend on each other.
func directoryErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let section = "access.authentication.directory"
    guard let line = reader.lines[section], !reader.hasErrors(in: section) else { return [] }
    let authentication = configuration.access.authentication
    let directory = authentication.directory
    guard directory.isConfigured else {
        return [
            reader.error(
                "\(section).urls", line: line, "missing", hint: "name the directory, or remove \(section)")
        ]
    }
    func isWritten(_ key: String) -> Bool { reader.lines["\(section).\(key)"] != nil }
    var errors: [ConfigurationError] = []
    func refuse(_ key: String, _ message: String, hint: String? = nil) {
        errors.append(
            reader.error("\(section).\(key)", line: reader.lines["\(section).\(key)"] ?? line, message, hint: hint))
    }

    var seen: Set<DirectoryURL> = []
    for url in directory.urls where !seen.insert(url).inserted { refuse("urls", "\(url) is listed twice") }
    for url in directory.urls
    where !directory.isSecured(url) && !url.isLoopback && directory.plainText == .deny {
        refuse(
            "urls", "passwords would go to \(url) without TLS",
            hint: "use ldaps or start_tls: yes, or say plain_text: allow if the network is safe")
    }
    if isWritten("ca_file"), !directory.urls.contains(where: directory.isSecured) {
        refuse("ca_file", "no connection to the directory uses TLS")
    }

    if isWritten("bind_dn") != isWritten("password_file") {
        let missing = isWritten("bind_dn") ? "password_file" : "bind_dn"
        refuse(missing, "missing", hint: "bind_dn and password_file belong together")
    }

    if isWritten("users.base") == isWritten("users.dn") {
        if isWritten("users.base") {
            refuse("users.dn", "users are searched for below users.base already", hint: "remove one of them")
        } else {
            refuse(
                "users.base", "missing", hint: "say where users are searched for, or name their entries with users.dn")
        }
    }
    if isWritten("users.filter"), !isWritten("users.base") {
        refuse("users.filter", "is for a search below users.base, which is missing")
    }
    if let filter = directory.usersFilter, !filter.hasUser || filter.hasDN {
        refuse("users.filter", "has to name {user}, and no {dn}, which is what it looks for")
    }

    for key in ["groups.filter", "groups.name"] where isWritten(key) && !isWritten("groups.base") {
        refuse(key, "is for a search below groups.base, which is missing")
    }
    if isWritten("groups"), !isWritten("groups.base"), !isWritten("groups.attribute") {
        refuse("groups.base", "missing", hint: "say where groups are searched for, or name groups.attribute")
    }

    // Clients take the strongest scheme that they know, so the users of the directory would be asked for a digest.
    if authentication.digest.usersFile != nil, reader.lines["access.authentication.basic"] == nil {
        errors.append(
            reader.error(
                section, "users of a directory log in with Basic, and only digest is configured",
                hint: "add access.authentication.basic, or remove digest"))
    }
    return errors
}
