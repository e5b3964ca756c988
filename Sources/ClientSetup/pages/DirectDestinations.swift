import JSON
package import Message

/// What browsers reach without the proxy (`pac.direct`), beside what is on their own machine.
package struct DirectDestinations: Equatable, Sendable {
    /// Names and addresses as browsers write them, in lower case.
    package var hosts: [String] = []
    /// With the leading dot: the names below it.
    package var suffixes: [String] = []
    package var networks: [Network] = []

    package init() {}

    /// A network of IPv4. PAC files cannot compare IPv6 networks in every browser.
    package struct Network: Equatable, Sendable {
        let address: String
        let mask: String

        package init(_ first: IPAddress, prefixLength: Int) {
            precondition(first.isV4 && (0...32).contains(prefixLength), "a network of IPv4")
            address = "\(first)"
            mask = "\(IPAddress(v4: prefixLength == 0 ? 0 : ~0 << UInt32(32 - prefixLength)))"
        }
    }

    package var isEmpty: Bool { self == DirectDestinations() }

    /// An expression of JavaScript that is true for these. No name is looked up: a browser would wait for it, and names that resolve to such
    /// addresses may only be known to the proxy.
    var condition: String {
        var parts = hosts.flatMap { host in
            ["host === \(jsonString(host))"] + (host.contains(":") ? ["host === \(jsonString("[\(host)]"))"] : [])
        }
        parts += suffixes.map { "dnsDomainIs(host, \(jsonString($0)))" }
        let nets = networks.map { "isInNet(host, \"\($0.address)\", \"\($0.mask)\")" }
        if !nets.isEmpty {
            parts.append("(/^\\d+\\.\\d+\\.\\d+\\.\\d+$/.test(host) && (\(nets.joined(separator: " || "))))")
        }
        return parts.joined(separator: "\n      || ")
    }
}
