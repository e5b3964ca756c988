import Message
import Routing
import Origins

/// `connections` of a rule for origins.
extension SettingKind where Value == OriginRule.Connections {
    static var connections: SettingKind {
        let allowed = "keys such as max: 16, persistent: no and family: prefer-ipv6"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                guard var reader = MappingReader(node, expected: allowed, problems: &problems) else { return nil }
                let connections = readConnections(&reader)
                return reader.finish("key", into: &problems) ? connections : nil
            }, render: { _ in "" })
    }
}

private enum HTTPVersionName: String, CaseIterable, Sendable {
    case http10 = "1.0"
    case http11 = "1.1"
}

private func readConnections(_ reader: inout MappingReader) -> OriginRule.Connections {
    var connections = OriginRule.Connections()
    connections.countMax = reader.value("max", .count(1...65_535))
    connections.persists = reader.value("persistent", .flag)
    connections.idle = reader.value("idle", .duration(.zero ... .hours(24)))
    connections.carriesBodies = reader.value("reuse_for_bodies", .flag)
    connections.isHTTP10 = reader.value("http", SettingKind<HTTPVersionName>.choice).map { $0 == .http10 }
    let family = reader.value("family", SettingKind<Dialling.Family>.choice)
    let sources = reader.value("source", SettingKind<IPAddress>.ownAddress.list())
    let device = reader.value("interface", SettingKind<String>.interface)
    let fastOpen = reader.value("fast_open", .flag)
    let keepAlive = reader.value("tcp_keepalive", .duration(.seconds(1) ... .hours(9)))
    if let sources, Set(sources.map(\.isV4)).count < sources.count {
        reader.refuse("source", "there are two addresses of one family", hint: "name one of each at most")
    }
    if family != nil || sources != nil || device != nil || fastOpen != nil || keepAlive != nil {
        connections.dialling = Dialling(
            family: family ?? .any, sources: sources ?? [], device: device, fastOpen: fastOpen ?? false,
            keepAlive: keepAlive)
    }
    if let sources, let family, Dialling(family: family, sources: sources).select(sources).isEmpty {
        reader.refuse("family", "no address of source is of this family")
    }
    for key in ["persistent", "idle", "reuse_for_bodies"] where connections.isHTTP10 == true {
        reader.refuse(key, "with HTTP/1.0 each request has a connection of its own", hint: "leave it out")
    }
    return connections
}

extension SettingKind where Value == IPAddress {
    fileprivate static var ownAddress: SettingKind {
        scalar("an address of this machine", parse: { IPAddress(strict: $0.utf8) }, render: { "\($0)" })
    }
}

extension SettingKind where Value == String {
    /// The kernel's names have at most 15 bytes.
    fileprivate static var interface: SettingKind {
        scalar(
            "the name of a network interface",
            parse: { text in
                (1...15).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x2F && $0 < 0x7F }
                    ? text : nil
            }, render: { $0 })
    }
}
