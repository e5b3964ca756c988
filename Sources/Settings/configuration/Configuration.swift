package import Access
package import Caching
package import Interception
package import Limiting
package import Message
package import Routing
package import Origins
package import Rules

/// Every setting as a typed value. A request keeps the configuration that it started with.
///
/// `Configuration()` is what Larder does without a file, once a directory for the disk tier was chosen (`DefaultDisk`). Meanings, bounds
/// and defaults are declared in `Settings`.
package struct Configuration: Sendable, Equatable {
    package var listen: [ListenerSettings] = [.tcp(IPAddress(v4: 0x7F00_0001), port: 3128)]
    package var workers: Workers = .auto
    package var admin = AdminSettings()
    package var cache = CacheSettings()
    package var access = AccessSettings()
    package var learn = LearnSettings()
    package var fleet = FleetSettings()
    package var intercept = InterceptSettings()
    package var log = LogSettings()
    package var timeouts = TimeoutSettings()
    package var retries = RetrySettings()
    package var circuit = CircuitSettings()
    package var pac = PACSettings()
    package var bandwidth = BandwidthPlan()
    package var tls = TLSSettings()
    package var dns = DNSSettings()
    package var limits = Limits()
    /// `limits.rules`
    package var limitPlan = LimitPlan()
    /// `limits.budgets_file`. Nil: budgets begin anew when Larder starts.
    package var budgetsFile: String?
    /// In bytes, of the process. Nil: what the control group allows.
    package var memoryMax: UInt64?
    package var recipes: [RecipeUse] = []
    package var routes: [RouteRule] = []
    package var origins: [OriginRule] = []
    package var cookieJars: [CookieJarSettings] = []
    /// What Larder proves to origins.
    package var credentials: [CredentialRule] = []

    package init() {}
}

/// The number of worker threads.
package enum Workers: Sendable, Equatable {
    /// One for each core that this process may run on.
    case auto
    case count(Int)
}

package struct AdminSettings: Sendable, Equatable {
    /// Nil if the admin server does not listen on TCP. Never `.unix`.
    package var address: ListenAddress? = .tcp(IPAddress(v4: 0x7F00_0001), port: 3129)
    /// The path of the Unix socket that the commands use. Nil if there is none.
    package var socket: String? = "/run/larder/admin.sock"
    /// The file whose first line is the token that allows changes over TCP. Nil if changes over TCP are not allowed.
    package var tokenFile: String?
}

package struct LearnSettings: Sendable, Equatable {
    /// The directory of the journals of jobs, as written. Nil if it is left out.
    package var directory: String?

    package init() {}

    /// The directories that are tried if none is written.
    ///
    /// - Parameter environment: the value of a variable; nil if it is not set.
    package static func directories(environment: (String) -> String?) -> [String] {
        DefaultDisk.directories(environment: environment).map { "\($0)-learn" }
    }
}

package struct CacheSettings: Sendable, Equatable {
    /// In bytes.
    package var memory: UInt64 = 256 << 20
    /// `cache.disk.path` as written. Nil if it is left out.
    package var writtenDiskPath: String?
    /// `cache.disk.size` in bytes, as written. Nil if it is left out. Zero means memory only.
    package var writtenDiskSize: UInt64?
    /// Path and size that apply if they are left out.
    package var defaultDisk = DefaultDisk.notChosen
    /// `cache.disk.pinned` in bytes, as written. Nil if it is left out.
    package var writtenDiskPinned: UInt64?
    /// How often stored responses are forced to the disk, in every zone with a disk.
    package var diskSync: Duration = .seconds(2)
    package var collapse = true
    /// `cache.object_size_max` in bytes, as written. Nil if it is left out.
    package var writtenObjectSizeMax: UInt64?
    package var heuristicLifetimeMax: Duration = .seconds(86_400)
    /// How long a 404 or 410 is fresh if the origin does not say. With zero, RFC 9111 decides.
    package var negativeTTL: Seconds = Seconds(5)
    /// Whether targeted fields replace `Cache-Control` (RFC 9213).
    package var targetedFields = false
    /// The clients whose `Larder-Policy` is obeyed.
    package var policyClients: [AddressRange] = []
    package var compression = CompressionSettings()
    /// All zones except the default one.
    package var writtenZones: [WrittenZone] = []
    package var rules: [CacheRule] = []

    /// All zones except the default one.
    package var zones: [CacheZone] {
        get { writtenZones.map(\.zone) }
        set { writtenZones = newValue.map { WrittenZone($0) } }
    }

    package var diskPath: String { writtenDiskPath ?? defaultDisk.path }

    /// In bytes. Zero means memory only.
    package var diskSize: UInt64 { writtenDiskSize ?? defaultDisk.size }

    /// The largest body that is stored, in bytes.
    package var objectSizeMax: UInt64 { writtenObjectSizeMax ?? max(memory, diskSize) / 8 }
}

/// What is compressed if a rule says `compress`.
package struct CompressionSettings: Sendable, Equatable {
    /// The types as written. Nil if they are left out: then the types that are known to compress well.
    package var writtenTypes: [MediaTypePattern]?
    /// The smallest body that is compressed, in bytes.
    package var sizeMin: UInt64 = 1 << 10

    package var types: [MediaTypePattern] { writtenTypes ?? Self.usualTypes }

    package static let usualTypes = [
        "text/*", "application/json", "application/*+json", "application/xml", "application/*+xml",
        "application/javascript",
        "application/wasm", "image/svg+xml",
    ].compactMap { MediaTypePattern($0) }
}

