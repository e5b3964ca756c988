import Message

/// `fleet.peers`: the nodes that share large bodies.
package enum FleetPeersSetting: Sendable, Hashable {
    /// Every node by itself.
    case nodes([FleetNodeAddress])
    /// A name whose addresses are the nodes, all with this port.
    case name(String, port: UInt16)

    /// The names and addresses to look for.
    package var hosts: Set<String> {
        switch self {
        case .nodes(let nodes): Set(nodes.map(\.host))
        case .name(let host, _): [host]
        }
    }
}

/// Where a node is asked by others: `10.20.0.11:3130`, `cache-1.internal:3130`, `[2001:db8::1]:3130`, each also with ` weight=2` behind it.
package struct FleetNodeAddress: Sendable, Hashable, CustomStringConvertible {
    /// A name in lower case, or an address without brackets.
    package let host: String
    package let port: UInt16
    /// How much more the node owns than one with weight 1.
    package let weight: Int

    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard (1...2).contains(words.count), let place = FleetNodeAddress.place(String(words[0]).lowercased()) else {
            return nil
        }
        (host, port) = place
        guard words.count == 2 else {
            weight = 1
            return
        }
        let digits = words[1].dropFirst(7)
        guard words[1].hasPrefix("weight="), !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(digits), (1...100).contains(number)
        else { return nil }
        weight = number
    }

    /// `host:port`, with a port.
    static func place(_ text: String) -> (host: String, port: UInt16)? {
        guard let (host, port) = RedisURL.place(text), let port else { return nil }
        return (host, port)
    }

    /// What all nodes call it.
    package var name: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    package var description: String { weight == 1 ? name : "\(name) weight=\(weight)" }
}

/// `fleet.node.peer`: how the others reach this node.
package struct FleetListenerSettings: Sendable, Hashable {
    /// The address that the others connect to.
    package var address: ListenAddress?
    /// Paths of PEM files.
    package var certificateFile: String?
    package var keyFile: String?
    package var authorityFile: String?

    package init() {}

    package var tls: ListenerTLSSettings? {
        guard let certificateFile, let keyFile, let authorityFile else { return nil }
        var settings = ListenerTLSSettings(certificateFile: certificateFile, keyFile: keyFile)
        settings.isRequired = true
        settings.clientAuthorityFile = authorityFile
        return settings
    }
}
