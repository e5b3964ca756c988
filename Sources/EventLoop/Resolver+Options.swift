extension Resolver {
    /// Which addresses of a name are used, and which come first.
    package enum FamilyPreference: String, CaseIterable, Sendable {
        /// Both, in the order of RFC 6724.
        case any
        case ipv4
        case ipv6
        case preferIPv4 = "prefer-ipv4"
        case preferIPv6 = "prefer-ipv6"
    }

    package struct Options: Sendable {
        /// The least and the longest time for which an answer is used, whatever its time-to-live (RFC 1035 §3.2.1).
        package var ttlMin: Duration = .seconds(1)
        package var ttlMax: Duration = .seconds(3600)
        /// How long the answer that a name does not exist is used (RFC 2308). Other failures are used for `ttlMin`.
        package var negativeTTL: Duration = .seconds(5)
        /// How long after their expiry addresses are used if no server answers (RFC 8767).
        package var stale: Duration = .seconds(3600)
        /// How long look-ups wait for an answer if there are expired addresses (RFC 8767 §5: "client response timer").
        package var refreshWait: Duration = .milliseconds(1800)
        /// How long expired addresses are used before their name is asked for again (RFC 8767 §4: "failure recheck timer").
        package var refreshPause: Duration = .seconds(30)
        package var family: FamilyPreference = .any
        /// How long the addresses of one family wait for those of the other (RFC 8305 §3: "Resolution Delay"). A server that is silent about one family
        /// then holds up nobody who can use the other.
        package var resolutionDelay: Duration = .milliseconds(50)
        package var entriesMax = 10_000
        /// The most addresses of one family that are taken from an answer. Nobody tries more within a time limit.
        package var addressesMax = 128
        /// The most queries at a time, those included that nobody waits for any more. Nobody who asks has more than are left for others.
        package var queriesMax = 4_000
        /// How long to wait for one server before the query is sent again. Doubles with each round.
        package var timeout: Duration = .seconds(2)
        /// The number of rounds through all servers.
        package var tries = 3
        /// Name servers as `address:port`. Nil: those of resolv.conf.
        package var servers: [String]?
        /// Other servers for names that end in a suffix. The longest suffix counts.
        package var suffixes: [SuffixServers] = []
        package var resolvConf = "/etc/resolv.conf"
        /// Nil: there is none.
        package var hostsFile: String? = "/etc/hosts"
        /// Addresses that need neither a server nor a file.
        package var staticHosts: [StaticHost] = []
        /// After so long without an answer, servers count as silent. A look-up that only tries them waits no longer.
        package var silence: Duration = .seconds(1)
        /// Says whether servers are asked. Nil: they always are.
        package var judge: (any NameServerJudge)?
        /// How often the files are looked at, at most.
        package var fileCheckPause: Duration = .seconds(2)

        package init() {}
    }

    /// The name servers for a domain.
    package struct SuffixServers: Sendable {
        /// In lower case, without dots at its ends. It matches itself and the names below it.
        package var suffix: String
        /// As `address:port`.
        package var servers: [String]

        package init(suffix: String, servers: [String]) {
            self.suffix = suffix
            self.servers = servers
        }
    }

    /// A name, or all names below one, with their addresses.
    package struct StaticHost: Sendable {
        /// In lower case; `*.example.test` stands for all names below example.test.
        package var pattern: String
        package var addresses: [SocketAddress]

        package init(pattern: String, addresses: [SocketAddress]) {
            self.pattern = pattern
            self.addresses = addresses
        }
    }

    package struct Resolution: Sendable, Equatable {
        /// At least one address, the best one first. The ports are zero.
        package var addresses: [SocketAddress]
        package var expires: MonotonicTime
        /// The addresses had expired, and no server answers.
        package var isStale = false
    }

    /// Counts since the start. The share of `cacheHits` tells whether the cache is large enough.
    package struct Stats: Sendable, Equatable {
        package var queries: UInt64 = 0
        package var cacheHits: UInt64 = 0
        /// Look-ups that waited for a query that was under way already.
        package var joined: UInt64 = 0
        package var failures: UInt64 = 0
        /// Look-ups that got expired addresses.
        package var stale: UInt64 = 0
        /// Look-ups for which servers were not asked, because they had been silent.
        package var unasked: UInt64 = 0
    }
}

extension Resolver.FamilyPreference {
    /// The addresses that may be used, the preferred ones first.
    func apply(to addresses: [SocketAddress]) -> [SocketAddress] {
        let v4 = addresses.filter { $0.family == .v4 }
        let v6 = addresses.filter { $0.family == .v6 }
        return switch self {
        case .any: addresses
        case .ipv4: v4
        case .ipv6: v6
        case .preferIPv4: v4 + v6
        case .preferIPv6: v6 + v4
        }
    }
}
