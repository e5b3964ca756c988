import Authentication
import Rules
import Texts

extension SettingKind where Value == [CertificateMap.Entry] {
    static var certificateMap: SettingKind {
        .elements("entries", allowed: "a list of entries such as { cn: NAME, user: NAME }") { node, _, problems in
            readEntry(node, &problems)
        }
    }
}

private func readEntry(_ node: ConfigurationNode, _ problems: inout [SettingProblem]) -> CertificateMap.Entry? {
    guard var reader = MappingReader(node, expected: "san, cn or subject, and user", problems: &problems) else {
        return nil
    }
    let named = CertificateMap.Field.allCases.filter { reader.has($0.rawValue) }
    var patterns: [NamePattern] = []
    for field in CertificateMap.Field.allCases {
        if let pattern = reader.value(field.rawValue, .namePattern) { patterns.append(pattern) }
    }
    for field in named.dropFirst() {
        reader.refuse(field.rawValue, "an entry looks at one name", hint: "write an entry of its own")
    }
    if named.isEmpty { reader.require("san") }
    let user = reader.value("user", .identityName)
    let groups = reader.value("groups", SettingKind<String>.text(255).list()) ?? []
    guard reader.finish("key", into: &problems), let field = named.first, let pattern = patterns.first else {
        return nil
    }
    return CertificateMap.Entry(field, pattern, user: user ?? "{\(field.rawValue)}", groups: groups)
}

extension SettingKind where Value == NamePattern {
    fileprivate static var namePattern: SettingKind {
        .scalar("a name, with one * at most", parse: { NamePattern($0) }, render: { yamlQuoted("\($0)") })
    }
}

extension SettingKind where Value == String {
    /// The name of an identity, in which placeholders stand for names of the certificate.
    fileprivate static var identityName: SettingKind {
        let known = CertificateMap.placeholders.joined(separator: ", ")
        return .scalar(
            "a name, with the placeholders \(known)",
            parse: { text in
                guard (1...255).contains(text.utf8.count), text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                    return nil
                }
                var rest = text
                for placeholder in CertificateMap.placeholders {
                    rest = rest.split(separator: placeholder, omittingEmptySubsequences: false).joined()
                }
                return rest.contains("{") || rest.contains("}") ? nil : text
            }, render: { yamlQuoted("\($0)") })
    }
}
