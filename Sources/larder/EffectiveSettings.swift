import Access
import Message
import Settings

/// What `larder check -v` shows: what holds in the end, defaults included, and the rules in their order.
func effectiveSettings(_ configuration: Configuration) -> String {
    let access = configuration.access
    let cache = configuration.cache
    let rows: [(String, String)] = [
        ("listen", configuration.listen.map(\.description).joined(separator: ", ")),
        ("workers", text(configuration.workers)),
        ("admin.address", configuration.admin.address?.description ?? "off"),
        ("admin.socket", configuration.admin.socket ?? "off"),
        ("admin changes over TCP", configuration.admin.tokenFile.map { "with the token in \($0)" } ?? "none"),
        ("cache.memory", binarySize(Double(cache.memory))),
        ("cache.object_size_max", binarySize(Double(cache.objectSizeMax))),
        ("cache.disk", cache.diskSize == 0 ? "none" : "\(binarySize(Double(cache.diskSize))) in \(cache.diskPath)"),
        ("cache.collapse", cache.collapse ? "yes" : "no"),
        ("access.clients", access.clients.map(list) ?? "whoever authenticates"),
        ("access.private_destinations", access.privateDestinations.rawValue),
        ("access.authentication", access.authentication.map { "basic, users in \($0.usersFile)" } ?? "none"),
        ("log.access", text(configuration.log.access)),
        ("log.level", configuration.log.level.rawValue),
    ]
    let settings = rows.map { "  \(padded($0.0, 30))\($0.1)" }
    return (["", "Settings"] + settings + ["", "Rules"] + ruleLines(access)).joined(separator: "\n")
}

private func ruleLines(_ access: AccessSettings) -> [String] {
    access.rules.map { "  \(padded("\($0.number).", 4))\(text($0))" }
        + ["  \(padded("", 4))otherwise: \(access.defaultEffect.rawValue)"]
}

private func text(_ rule: AccessRule) -> String {
    let conditions = rule.conditions
    let parts: [(String, [String])] = [
        ("host", conditions.hosts.map { "\($0)" }), ("address", conditions.addresses.map { "\($0)" }),
        ("port", conditions.ports.map(text)), ("method", conditions.methods), ("user", conditions.users),
        ("client", conditions.clients.map { "\($0)" }),
    ]
    let named = parts.filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1.joined(separator: ", "))" }
    let holds = named.isEmpty ? "everything" : named.joined(separator: "; ")
    switch rule.effect {
    case .allow: return "allow: \(holds)"
    case .deny(let reason): return "deny: \(holds)" + (reason.map { " (\"\($0)\")" } ?? "")
    }
}

private func text(_ range: ClosedRange<UInt16>) -> String {
    range.lowerBound == range.upperBound ? "\(range.lowerBound)" : "\(range.lowerBound)-\(range.upperBound)"
}

private func list(_ ranges: [AddressRange]) -> String { ranges.map { "\($0)" }.joined(separator: ", ") }

private func text(_ workers: Workers) -> String {
    switch workers {
    case .auto: "auto"
    case .count(let count): "\(count)"
    }
}

private func text(_ target: AccessLogTarget) -> String {
    switch target {
    case .stdout: "stdout"
    case .off: "off"
    case .file(let path): path
    }
}
