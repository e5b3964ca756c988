import EventLoop
import Settings

extension Resolver.Options {
    /// - Parameter judge: what the resolvers of a running proxy share. A command has none.
    init(_ dns: DNSSettings, judge: NameServerWatch? = nil) {
        self.init()
        self.judge = judge
        ttlMin = dns.ttlMin
        ttlMax = dns.ttlMax
        negativeTTL = dns.negative
        stale = dns.stale
        family = Resolver.FamilyPreference(dns.family)
        hostsFile = dns.hostsFile
        staticHosts = dns.hosts.map { entry in
            Resolver.StaticHost(pattern: entry.name, addresses: entry.values.map { SocketAddress($0, port: 0) })
        }
        suffixes = dns.suffixes.map { entry in
            Resolver.SuffixServers(suffix: entry.name, servers: entry.values.map { "\($0)" })
        }
        if !dns.servers.isEmpty { servers = dns.servers.map { "\($0)" } }
    }
}

extension Resolver.FamilyPreference {
    init(_ family: DNSSettings.AddressFamily) {
        self =
            switch family {
            case .any: .any
            case .ipv4: .ipv4
            case .ipv6: .ipv6
            case .preferIPv4: .preferIPv4
            case .preferIPv6: .preferIPv6
            }
    }
}
