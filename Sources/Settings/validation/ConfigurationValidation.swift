import Access
import Authentication
import Caching
import Interception
import Message
import Routing
import Origins
import Rules
import Tokens

/// Checks settings that depend on each other.
func validate(_ reader: ConfigurationReader) -> (errors: [ConfigurationError], warnings: [ConfigurationError]) {
    let configuration = reader.configuration
    return (
        listenerErrors(configuration, reader) + authenticationErrors(configuration, reader)
            + directoryErrors(configuration, reader) + fleetErrors(configuration, reader)
            + dnsErrors(configuration, reader)
            + cacheRuleErrors(configuration, reader)
            + diskErrors(configuration.cache, reader) + interceptErrors(configuration, reader)
            + originErrors(configuration, reader) + cookieErrors(configuration, reader)
            + credentialErrors(configuration, reader),
        diskWarnings(configuration.cache, reader) + opennessWarnings(configuration, reader)
            + accessRuleWarnings(configuration, reader) + cacheRuleWarnings(configuration, reader)
            + credentialWarnings(configuration, reader) + withheldWarnings(configuration, reader)
            + scriptWarnings(configuration, reader)
    )
}

/// The listeners that other machines can reach although the configuration names neither clients nor users.
package func unguardedListeners(_ configuration: Configuration) -> [ListenAddress] {
    guard configuration.access.namedClients == nil, !configuration.access.authentication.isRequired else { return [] }
    return configuration.listen.map(\.address).filter(isBeyondLoopback)
}

private func isBeyondLoopback(_ listener: ListenAddress) -> Bool {
    guard case .tcp(let address, _) = listener else { return false }
    return addressClass(address) != .loopback
}

private func listenerErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    var errors = unguardedListeners(configuration).map { listener in
        reader.error(
            "listen", "\(listener): a listener beyond loopback needs access.clients or access.authentication")
    }
    var seen: Set<ListenAddress> = []
    var names: Set<String> = []
    for listener in configuration.listen where !listener.address.isAnyPort {
        if !seen.insert(listener.address).inserted {
            errors.append(reader.error("listen", "\(listener) is listed twice"))
        }
    }
    for (index, listener) in configuration.listen.enumerated() {
        let key = configuration.listen.count == 1 ? "listen" : "listen[\(index + 1)]"
        if let name = listener.writtenName, !names.insert(name).inserted {
            errors.append(reader.error("\(key).name", "another listener has the name \(name)"))
        }
    }
    if configuration.listen.count > 1, seen.contains(.inherited(name: nil)),
        configuration.listen.contains(where: { if case .inherited(.some) = $0.address { true } else { false } })
    {
        errors.append(
            reader.error("listen", "systemd takes all sockets, so none is left for a listener with a name"))
    }
    if let admin = configuration.admin.address, seen.contains(admin) {
        errors.append(
            reader.error(
                "admin.address", line: reader.lines["admin.address"] ?? reader.lines["listen"],
                "\(admin) is also an address in listen"))
    }
    return errors
}

private func authenticationErrors(
    _ configuration: Configuration, _ reader: ConfigurationReader
) -> [ConfigurationError] {
    if !configuration.access.authentication.certificates.entries.isEmpty,
        !configuration.listen.contains(where: { $0.tls?.clientAuthorityFile != nil })
    {
        return [
            reader.error(
                "access.authentication.certificates.map", "no listener asks clients for a certificate",
                hint: "add tls: { client_ca: FILE } to an entry of listen")
        ]
    }
    let section = "access.authentication"
    guard !configuration.access.authentication.isConfigured else {
        return tokenErrors(configuration.access.authentication.bearer, reader)
    }
    var errors: [ConfigurationError] = []
    // The section is there, so authentication is wanted: Larder must not run without it by accident.
    if let line = reader.lines[section] {
        if reader.lines["\(section).directory"] != nil {
            // `directoryErrors` says what is missing there.
        } else if let bearer = reader.lines["\(section).bearer"] {
            errors.append(
                reader.error(
                    "\(section).bearer.tokens", line: bearer, "missing",
                    hint: "name the file of the tokens, or jwt.jwks, or remove \(section).bearer"))
        } else {
            let written = ["digest", "basic"].first { reader.lines["\(section).\($0)"] != nil } ?? "basic"
            errors.append(
                reader.error(
                    "\(section).\(written).users", line: reader.lines["\(section).\(written)"] ?? line, "missing",
                    hint: "name the users' file, or remove \(section)"))
        }
    }
    if reader.lines[section] == nil {
        let rules =
            configuration.access.rules.map { ("access.rules[\($0.number)]", $0.conditions) }
            + configuration.cache.rules.map { ("cache.rules[\($0.number)]", $0.conditions) }
        for rule in configuration.access.rules where rule.effect == .authenticate {
            errors.append(
                reader.error(
                    "access.rules[\(rule.number)]", "asks for credentials, but no authentication is configured",
                    hint: "configure access.authentication"))
        }
        for (key, conditions) in rules where conditions.dependOnUser {
            errors.append(
                reader.error(
                    key, "names users or groups, but no authentication is configured",
                    hint: "configure access.authentication"))
        }
    }
    return errors
}

