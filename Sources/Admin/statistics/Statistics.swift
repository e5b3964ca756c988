package import Accounts
package import LimitTables
import Server

/// What all figures are read from: one snapshot of the process, summed over its workers. Sizes are in bytes.
package struct Statistics: Sendable, Equatable {
    package var version = ""
    /// Seconds since 1970-01-01T00:00:00Z.
    package var startedAt: Int64 = 0
    package var uptimeSeconds: UInt64 = 0
    package var isDraining = false
    /// The sum over all workers.
    package var counts = Counts()
    package var bandwidth = Bandwidth()
    /// The default zone first.
    package var zones: [Zone] = []
    package var workers: [Worker] = []
    /// The recipe that has saved the most bytes first.
    package var ecosystems: [Ecosystem] = []
    /// The clients that did not accept the certificate for a host, the latest first.
    package var certificateRefusals: [CertificateRefusal] = []
    /// The origins that asked for a certificate of the client, the latest first.
    package var certificateRequests: [CertificateRequest] = []
    /// Those of `credentials`, in their order there.
    package var credentials: [Credential] = []
    /// Those of `cookie_jars`, in their order there.
    package var cookieJars: [CookieJar] = []
    /// The next proxies of `routes`, in their order there, then those of PAC files that do not work.
    package var nextProxies: [NextProxy] = []
    /// The PAC files of `routes`, by their paths.
    package var pacFiles: [PACFile] = []

    /// The hosts for which a rule of `origins` says `verify: no`, in their order there.
    package var unverifiedOrigins: [UnverifiedOrigin] = []
    package var learning: [LearningJob] = []
    /// The limits of the rate that are used, the one with most bytes at the front.
    package var bandwidthLimits: [BandwidthLimit] = []
    /// The rules of `limits.rules` with buckets of their own, in their order there.
    package var limitRules: [LimitRuleFigures] = []
    /// Of `limits.rules`.
    package var limitBuckets: [LimitBucketUsage] = []

    /// The origins that are not tried because they do not accept connections, the one that failed first at the front.
    package var originsDown: [OriginDown] = []
    package var namesUnanswered: [NameUnanswered] = []

    /// What this node does for its fleet. All zero if it is alone.
    package var fleet = Fleet()
    /// What the nodes of the fleet ask each other for.
    package var owners = Owners()

    package init() {}

    /// The memory tiers of all zones together.
    package var memory: MemoryUse { zones.reduce(into: MemoryUse()) { $0.add($1.memory) } }
}

extension Statistics {
    /// Bytes per second, the mean of the last five seconds.
    package struct Bandwidth: Sendable, Equatable {
        package var toClients: UInt64 = 0
        package var fromOrigins: UInt64 = 0
        package init() {}
    }

    package struct MemoryUse: Sendable, Equatable {
        package var budget: UInt64 = 0
        package var used: UInt64 = 0
        package var records: UInt64 = 0
        package var evictions: UInt64 = 0
        package init() {}

        mutating func add(_ other: MemoryUse) {
            budget &+= other.budget
            used &+= other.used
            records &+= other.records
            evictions &+= other.evictions
        }
    }

    package struct Zone: Sendable, Equatable {
        package var name: String
        package var memory: MemoryUse
        /// Nil if the zone has no disk tier.
        package var disk: DiskUse?

        package init(name: String, memory: MemoryUse, disk: DiskUse? = nil) {
            self.name = name
            self.memory = memory
            self.disk = disk
        }
    }

    package struct Ecosystem: Sendable, Equatable {
        /// The name of the recipe.
        package var name: String
        package var counts: EcosystemCounts

        package init(name: String, counts: EcosystemCounts) {
            self.name = name
            self.counts = counts
        }
    }

    package struct CertificateRefusal: Sendable, Equatable {
        /// The user's name, otherwise the client's address. Nil for a client of a Unix socket.
        package var client: String?
        package var host: String
        /// What the client did: `alert 48, unknown_ca`.
        package var signal: String
        /// How often it did so, since the first time.
        package var count: UInt64
        /// Seconds since 1970-01-01T00:00:00Z.
        package var lastAt: Int64

        package init(client: String?, host: String, signal: String, count: UInt64, lastAt: Int64) {
            self.client = client
            self.host = host
            self.signal = signal
            self.count = count
            self.lastAt = lastAt
        }
    }

    /// A job whose requests are noted at present.
    package struct LearningJob: Sendable, Equatable {
        package var job: String
        package var scope: String
        /// What the access rules deny is let through.
        package var allows: Bool
        package var endsAt: Int64?

        package init(job: String, scope: String, allows: Bool, endsAt: Int64?) {
            self.job = job
            self.scope = scope
            self.allows = allows
            self.endsAt = endsAt
        }
    }

    package struct UnverifiedOrigin: Sendable, Equatable {
        package var host: String
        /// The position of the rule, from 1.
        package var rule: Int
        package var isPinned: Bool

        package init(host: String, rule: Int, isPinned: Bool) {
            self.host = host
            self.rule = rule
            self.isPinned = isPinned
        }
    }

    package struct BandwidthLimit: Sendable, Equatable {
        /// `total`, `client 192.0.2.1`, `class nightly`, `origins[2]`.
        package var limit: String
        /// In bytes per second.
        package var rate: UInt64
        /// In bytes per second, over the last five seconds.
        package var average: UInt64
        /// Fetches and tunnels under way.
        package var flows: Int

        package init(limit: String, rate: UInt64, average: UInt64, flows: Int) {
            self.limit = limit
            self.rate = rate
            self.average = average
            self.flows = flows
        }
    }

