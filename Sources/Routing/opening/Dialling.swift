package import Message

/// From where, and over which family of addresses, connections are dialled.
///
/// A class: all keys of connections for which it holds share one object.
package final class Dialling: Sendable {
    /// Which addresses of a host are tried, and which first.
    package enum Family: String, CaseIterable, Sendable {
        case any, ipv4, ipv6
        case preferIPv4 = "prefer-ipv4"
        case preferIPv6 = "prefer-ipv6"
    }

    package let family: Family
    /// The addresses that this machine shows, at most one of each family. If there is one, only its family is dialled. Empty: the kernel chooses.
    package let sources: [IPAddress]
    /// The network interface. Nil: the kernel chooses.
    package let device: String?
    /// Whether the first bytes are sent with the SYN (RFC 7413), where the kernel can do that.
    package let fastOpen: Bool
    /// After so much silence the kernel asks whether the other side is still there. Nil: never.
    package let keepAlive: Duration?

    package init(
        family: Family = .any, sources: [IPAddress] = [], device: String? = nil, fastOpen: Bool = false,
        keepAlive: Duration? = nil
    ) {
        self.family = family
        self.sources = sources
        self.device = device
        self.fastOpen = fastOpen
        self.keepAlive = keepAlive
    }

    /// As the kernel sees fit.
    package static let general = Dialling()

    /// The addresses that may be dialled, the preferred family first. Otherwise the order stays.
    package func select(_ addresses: [IPAddress]) -> [IPAddress] {
        let usable = sources.isEmpty ? addresses : addresses.filter { source(for: $0) != nil }
        switch family {
        case .any: return usable
        case .ipv4: return usable.filter(\.isV4)
        case .ipv6: return usable.filter { !$0.isV4 }
        case .preferIPv4: return usable.filter(\.isV4) + usable.filter { !$0.isV4 }
        case .preferIPv6: return usable.filter { !$0.isV4 } + usable.filter(\.isV4)
        }
    }

    /// The address to show to this one.
    package func source(for address: IPAddress) -> IPAddress? { sources.first { $0.isV4 == address.isV4 } }
}

extension Dialling: Hashable {
    package static func == (a: Dialling, b: Dialling) -> Bool {
        a === b
            || (a.family == b.family && a.sources == b.sources && a.device == b.device && a.fastOpen == b.fastOpen
                && a.keepAlive == b.keepAlive)
    }

    /// Few rules differ in these.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(family)
        hasher.combine(fastOpen)
    }
}

extension Dialling: CustomStringConvertible {
    /// `from 192.0.2.1, ipv4`; empty for the general one.
    package var description: String {
        var parts: [String] = []
        if !sources.isEmpty { parts.append("from \(sources.map { "\($0)" }.joined(separator: ", "))") }
        if let device { parts.append("through \(device)") }
        if family != .any { parts.append(family.rawValue) }
        if fastOpen { parts.append("TCP Fast Open") }
        if let keepAlive { parts.append("TCP keep-alive \(keepAlive.components.seconds)s") }
        return parts.joined(separator: ", ")
    }
}

/// How connections to an origin are made and used.
package struct ConnectionTerms: Equatable, Sendable {
    /// How many there may be, for each worker.
    package var countMax: Int
    /// Whether a connection is used for more than one request.
    package var persists = true
    /// How long one that is not used is kept.
    package var idle: Duration
    /// Whether requests with a body may go out on connections that were used before. If such a connection turns out to be closed, the request
    /// fails: its body cannot be sent again.
    package var carriesBodies = false
    /// Requests are sent as HTTP/1.0 (RFC 1945), each on a connection of its own.
    package var isHTTP10 = false
    package var dialling: Dialling

    package init(countMax: Int, idle: Duration, dialling: Dialling = .general) {
        self.countMax = countMax
        self.idle = idle
        self.dialling = dialling
    }

    /// Whether a connection can be used again.
    package var mayPersist: Bool { persists && !isHTTP10 }
}
