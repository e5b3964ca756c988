/// `access.authentication.certificates.map`: who the owner of a certificate is. The first entry that matches counts.
package struct CertificateMap: Sendable, Equatable {
    package var entries: [Entry]

    package init(_ entries: [Entry] = []) { self.entries = entries }

    package struct Entry: Sendable, Equatable {
        package var field: Field
        package var pattern: NamePattern
        /// The name of the identity, in which `{san}`, `{cn}` and `{subject}` stand for names of the certificate, and `{*}` for what the `*` of the
        /// pattern stands for.
        package var user: String
        package var groups: [String]

        package init(_ field: Field, _ pattern: NamePattern, user: String, groups: [String] = []) {
            self.field = field
            self.pattern = pattern
            self.user = user
            self.groups = groups
        }
    }

    /// The name that an entry looks at.
    package enum Field: String, CaseIterable, Sendable {
        /// A name of subjectAltName (RFC 5280 §4.2.1.6): a dNSName, rfc822Name or URI.
        case san
        /// The common name of the subject, its last one.
        case cn
        /// The whole subject, as in RFC 4514.
        case subject
    }

    package static let placeholders = ["{san}", "{cn}", "{subject}", "{*}"]

    /// Who the owner is. Nil if no entry matches.
    package func identity(of certificate: ClientCertificate) -> (name: String, groups: [String])? {
        for entry in entries {
            for name in certificate.names(entry.field) {
                guard let rest = entry.pattern.match(name), let user = entry.user(of: certificate, name.text, rest)
                else {
                    continue
                }
                return (user, entry.groups)
            }
        }
        return nil
    }
}

extension CertificateMap.Entry {
    /// Nil if the certificate lacks a name that `user` names, or if the result is no name that rules and the log could have.
    fileprivate func user(of certificate: ClientCertificate, _ matched: String, _ rest: String) -> String? {
        var result = ""
        var left = user[...]
        while let open = left.firstIndex(of: "{"), let close = left[open...].firstIndex(of: "}") {
            result += left[..<open]
            let value: String? =
                switch left[open...close] {
                case "{san}": field == .san ? matched : certificate.names(.san).first?.text
                case "{cn}": certificate.commonName
                case "{subject}": certificate.subject
                case "{*}": rest
                default: String(left[open...close])
                }
            guard let value else { return nil }
            result += value
            left = left[left.index(after: close)...]
        }
        result += left
        let isName = (1...255).contains(result.utf8.count) && result.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        return isName ? result : nil
    }
}

extension ClientCertificate {
    fileprivate struct Name {
        var text: String
        /// Host names do not depend on case (RFC 4343), and neither do mailboxes as mail systems treat them. Such a text is in lower case.
        var isCaseless = false
    }

    fileprivate func names(_ field: CertificateMap.Field) -> [Name] {
        switch field {
        case .san:
            // A certificate for many hosts is nobody's.
            (dnsNames.filter { !$0.contains("*") } + mailboxes).map { Name(text: $0.lowercased(), isCaseless: true) }
                + uris.map { Name(text: $0) }
        case .cn: commonName.map { [Name(text: $0)] } ?? []
        case .subject: [Name(text: subject)]
        }
    }
}

/// A name, or one with a `*`, which stands for one or more characters: `*.builders.example`, `spiffe://example/*`.
package struct NamePattern: Sendable, Equatable, CustomStringConvertible {
    private let start: String
    /// Nil: the whole name is `start`.
    private let end: String?

    /// Returns nil for an empty pattern, and for one with more than one `*`.
    package init?(_ text: String) {
        let parts = text.split(separator: "*", omittingEmptySubsequences: false).map(String.init)
        guard !text.isEmpty, parts.count <= 2 else { return nil }
        start = parts[0]
        end = parts.count == 2 ? parts[1] : nil
    }

    fileprivate func match(_ name: ClientCertificate.Name) -> String? {
        guard name.isCaseless, let caseless = NamePattern(description.lowercased()) else { return match(name.text) }
        return caseless.match(name.text)
    }

    package var description: String { end.map { "\(start)*\($0)" } ?? start }

    /// What the `*` stands for in a name; nothing if the pattern has none. Nil if the name does not match.
    package func match(_ name: String) -> String? {
        guard let end else { return name == start ? "" : nil }
        guard name.utf8.count > start.utf8.count + end.utf8.count, name.hasPrefix(start), name.hasSuffix(end) else {
            return nil
        }
        return String(name.dropFirst(start.count).dropLast(end.count))
    }
}