package struct LogSettings: Sendable, Equatable {
    package var access: AccessLogTarget = .stdout
    package var level: LogLevel = .info
    /// What is logged at the level `debug`.
    package var debug: [LogCategory] = LogCategory.allCases

    package init() {}
}

package enum AccessLogTarget: Sendable, Equatable {
    case stdout, off
    /// The path of a file.
    case file(String)
}

package enum LogLevel: String, CaseIterable, Sendable { case error, warning, info, debug }

/// What a line of the level `debug` is about.
@usableFromInline
package enum LogCategory: String, CaseIterable, Sendable {
    /// Connections to origins: opened, used again, waited for, closed.
    case connections
    /// Addresses of names, as far as connections need them.
    case dns
    /// Requests to origins, their answers, and attempts that are repeated.
    case requests
    /// Log-ins at origins and next proxies.
    case authentication
    case tls
    /// Which way requests go.
    case routes
    /// Bodies that break off, are resumed or ended.
    case transfers
}

package struct TimeoutSettings: Sendable, Equatable {
    package var clientHead: Duration = .seconds(30)
    package var clientIdle: Duration = .seconds(60)
    package var connect: Duration = .seconds(10)
    package var firstByte: Duration = .seconds(60)
    /// Between two reads of an origin's body, and between two writes to a client that does not read.
    package var idle: Duration = .seconds(60)
    /// For a whole response of an origin. Nil: without limit.
    package var total: Duration?
    /// For the head of a response that another request is already fetching.
    package var collapse: Duration = .seconds(30)
    package var originKeepAlive: Duration = .seconds(60)
    package var tunnelIdle: Duration = .seconds(600)
    package var drain: Duration = .seconds(30)

    // Of the settings that `origins` can replace.
    static let connectBounds: ClosedRange<Duration> = .milliseconds(100) ... .minutes(10)
    static let firstByteBounds: ClosedRange<Duration> = .milliseconds(100) ... .hours(24)
    static let idleBounds: ClosedRange<Duration> = .milliseconds(100) ... .hours(24)
    static let totalBounds: ClosedRange<Duration> = .seconds(1) ... .days(7)
}

/// How often requests are sent again that an origin did not answer.
package struct RetrySettings: Sendable, Equatable {
    /// For one request.
    package var countMax = 1
    /// Before the first repetition. Each further pause is twice as long.
    package var pause: Duration = .milliseconds(100)
    /// How many of a hundred requests may be repeated, on average.
    package var budgetPercent = 10
}

/// When origins that do not accept connections are not tried.
package struct CircuitSettings: Sendable, Equatable {
    /// After so many time-outs in a row. Zero: origins are always tried.
    package var failuresMax = 3
    package var pause: Duration = .seconds(5)
    package var pauseMax: Duration = .seconds(30)

    package var terms: Circuit.Terms? {
        guard failuresMax > 0 else { return nil }
        return Circuit.Terms(failuresMax: failuresMax, pause: pause, pauseMax: max(pause, pauseMax))
    }
}

/// How PAC files are asked.
package struct PACSettings: Sendable, Equatable {
    package var timeout: Duration
    /// Scripts may look at the time, and at what names resolve to.
    package var lifetime: Duration

    /// For a script that comes from a URL: how long after a success it is fetched again.
    package var refresh: Duration = .hours(1)
    /// For a fetch, redirects included. The start waits so long, too.
    package var fetchTimeout: Duration = .seconds(10)

    /// What `/proxy.pac` sends around the proxy.
    package var direct: [DirectDestination] = []

    package init(timeout: Duration = .seconds(2), lifetime: Duration = .minutes(5)) {
        self.timeout = timeout
        self.lifetime = lifetime
    }
}

/// A value of `pac.direct`: a host, or a network of IPv4.
package enum DirectDestination: Sendable, Equatable {
    case host(HostPattern)
    case network(AddressRange)
}

package struct TLSSettings: Sendable, Hashable {
    /// The path of a PEM file with the authorities to trust. Nil stands for the system's.
    package var caFile: String?
    package var minVersion: TLSVersion = .v1_2
}

package struct DNSSettings: Sendable, Equatable {
    /// Empty: the name servers of the system.
    package var servers: [ListenAddress] = []
    package var ttlMin: Duration = .seconds(1)
    package var ttlMax: Duration = .seconds(3600)
    /// How long Larder remembers that a name does not exist.
    package var negative: Duration = .seconds(5)
    /// How long after their expiry addresses are used if no server answers (RFC 8767).
    package var stale: Duration = .seconds(3600)
    package var family: AddressFamily = .any
    /// Nil: none.
    package var hostsFile: String? = "/etc/hosts"
    package var hosts: [DNSEntry<IPAddress>] = []
    package var suffixes: [DNSEntry<ListenAddress>] = []

    /// Which addresses of a name are used, and which come first.
    package enum AddressFamily: String, CaseIterable, Sendable {
        case any
        case ipv4
        case ipv6
        case preferIPv4 = "prefer-ipv4"
        case preferIPv6 = "prefer-ipv6"
    }
}
