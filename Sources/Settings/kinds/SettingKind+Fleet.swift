import Message
import Rules
import Texts

extension SettingKind where Value == RedisURL {
    static var redisURL: SettingKind {
        let kind = SettingKind.scalar(
            "rediss://user@host:6379/0 or redis://host, with user, port and number of the database if they are others",
            parse: { RedisURL($0) }, render: { yamlQuoted("\($0)") },
            hint: { text in
                text.hasPrefix("unix:") || text.hasPrefix("/")
                    ? "sockets of this machine are not supported: name a loopback address" : nil
            })
        return SettingKind(
            allowed: kind.allowed,
            read: { node, problems in
                // Errors end up in logs, so this one does not repeat the URL.
                if case .scalar(let text, _) = node.value, RedisURL(text) == nil, hasPassword(text) {
                    problems.append(
                        SettingProblem(
                            node, message: "found a URL with a password",
                            hint: "the password belongs in fleet.redis.password_file"))
                    return nil
                }
                return kind.read(node, &problems)
            }, render: kind.render)
    }
}

/// Whether a colon is before the last `@` of what follows the scheme.
private func hasPassword(_ text: String) -> Bool {
    guard let at = text.lastIndex(of: "@") else { return false }
    let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
    return start < at && text[start..<at].contains(":")
}

extension SettingKind where Value == String {
    static var nodeName: SettingKind {
        .scalar(
            "a name of 1 to 64 letters, digits, \"-\", \".\" and \"_\"",
            parse: { text in
                (1...64).contains(text.utf8.count)
                    && text.utf8.allSatisfy { byte in
                        switch byte {
                        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                        default: false
                        }
                    } ? text : nil
            }, render: { $0 })
    }
}

extension SettingKind where Value == FleetPeersSetting {
    static var fleetPeers: SettingKind {
        let nodes = SettingKind<FleetNodeAddress>.fleetNode.list()
        return SettingKind(
            allowed:
                "a list of nodes as \"10.20.0.11:3130\", each also with \" weight=2\", or one name with a port, whose addresses are the nodes",
            read: { node, problems in
                guard case .scalar(let text, _) = node.value, let one = FleetNodeAddress(text), one.weight == 1,
                    IPAddress(strict: one.host.utf8) == nil
                else { return nodes.read(node, &problems).map { .nodes($0) } }
                return .name(one.host, port: one.port)
            },
            render: { value in
                switch value {
                case .nodes(let all): nodes.render(all)
                case .name(let host, let port): "\"\(host):\(port)\""
                }
            })
    }
}

extension SettingKind where Value == FleetNodeAddress {
    fileprivate static var fleetNode: SettingKind {
        .scalar(
            "a host and a port, \"10.20.0.11:3130\", perhaps with \" weight=2\" (1 to 100)",
            parse: { FleetNodeAddress($0) },
            render: { yamlQuoted("\($0)") })
    }
}

extension SettingKind where Value == ListenAddress {
    /// Where other nodes connect to.
    static var peerAddress: SettingKind {
        .scalar(
            "an address and a port, 10.20.0.11:3130",
            parse: { text in
                guard let address = ListenAddress(text), case .tcp = address else { return nil }
                return address
            }, render: { yamlQuoted("\($0)") })
    }
}
