import Credentials
import Message
import Origins
import Rules

/// `credentials`: a list of `name`, `scheme`, `match: { conditions }`, and the secret.
extension SettingKind where Value == [CredentialRule] {
    static var credentials: SettingKind {
        let kind = elements(
            "credentials", allowed: "a list of name: NAME, scheme: …, match: { … } and its secrets",
            read: readCredential)
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                guard let rules = kind.read(node, &problems) else { return nil }
                var names: Set<String> = []
                for rule in rules where !names.insert(rule.name).inserted {
                    problems.append(
                        SettingProblem(
                            line: rule.line, place: "[\(rule.number)].name",
                            message: "the name \(rule.name) is used twice"))
                }
                let strays = strayRenewals(rules)
                problems += strays
                return names.count == rules.count && strays.isEmpty ? rules : nil
            }, render: kind.render)
    }
}

/// Renewals of credentials that clients hold no placeholders of.
private func strayRenewals(_ rules: [CredentialRule]) -> [SettingProblem] {
    let known = rules.filter { $0.means.placeholderPlaces != nil }.map(\.name)
    return rules.flatMap { rule in
        (rule.means.placeholderPlaces?.renewals ?? []).filter { !known.contains($0.credential) }.map { renewal in
            SettingProblem(
                line: rule.line, place: "[\(rule.number)].renews.\(renewal.member.joined(separator: "."))",
                message: "\(renewal.credential) is no credential with the scheme placeholder",
                hint: nearestName(to: renewal.credential, among: known).map { "did you mean \($0)?" })
        }
    }
}

/// `scheme`.
private enum SchemeName: String, CaseIterable, Sendable {
    case basic, digest, ntlm, negotiate, bearer, oauth1, sigv4, placeholder

    /// Nil for a scheme that answers no challenge.
    var challengeScheme: ChallengeScheme? {
        switch self {
        case .basic: .basic
        case .digest: .digest
        case .ntlm: .ntlm
        case .negotiate: .negotiate
        case .bearer, .oauth1, .sigv4, .placeholder: nil
        }
    }

    /// The keys of schemes that share a user and a password.
    static func keys(of schemes: [SchemeName]) -> (required: [String], optional: [String]) {
        guard schemes.count > 1 else { return schemes[0].keys }
        let required = ["user", "password"]
        let others = schemes.flatMap { $0.keys.optional }.filter { !required.contains($0) && $0 != "keytab" }
        return (required, others.reduce(into: []) { if !$0.contains($1) { $0.append($1) } })
    }

    /// The keys that only some schemes have: those that must be there, and those that may.
    var keys: (required: [String], optional: [String]) {
        switch self {
        case .basic, .digest: (["user", "password"], ["send"])
        case .ntlm: (["user", "password"], ["domain"])
        case .negotiate: ([], ["user", "password", "keytab", "service"])
        case .bearer: (["token"], [])
        case .oauth1: (["client_key", "client_secret"], ["token", "token_secret", "signature", "realm"])
        case .sigv4: (["access_key", "secret_key", "region"], ["session_token", "service"])
        case .placeholder:
            (["token"], ["prefix", "fields", "query", "path_segment", "json", "form", "require", "renews"])
        }
    }
}

/// `send`.
private enum SendingName: String, CaseIterable, Sendable { case learnt, always }

@Sendable
private func readCredential(
    _ node: ConfigurationNode, number: Int, _ problems: inout [SettingProblem]
) -> CredentialRule? {
    let expected = "keys such as name: NAME, scheme: basic and match: { host: … }"
    guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
    let name = reader.requiredValue("name", .plainName)
    let schemes = reader.requiredValue("scheme", SettingKind<SchemeName>.choice.list())
    let conditions = reader.value("match", .credentialConditions)
    let values = CredentialValues(&reader, isForTickets: schemes?.contains(.negotiate) == true)
    let clientUse = reader.value("client", SettingKind<CredentialRule.ClientUse>.choice) ?? .replace
    let allowsPlainHTTP = reader.value("plain_http", .flag) ?? false
    var means: CredentialMeans?
    if let schemes { means = readMeans(schemes, values, &reader) }
    guard reader.finish("key", into: &problems), let name, let means else { return nil }
    return CredentialRule(
        name: name, means, conditions, secrets: values.secrets, clientUse: clientUse, allowsPlainHTTP: allowsPlainHTTP,
        number: number, line: node.line)
}