/// A signed token is good for a proxy if it is from the right issuer and for this proxy: both have to be named.
private func tokenErrors(_ bearer: BearerSettings, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let section = "access.authentication.bearer.jwt"
    guard let line = reader.lines[section] else { return [] }
    guard bearer.keys != nil else {
        return [reader.error("\(section).jwks", line: line, "missing", hint: "name the keys, or remove \(section)")]
    }
    var errors: [ConfigurationError] = []
    if bearer.terms.issuer.isEmpty {
        errors.append(
            reader.error("\(section).issuer", line: line, "missing", hint: "say what iss of the tokens has to be"))
    }
    if bearer.terms.audiences.isEmpty {
        errors.append(
            reader.error("\(section).audience", line: line, "missing", hint: "say what aud of the tokens has to be"))
    }
    if case .url? = bearer.keys, bearer.terms.algorithms.contains(.hs256) {
        errors.append(
            reader.error(
                "\(section).algorithms", "HS256 needs a shared key, which cannot come from a URL",
                hint: "name a file in jwks, or remove HS256"))
    }
    return errors
}

private func dnsErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    guard configuration.dns.ttlMin > configuration.dns.ttlMax else { return [] }
    let (least, most) = (renderDuration(configuration.dns.ttlMin), renderDuration(configuration.dns.ttlMax))
    return [
        reader.error(
            "dns.ttl_min", line: reader.lines["dns.ttl_min"] ?? reader.lines["dns.ttl_max"],
            "\(least) is more than dns.ttl_max, \(most)")
    ]
}

private func interceptErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let intercept = configuration.intercept
    switch (intercept.certificateFile, intercept.keyFile) {
    case (.some, .some): return []
    case (.some, nil):
        return [
            reader.error(
                "intercept.ca.key", line: reader.lines["intercept.ca.certificate"], "missing",
                hint: ConfigurationError.authorityHint)
        ]
    case (nil, .some):
        return [
            reader.error(
                "intercept.ca.certificate", line: reader.lines["intercept.ca.key"], "missing",
                hint: ConfigurationError.authorityHint)
        ]
    case (nil, nil): break
    }
    let needing =
        (intercept.hosts.isEmpty ? [] : ["intercept.hosts"])
        + configuration.access.rules.filter { $0.intercept == true }.map { "access.rules[\($0.number)]" }
    return needing.map {
        reader.error(
            $0, "tunnels are to be opened, but intercept.ca names no authority", hint: ConfigurationError.authorityHint)
    }
}

private func opennessWarnings(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    var warnings: [ConfigurationError] = []
    let access = configuration.access
    if !access.authentication.isRequired, access.namedClients?.contains(where: \.isEverything) ?? false {
        warnings.append(
            reader.error(
                "access.clients", "everyone who can reach a listener may use the proxy",
                hint: "name the networks of your clients, or configure access.authentication"))
    }
    if let admin = configuration.admin.address, isBeyondLoopback(admin) {
        warnings.append(
            reader.error("admin.address", "\(admin) shows statistics and URLs to everyone who can reach it"))
    }
    if access.writtenDefault == .deny && access.rules.isEmpty {
        warnings.append(reader.error("access.default", "deny without rules refuses every request"))
    }
    return warnings
}

/// Routes name credentials, and each credential is of use for something.
private func credentialErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    // A list that cannot be read lacks names.
    guard !reader.hasErrors(in: "credentials"), !reader.hasErrors(in: "routes") else { return [] }
    let credentials = configuration.credentials
    var errors = configuration.routes.compactMap { rule in
        rule.credential.flatMap { name in
            routeObjection(rule, name, credentials).map { message, hint in
                reader.error("routes[\(rule.number)].credential", message, hint: hint)
            }
        }
    }
    for rule in configuration.access.rules {
        for name in rule.conditions.details.ownCredentials where !credentials.contains(where: { $0.name == name }) {
            let near = nearestName(to: name, among: credentials.map(\.name))
            errors.append(
                reader.error(
                    "access.rules[\(rule.number)]", line: rule.line, "there is no credential \(name)",
                    hint: near.map { "did you mean \($0)?" } ?? "add it to credentials"))
        }
    }
    let named = Set(configuration.routes.compactMap(\.credential))
    for rule in credentials where rule.conditions == nil && !named.contains(rule.name) {
        errors.append(
            reader.error(
                "credentials[\(rule.number)].match", line: rule.line,
                "missing, and no rule of routes names \(rule.name): nobody would get the credential",
                hint: "add match: { host: NAME }, or credential: \(rule.name) to a rule of routes"))
    }
    return errors
}

