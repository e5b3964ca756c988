package import Message
import Rules

/// Of what a limit has one bucket each.
package enum LimitScope: String, CaseIterable, Sendable {
    /// Each address. An IPv6 network of 64 bits counts as one, because that is what one client gets.
    case client
    /// Each user. A request without one counts for its address.
    case user
    /// Each group of the user. A request without one is not concerned.
    case group
    /// All requests together.
    case all
}

/// Whose bucket it is.
package enum LimitSubject: Hashable, Sendable {
    case all
    /// An IPv4 address, or the first address of an IPv6 network of 64 bits.
    case client(IPAddress)
    /// Clients on a Unix socket, which have no address.
    case local
    case user(String)
    case group(String)
    /// Those for whom there was no room in the table of buckets.
    case others

    package init(client: IPAddress?) {
        guard let client else {
            self = .local
            return
        }
        self = .client(client.isV4 ? client : IPAddress(v6: client.v6.high, low: 0))
    }

    /// Whether a refusal is the client's own matter. Otherwise others have used up what all share.
    package var isOfClient: Bool { self != .all && self != .others }

    /// Kind and name, as files and other nodes know it.
    package var stored: (kind: String, name: String) {
        switch self {
        case .all: ("all", "")
        case .local: ("local", "")
        case .others: ("others", "")
        case .client(let address): ("client", "\(address)")
        case .user(let name): ("user", name)
        case .group(let name): ("group", name)
        }
    }

    /// Whether it is the same on all nodes of a fleet.
    package var isOfFleet: Bool { self != .local && self != .others }

    /// `all`, `client 192.0.2.1`, `client 2001:db8::/64`, `user ann`, `group builders`.
    package var description: String {
        switch self {
        case .all: "all"
        case .client(let address): address.isV4 ? "client \(address)" : "client \(address)/64"
        case .local: "client on a Unix socket"
        case .user(let name): "user \(name)"
        case .group(let name): "group \(name)"
        case .others: "all others"
        }
    }
}

extension LimitScope {
    /// The subjects of a request. Several, if its user is in several groups.
    func subjects(of identity: Identity?, _ client: IPAddress?) -> [LimitSubject] {
        switch self {
        case .all: [.all]
        case .client: [LimitSubject(client: client)]
        case .user: [identity.map { .user($0.name) } ?? LimitSubject(client: client)]
        case .group: identity?.groups.map { .group($0) } ?? []
        }
    }
}
