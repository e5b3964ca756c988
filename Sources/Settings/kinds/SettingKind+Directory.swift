import Authentication
import Rules
import Texts

extension SettingKind where Value == DirectoryURL {
    static var directoryURL: SettingKind {
        .scalar(
            "ldaps://host or ldap://host, with a :port if it is not 636 or 389", parse: { DirectoryURL($0) },
            render: { yamlQuoted("\($0)") },
            hint: { text in
                if text.hasPrefix("ldapi:") {
                    return "sockets of this machine are not supported: name a loopback address"
                }
                return text.contains("?") || text.dropFirst(8).contains("/")
                    ? "names and filters belong in users and groups" : nil
            })
    }
}

extension SettingKind where Value == DirectoryTemplate {
    /// - Parameter example: a value that is allowed.
    static func directoryFilter(_ example: String) -> SettingKind {
        .scalar(
            "a filter (RFC 4515) such as \(example)", parse: { DirectoryTemplate($0, .filter) },
            render: { yamlSingleQuoted("\($0)") },
            hint: { text in
                text.hasPrefix("(") ? "the placeholders are {user} and {dn}" : "a filter stands in parentheses"
            })
    }

    static var directoryName: SettingKind {
        .scalar(
            "the name of an entry (RFC 4514) such as uid={user},ou=people,dc=example,dc=net",
            parse: { DirectoryTemplate($0, .name) }, render: { yamlSingleQuoted("\($0)") },
            hint: { $0.contains("{user}") ? nil : "{user} stands for the name of the user" })
    }
}

extension SettingKind where Value == String {
    static var distinguishedName: SettingKind {
        .scalar(
            "the name of an entry (RFC 4514) such as ou=people,dc=example,dc=net",
            parse: { text in
                let bytes = Array(text.utf8)
                return bytes.count <= 1024 && isDistinguishedName(bytes) ? text : nil
            }, render: { yamlSingleQuoted($0) })
    }

    static var attributeName: SettingKind {
        .scalar(
            "the name of an attribute: letters, digits, \"-\", \".\" and \";\"",
            parse: { isAttributeName($0) ? $0 : nil }, render: { $0 })
    }
}