/// The keys of all schemes. `readMeans` refuses those of others.
private struct CredentialValues {
    let user, domain, clientKey, region, service, realm: String?
    let sending: SendingName?
    let signature: OAuth1.SignatureMethod?
    private(set) var secrets: [SecretPart: SecretSource] = [:]
    private(set) var places = PlaceholderPlaces()

    init(_ reader: inout MappingReader, isForTickets: Bool) {
        user = reader.value("user", .userName)
        domain = reader.value("domain", .domainName)
        let keytab = reader.value("keytab", SettingKind<String>.path("a keytab"))
        if let keytab { secrets[.keytab] = .file(keytab) }
        for part in SecretPart.allCases where part != .keytab {
            let noun = "a \(part.rawValue.split(separator: "_").joined(separator: " "))"
            secrets[part] = reader.value(part.rawValue, .secret(noun))
        }
        sending = reader.value("send", SettingKind<SendingName>.choice)
        clientKey = reader.value("client_key", .text(255))
        signature = reader.value("signature", .oauthSignature)
        realm = reader.value("realm", .text(255))
        region = reader.value("region", .scopeName)
        service = reader.value("service", isForTickets ? .serviceName : .scopeName)
        places.prefix = reader.value("prefix", .placeholderPrefix)
        places.fields = reader.value("fields", SettingKind<String>.placeholderField.list()) ?? []
        places.query = reader.value("query", SettingKind<String>.text(255).list()) ?? []
        places.path = reader.value("path_segment", .flag) ?? false
        places.json = reader.value("json", SettingKind<[String]>.memberPath.list()) ?? []
        places.form = reader.value("form", SettingKind<String>.text(255).list()) ?? []
        places.isRequired = reader.value("require", .flag) ?? false
        places.renewals = reader.value("renews", .renewals) ?? []
    }
}

/// Returns nil if the keys do not fit the scheme.
private func readMeans(
    _ schemes: [SchemeName], _ values: CredentialValues, _ reader: inout MappingReader
) -> CredentialMeans? {
    let scheme = schemes[0]
    let alone = schemes.first { $0.challengeScheme == nil }
    if schemes.count > 1, let alone {
        reader.refuse(
            "scheme", "\(alone.rawValue) stands alone",
            hint: "only basic, digest, ntlm and negotiate share a user and a password")
        return nil
    }
    let keys = SchemeName.keys(of: schemes)
    for key in keys.required { reader.require(key) }
    let own = keys.required + keys.optional
    let names = schemes.map(\.rawValue).joined(separator: " and ")
    let foreign = Set(SchemeName.allCases.flatMap { $0.keys.required + $0.keys.optional }).subtracting(own)
    for key in foreign.sorted() {
        reader.refuse(key, "\(names) has no \(key)", hint: "its keys are \(own.joined(separator: ", "))")
    }
    switch scheme {
    case .negotiate where schemes.count == 1 && values.secrets[.password] == nil:
        return .ticket(
            principal: values.user, keytab: keytabPath(values), service: values.service ?? DirectoryNames.serviceOfHTTP)
    case .basic, .digest, .ntlm, .negotiate:
        if values.sending == .always, let answering = schemes.first(where: { $0 != .basic }) {
            reader.refuse(
                "send", "\(answering.rawValue) answers a challenge and cannot be sent before it", hint: "leave send out"
            )
            return nil
        }
        if keys.optional.contains("keytab"), values.secrets[.keytab] != nil {
            reader.refuse("keytab", "password and keytab exclude each other", hint: "leave one of them out")
            return nil
        }
        guard let user = values.user else {
            // With negotiate alone it may be absent, but of a password nobody would know whose it is.
            if !keys.required.contains("user") { reader.require("user") }
            return nil
        }
        return .password(
            user: user, schemes: Set(schemes.compactMap(\.challengeScheme)), isUnasked: values.sending == .always,
            names: DirectoryNames(
                domain: values.domain, service: values.service ?? DirectoryNames.serviceOfHTTP))
    case .bearer: return .bearer
    case .oauth1:
        if values.secrets[.token] == nil || values.secrets[.tokenSecret] == nil {
            for key in ["token", "token_secret"] { reader.refuse(key, "token and token_secret belong together") }
        }
        guard let clientKey = values.clientKey else { return nil }
        return .oauth1(clientKey: clientKey, values.signature ?? .hmacSHA1, realm: values.realm)
    case .placeholder:
        reader.refuse("client", "placeholder replaces what clients send, and nothing else", hint: "leave client out")
        return .placeholder(values.places)
    case .sigv4:
        guard let region = values.region else { return nil }
        return .sigv4(region: region, service: values.service ?? "s3")
    }
}