/// Why the proxies of a rule cannot get the credential with that name. Nil if they can.
private func routeObjection(
    _ rule: RouteRule, _ name: String, _ credentials: [CredentialRule]
) -> (message: String, hint: String?)? {
    guard let credential = credentials.first(where: { $0.name == name }) else {
        let near = nearestName(to: name, among: credentials.map(\.name))
        return ("there is no credential \(name)", near.map { "did you mean \($0)?" } ?? "add it to credentials")
    }
    let listed = rule.routes.compactMap { if case .proxy(let proxy) = $0 { proxy } else { nil } }
    for proxy in rule.grant?.proxies ?? listed where !credential.means.isForProxies(proxy.kind) {
        let schemes = credential.means.schemeNames.joined(separator: ", ")
        let allowed = proxy.kind == .socks5 ? "basic" : "basic, digest, ntlm, negotiate and bearer"
        return ("\(name) has the scheme \(schemes), and \(proxy) can get \(allowed)", nil)
    }
    return nil
}

/// Inside a tunnel that stays closed no credential is sent and no placeholder is replaced.
private func credentialWarnings(
    _ configuration: Configuration, _ reader: ConfigurationReader
) -> [ConfigurationError] {
    // A rule that opens tunnels may concern any host.
    guard !configuration.access.rules.contains(where: { $0.intercept == true || $0.profile != nil }) else { return [] }
    let opened = configuration.intercept.isOn ? configuration.intercept.hosts : []
    return configuration.credentials.filter { !$0.allowsPlainHTTP && !isForHTTPAlone($0) }.flatMap { credential in
        (credential.conditions?.hosts ?? []).filter { host in !opened.contains { $0.covers(host) } }.map { host in
            reader.error(
                "credentials[\(credential.number)].match.host",
                "tunnels to \(host) are not opened, so the credential \(credential.name) cannot be used in them",
                hint: "add \(host) to intercept.hosts")
        }
    }
}

/// Credentials that are never sent, because all requests that they are for could be read on the way.
private func withheldWarnings(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    configuration.credentials.compactMap { credential in
        guard !credential.allowsPlainHTTP, let conditions = credential.conditions else { return nil }
        let reason: String
        if isForHTTPAlone(credential) {
            reason = "its requests come over http"
        } else if conditions.hosts.allSatisfy({ provesNothing($0, configuration.origins) }) {
            reason = "its origins prove nothing: their rule of origins says verify: no"
        } else {
            return nil
        }
        return reader.error(
            "credentials[\(credential.number)].match", "the credential \(credential.name) is never sent: \(reason)",
            hint: "let clients use https, or add plain_http: yes, with which everybody on the way can read it")
    }
}

private func isForHTTPAlone(_ credential: CredentialRule) -> Bool {
    credential.conditions.map { $0.schemes == [.http] || $0.ports == [80...80] } ?? false
}

/// Whether all requests to the host go over TLS that does not prove who the origin is, or over http.
private func provesNothing(_ host: HostPattern, _ rules: [OriginRule]) -> Bool {
    let first = rules.first { rule in
        rule.conditions.hosts.isEmpty || rule.conditions.hosts.contains { $0.covers(host) || host.covers($0) }
    }
    guard let first, let tls = first.tls else { return false }
    var conditions = RuleConditions()
    conditions.hosts = first.conditions.hosts
    return first.conditions == conditions && conditions.hosts.contains { $0.covers(host) }
        && tls.verification == .none && tls.pins.isEmpty
}

/// Whoever can change a PAC file on its way here chooses the proxies.
private func scriptWarnings(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    configuration.routes.compactMap { rule in
        guard case .script(.url(let url), _) = rule.ways, url.scheme == .http, !isThisMachine(url) else { return nil }
        return reader.error(
            "routes[\(rule.number)].pac",
            "everybody on the way to \(url.host) can replace the script, and read what its proxies get",
            hint: "use https")
    }
}

private func isThisMachine(_ url: TargetURI) -> Bool {
    switch DestinationHost(url.host.utf8) {
    case .address(let address)?: addressClass(address) == .loopback
    case .name(let name)?: name == "localhost"
    case nil: false
    }
}

/// A rule may allow older versions of TLS than all others, but only by name.
private func originErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    configuration.origins.compactMap { rule in
        guard let tls = rule.tls, let maximum = tls.maxVersion, tls.minVersion == nil,
            maximum < configuration.tls.minVersion
        else { return nil }
        return reader.error(
            "origins[\(rule.number)].tls.max_version",
            "\(maximum.rawValue) is below tls.min_version, which is \(configuration.tls.minVersion.rawValue)",
            hint: "add min_version: \"\(maximum.rawValue)\"")
    }
}