    package struct LimitRuleFigures: Sendable, Equatable {
        package var name: String
        package var use: LimitRuleUse

        package init(name: String, use: LimitRuleUse) {
            self.name = name
            self.use = use
        }
    }

    package struct LimitBucketUsage: Sendable, Equatable {
        /// The name of the rule.
        package var rule: String
        /// `client 192.0.2.1`, `user ann`, `group builders`, `all`.
        package var subject: String
        package var underWay: Int
        package var connections: Int
        package var refused: UInt64
        /// Of bodies and tunnels, towards clients.
        package var bytes: UInt64
        /// Bytes of a budget, used in the present window.
        package var spent: UInt64
    }

    /// A name that the name servers have been silent about.
    package struct NameUnanswered: Sendable, Equatable {
        package var name: String
        /// The servers that were asked: `192.0.2.53:53, 192.0.2.54:53`.
        package var servers: String
        /// Seconds since 1970-01-01T00:00:00Z.
        package var since: Int64
        /// In seconds.
        package var retryAfter: Int

        package init(name: String, servers: String, since: Int64, retryAfter: Int) {
            self.name = name
            self.servers = servers
            self.since = since
            self.retryAfter = retryAfter
        }
    }

    package struct OriginDown: Sendable, Equatable {
        /// `a.example:443`.
        package var origin: String
        /// Seconds since 1970-01-01T00:00:00Z.
        package var since: Int64
        /// In seconds.
        package var retryAfter: Int

        package init(origin: String, since: Int64, retryAfter: Int) {
            self.origin = origin
            self.since = since
            self.retryAfter = retryAfter
        }
    }

    package struct Credential: Sendable, Equatable {
        /// By one origin or next proxy, since it accepted the credential last.
        package struct Refusal: Sendable, Equatable {
            /// `https://a.example:443`; of a next proxy its URL.
            package var origin: String
            package var count: Int
            /// Seconds since 1970-01-01T00:00:00Z.
            package var since: Int64
            package var isGivenUp: Bool

            package init(origin: String, count: Int, since: Int64, isGivenUp: Bool) {
                self.origin = origin
                self.count = count
                self.since = since
                self.isGivenUp = isGivenUp
            }
        }
        package var name: String
        package var schemes: [String]
        package var refusals: [Refusal]

        package init(name: String, schemes: [String], refusals: [Refusal] = []) {
            self.name = name
            self.schemes = schemes
            self.refusals = refusals
        }
    }

    package struct CookieJar: Sendable, Equatable {
        /// `CookieRejection` in words, and how often.
        package struct Rejection: Sendable, Equatable {
            package var reason: String
            package var count: Int

            package init(reason: String, count: Int) {
                self.reason = reason
                self.count = count
            }
        }
        package var name: String
        /// Those that it has now.
        package var cookies: Int
        /// Requests with cookies of the jar.
        package var sent: Int
        /// Cookies of origins that it took.
        package var set: Int
        /// Cookies of origins that it did not take.
        package var rejected: [Rejection]

        package init(name: String, cookies: Int, sent: Int = 0, set: Int = 0, rejected: [Rejection] = []) {
            self.name = name
            self.cookies = cookies
            self.sent = sent
            self.set = set
            self.rejected = rejected
        }
    }

    package struct NextProxy: Sendable, Equatable {
        /// Without the user.
        package var url: String
        /// Why it does not work. Nil if it works as far as known.
        package var failure: String?
        /// Seconds since 1970-01-01T00:00:00Z at the first failure without a success since.
        package var failingSince: Int64?

        package init(url: String, failure: String? = nil, failingSince: Int64? = nil) {
            self.url = url
            self.failure = failure
            self.failingSince = failingSince
        }
    }

    package struct PACFile: Sendable, Equatable {
        /// The path, or the URL without its query.
        package var path: String
        /// Requests that wait for an answer now.
        package var waiting: UInt64 = 0
        /// Questions that the script was asked.
        package var questions: UInt64 = 0
        /// Requests for which an earlier answer was used.
        package var hits: UInt64 = 0
        /// Questions without a usable answer, time-outs included.
        package var failures: UInt64 = 0
        package var timeouts: UInt64 = 0
        /// Processes that were started in place of one that had ended.
        package var restarts: UInt64 = 0
        /// The number of the process. Nil if it has ended, and is started again with the next question.
        package var process: Int32?
        /// Why the last question had no answer. Nil if it had one.
        package var failure: String?
        /// Seconds since 1970-01-01T00:00:00Z when its server sent or confirmed the script. Nil for a file, and before.
        package var fetchedAt: Int64?
        /// Why it is not fetched. Nil if it is, or comes from a file.
        package var fetchFailure: String?
        /// Seconds since 1970-01-01T00:00:00Z at the first failure without a success since.
        package var fetchFailingSince: Int64?

        package init(path: String) { self.path = path }
    }

    package struct CertificateRequest: Sendable, Equatable {
        package var host: String
        /// Whether it ended a connection because it got none.
        package var isRequired: Bool
        /// How many connections, since the first time.
        package var count: UInt64
        /// Seconds since 1970-01-01T00:00:00Z.
        package var lastAt: Int64

        package init(host: String, isRequired: Bool, count: UInt64, lastAt: Int64) {
            self.host = host
            self.isRequired = isRequired
            self.count = count
            self.lastAt = lastAt
        }
    }

    package struct Worker: Sendable, Equatable {
        package var number: Int
        package var counts: Counts

        package init(number: Int, counts: Counts) {
            self.number = number
            self.counts = counts
        }
    }
}
