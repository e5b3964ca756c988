import Access
import Message
import Rules
import Settings

/// What `larder check -v` shows: what holds in the end, defaults included.
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
        ("cache.disk", cache.disk.map(text) ?? "none"),
        ("cache.collapse", cache.collapse ? "yes" : "no"),
        ("cache.negative_ttl", renderDuration(.seconds(cache.negativeTTL.count))),
        ("cache.targeted_fields", cache.targetedFields ? "yes" : "no"),
        ("cache.policy_clients", cache.policyClients.isEmpty ? "nobody" : list(cache.policyClients)),
        ("access.clients", access.clients.map(list) ?? "whoever authenticates"),
        ("access.private_destinations", access.privateDestinations.rawValue),
        ("access.authentication", access.authentication.map { "basic, users in \($0.usersFile)" } ?? "none"),
        ("log.access", text(configuration.log.access)),
        ("log.level", configuration.log.level.rawValue),
    ]
    let settings = rows.map { "  \(padded($0.0, 30))\($0.1)" }
    return (["", "Settings"] + settings).joined(separator: "\n")
}

private func list(_ ranges: [AddressRange]) -> String { ranges.map { "\($0)" }.joined(separator: ", ") }

private func text(_ disk: ZoneDisk) -> String {
    let pinned = binarySize(Double(disk.pinned))
    return
        "\(binarySize(Double(disk.size))) in \(disk.path), \(pinned) of it for what is pinned; sync \(renderDuration(disk.sync))"
}

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