private func keytabPath(_ values: CredentialValues) -> String? {
    if case .file(let path) = values.secrets[.keytab] { path } else { nil }
}

extension SettingKind where Value == OAuth1.SignatureMethod {
    fileprivate static var oauthSignature: SettingKind {
        let names: [(String, OAuth1.SignatureMethod)] = [("hmac-sha1", .hmacSHA1), ("hmac-sha256", .hmacSHA256)]
        return scalar(
            "hmac-sha1 or hmac-sha256", parse: { text in names.first { $0.0 == text }?.1 },
            render: { method in names.first { $0.1 == method }?.0 ?? "" },
            hint: { text in nearestName(to: text, among: names.map(\.0)).map { "did you mean \($0)?" } })
    }
}

extension SettingKind where Value == RuleConditions {
    /// Credentials go to named hosts only: without any they would go to whoever asks.
    fileprivate static var credentialConditions: SettingKind {
        let kind = conditions(of: .credential)
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                guard let conditions = kind.read(node, &problems) else { return nil }
                guard !conditions.hosts.isEmpty, !conditions.hosts.contains(.any) else {
                    problems.append(
                        SettingProblem(
                            node, message: "names no host: whoever asks would get the secret", hint: "add host: NAME"))
                    return nil
                }
                return conditions
            }, render: kind.render)
    }
}

extension SettingKind where Value == String {
    /// Stands in logs, in statistics and in commands.
    fileprivate static var placeholderPrefix: SettingKind {
        scalar(
            "a text of 1 to 24 letters, digits, \"-\", \"_\" and \".\"",
            parse: { text in
                let isPrefix = text.utf8.allSatisfy {
                    ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) || (0x2D...0x2E).contains($0) || (0x30...0x39).contains($0)
                        || $0 == 0x5F
                }
                return isPrefix && (1...24).contains(text.utf8.count) ? text : nil
            }, render: { $0 })
    }

    fileprivate static var placeholderField: SettingKind {
        scalar(
            "the name of a field that servers neither show nor log, such as X-Api-Key",
            parse: { text in
                !text.isEmpty && text.utf8.allSatisfy(isTchar) && !PlaceholderPlaces.isExcluded(field: text)
                    ? text : nil
            }, render: { $0 },
            hint: { $0.lowercased() == "authorization" ? "Authorization needs not be listed" : nil })
    }

    /// Of a region or a service.
    fileprivate static var scopeName: SettingKind {
        scalar(
            "a name of 1 to 64 small letters, digits and \"-\"",
            parse: { text in
                let isName = text.utf8.allSatisfy {
                    (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D
                }
                return isName && (1...64).contains(text.utf8.count) ? text : nil
            }, render: { $0 })
    }

    /// The first part of the name of a service in Kerberos.
    fileprivate static var serviceName: SettingKind {
        scalar(
            "a service of 1 to 64 letters, digits and \"-\"",
            parse: { text in
                let isName = text.utf8.allSatisfy {
                    (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0) || $0 == 0x2D
                }
                return isName && (1...64).contains(text.utf8.count) ? text : nil
            }, render: { $0 })
    }

    /// Of NTLM.
    fileprivate static var domainName: SettingKind {
        scalar(
            "a domain of 1 to 255 bytes without \"\\\", \"@\", white space and control characters",
            parse: { text in
                let isDomain = text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != 0x5C && $0 != 0x40 }
                return isDomain && (1...255).contains(text.utf8.count) ? text : nil
            }, render: { $0 })
    }

    fileprivate static var userName: SettingKind {
        scalar(
            "a user of 1 to 255 bytes without \":\" and control characters",
            parse: { text in
                let isUser = text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != 0x3A }
                return isUser && (1...255).contains(text.utf8.count) ? text : nil
            }, render: { $0 })
    }
}

extension SettingKind where Value == [String] {
    /// The names that lead to a member of a JSON text.
    fileprivate static var memberPath: SettingKind {
        scalar(
            "the name of a member, or names with \".\" between them, such as auth.token",
            parse: memberNames, render: { $0.joined(separator: ".") })
    }
}

@Sendable
private func memberNames(_ text: String) -> [String]? {
    let names = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    return text.utf8.count <= 255 && names.allSatisfy { !$0.isEmpty } ? names : nil
}

extension SettingKind where Value == [PlaceholderRenewal] {
    /// `{ MEMBER: CREDENTIAL }`.
    fileprivate static var renewals: SettingKind {
        let allowed = "members of answers with the names of their credentials, such as { refresh_token: NAME }"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                guard case .mapping(let entries) = node.value, !entries.isEmpty else {
                    problems.append(SettingProblem(node, message: "found \(node.found), expected \(allowed)"))
                    return nil
                }
                let before = problems.count
                let renewals = entries.compactMap { entry -> PlaceholderRenewal? in
                    guard let member = memberNames(entry.key) else {
                        problems.append(
                            SettingProblem(
                                line: entry.keyLine, place: ".\(entry.key)",
                                message: "\(entry.key) is not \(SettingKind<[String]>.memberPath.allowed)"))
                        return nil
                    }
                    var own: [SettingProblem] = []
                    let credential = SettingKind<String>.plainName.read(entry.value, &own)
                    problems += own.map { $0.inside(".\(entry.key)") }
                    return credential.map { PlaceholderRenewal(member: member, credential: $0) }
                }
                return problems.count == before ? renewals : nil
            }, render: { $0.map { "\($0.member.joined(separator: ".")): \($0.credential)" }.joined(separator: ", ") })
    }
}

extension SettingKind where Value == SecretSource {
    /// - Parameter noun: what it is, for messages. They never show the text, which may be a secret that stands in the wrong place.
    fileprivate static func secret(_ noun: String) -> SettingKind {
        let allowed = "\(noun), or { file: PATH }, { env: NAME }, { fd: NUMBER } or { command: [ … ] }"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                switch node.value {
                case .scalar(let text, _) where !node.isNull: return .text(Secret(text))
                case .mapping: return readSource(node, allowed, &problems)
                case .scalar, .list:
                    problems.append(SettingProblem(node, message: "found \(node.found), expected \(allowed)"))
                    return nil
                }
            }, render: { _ in "(secret)" })
    }
}

private func readSource(
    _ node: ConfigurationNode, _ allowed: String, _ problems: inout [SettingProblem]
) -> SecretSource? {
    guard var reader = MappingReader(node, expected: allowed, problems: &problems) else { return nil }
    let file = reader.value("file", SettingKind<String>.path("a file"))
    let variable = reader.value("env", .text(255))
    let descriptor = reader.value("fd", .count(3...1023))
    let command = reader.value("command", SettingKind<String>.text(4096).list())
    guard reader.finish("source", into: &problems) else { return nil }
    let sources = [
        file.map { SecretSource.file($0) }, variable.map { .environment($0) },
        descriptor.map { .descriptor(Int32($0)) }, command.map { .command($0) },
    ].compactMap { $0 }
    guard sources.count == 1 else {
        problems.append(
            SettingProblem(node, message: "expected one of file, env, fd and command, found \(sources.count)"))
        return nil
    }
    return sources[0]
}
