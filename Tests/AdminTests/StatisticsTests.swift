import Accounts
import Admin
import Foundation
import Framing
import LimitTables
import Server
import Testing

@testable import larder
import Transaction
import JSON

/// One snapshot with different numbers in different places, so that a mix-up shows.
let sampleStatistics: Statistics = {
    var statistics = Statistics()
    statistics.version = "1.2.3"
    statistics.startedAt = 1_767_225_600
    statistics.uptimeSeconds = 3661
    let counters: [Counter: UInt64] = [
        .hits: 70, .staleHits: 1, .revalidated: 2, .collapsed: 3, .misses: 20, .passed: 4, .refused: 5, .failed: 6,
        .tunnels: 3, .upgrades: 4, .tunnelsClosed: 1, .requests: 119, .bytesToClients: 1000, .bytesFromCache: 750,
        .bytesFromOrigins: 300, .clientConnectionsAccepted: 9, .clientConnectionsClosed: 1,
        .originConnectionsOpened: 11, .originConnectionsReused: 13, .bytesTunnelledFromClients: 16,
        .bytesTunnelledToClients: 17, .partsStored: 24,
    ]
    for (counter, count) in counters { statistics.counts[counter] = count }
    let gauges: [Gauge: UInt64] = [
        .originConnectionsOpen: 12, .originConnectionsIdle: 10, .nameQueries: 21, .nameHits: 22, .nameFailures: 23,
        .namesStale: 26, .namesUnasked: 27, .namesKept: 25,
    ]
    for (gauge, count) in gauges { statistics.counts[gauge] = count }
    statistics.counts[Refusal.nameNotFound] = 25
    statistics.counts[Refusal.connectionTimeout] = 26
    statistics.counts[FramingError.transferEncodingWithContentLength] = 27
    statistics.counts[CloseReason.clientLeft] = 41
    statistics.bandwidth.toClients = 51
    statistics.bandwidth.fromOrigins = 52
    var memory = Statistics.MemoryUse()
    memory.budget = 1 << 28
    memory.used = 1 << 20
    memory.records = 18
    memory.evictions = 19
    statistics.zones = [Statistics.Zone(name: "default", memory: memory)]
    statistics.workers = [Statistics.Worker(number: 0, counts: statistics.counts)]
    return statistics
}()

@Suite("GET /stats")
struct StatisticsJSONTests {
    static func value(_ path: String) throws -> JSONValue? {
        var value: JSONValue? = try JSONValue(parsing: sampleStatistics.json())
        for name in path.split(separator: ".") { value = value?[String(name)] }
        return value
    }

    static let rows: [(path: String, value: JSONValue)] = [
        ("version", .string("1.2.3")), ("started_at", .string("2026-01-01T00:00:00Z")),
        ("uptime_seconds", .integer(3661)), ("draining", .bool(false)), ("requests.total", .integer(118)),
        ("requests.received", .integer(119)),
        ("requests.hit", .integer(70)), ("requests.tunnel", .integer(7)), ("hit_ratio.requests", .double(0.76)),
        ("hit_ratio.bytes", .double(0.75)), ("bytes.to_clients", .integer(1000)), ("bytes.saved", .integer(700)),
        ("bandwidth.to_clients", .integer(51)), ("bandwidth.from_origins", .integer(52)),
        ("clients.open", .integer(8)), ("clients.accepted", .integer(9)), ("origins.open", .integer(12)),
        ("origins.idle", .integer(10)), ("origins.opened", .integer(11)), ("origins.reused", .integer(13)),
        ("tunnels.open", .integer(6)), ("tunnels.opened", .integer(7)), ("tunnels.bytes_from_clients", .integer(16)),
        ("memory.budget", .integer(1 << 28)), ("memory.evictions", .integer(19)), ("store.parts-stored", .integer(24)),
        ("dns.cached", .integer(22)),
        ("errors.connection_timeout", .integer(26)), ("refusals.te-with-cl", .integer(27)),
        ("closes.client-left", .integer(41)),
    ]
    @Test(arguments: rows) func `every number stands under its name`(_ row: (path: String, value: JSONValue)) throws {
        #expect(try Self.value(row.path) == row.value)
    }

    @Test func `each outcome that is counted, and each worker, has its place`() throws {
        for outcome in RequestOutcome.allCases where !outcome.counters.isEmpty {
            let count = Int64(sampleStatistics.counts[outcome])
            #expect(try Self.value("requests.\(outcome.name)") == .integer(count))
        }
        #expect(try Self.value("workers")?.elements?.first?["requests"] == .integer(119))
    }

    @Test func `clients that did not accept a certificate are listed`() throws {
        var statistics = Statistics()
        statistics.certificateRefusals = [
            .init(client: "ann\"", host: "a.test", signal: "alert 48, unknown_ca", count: 2, lastAt: 1_767_225_600),
            .init(client: nil, host: "192.0.2.1", signal: "x", count: 1, lastAt: 0),
        ]
        let list = try JSONValue(parsing: statistics.json())["certificate_refusals"]?.elements
        #expect(list?.count == 2)
        #expect(list?[0]["client"] == .string("ann\"") && list?[0]["count"] == .integer(2))
        #expect(list?[0]["last_at"] == .string("2026-01-01T00:00:00Z"))
        #expect(list?[1]["client"] == nil && list?[1]["host"] == .string("192.0.2.1"))
    }

    @Test func `origins that asked for a certificate are listed`() throws {
        var statistics = Statistics()
        statistics.certificateRequests = [
            .init(host: "a.test", isRequired: true, count: 2, lastAt: 1_767_225_600),
            .init(host: "192.0.2.1", isRequired: false, count: 1, lastAt: 0),
        ]
        let list = try JSONValue(parsing: statistics.json())["certificate_requests"]?.elements
        #expect(list?.count == 2)
        #expect(list?[0]["host"] == .string("a.test") && list?[0]["count"] == .integer(2))
        #expect(list?[0]["required"] == .bool(true) && list?[1]["required"] == .bool(false))
        #expect(list?[0]["last_at"] == .string("2026-01-01T00:00:00Z"))
    }

    @Test func `credentials are listed with the origins that refuse them`() throws {
        var statistics = Statistics()
        statistics.credentials = [
            .init(
                name: "mirror", schemes: ["basic", "digest"],
                refusals: [.init(origin: "https://a.example", count: 3, since: 1_767_225_600, isGivenUp: true)])
        ]
        let list = try JSONValue(parsing: statistics.json())["credentials"]?.elements
        #expect(list?.first?["name"] == .string("mirror") && list?.first?["schemes"]?.elements?.count == 2)
        let refusal = list?.first?["refusals"]?.elements?.first
        #expect(refusal?["origin"] == .string("https://a.example") && refusal?["given_up"] == .bool(true))
        #expect(refusal?["since"] == .string("2026-01-01T00:00:00Z") && refusal?["count"] == .integer(3))
    }

    @Test func `cookie jars are listed with what they rejected, and why`() throws {
        var statistics = Statistics()
        statistics.cookieJars = [
            .init(name: "portal", cookies: 2, sent: 9, set: 3, rejected: [.init(reason: "public-suffix", count: 1)])
        ]
        let jar = try JSONValue(parsing: statistics.json())["cookie_jars"]?.elements?.first
        #expect(jar?["name"] == .string("portal") && jar?["cookies"] == .integer(2))
        #expect(jar?["sent"] == .integer(9) && jar?["set"] == .integer(3))
        #expect(jar?["rejected"]?["public-suffix"] == .integer(1))
    }

    @Test func `next proxies are listed, and say why one does not work`() throws {
        var statistics = Statistics()
        statistics.nextProxies = [
            .init(url: "http://one:3128"),
            .init(url: "http://two:3128", failure: "it refuses connections", failingSince: 1_767_225_600),
        ]
        let list = try JSONValue(parsing: statistics.json())["next_proxies"]?.elements
        #expect(list?.count == 2)
        #expect(list?[0]["url"] == .string("http://one:3128") && list?[0]["works"] == .bool(true))
        #expect(list?[0]["failure"] == nil && list?[0]["failing_since"] == nil)
        #expect(list?[1]["works"] == .bool(false) && list?[1]["failure"] == .string("it refuses connections"))
        #expect(list?[1]["failing_since"] == .string("2026-01-01T00:00:00Z"))
    }

    @Test func `PAC files are listed with what happened to their questions`() throws {
        var statistics = Statistics()
        var file = Statistics.PACFile(path: "/etc/larder/proxy.pac")
        (file.waiting, file.questions, file.hits, file.failures, file.timeouts, file.restarts) = (1, 2, 3, 4, 5, 6)
        file.process = 7
        statistics.pacFiles = [file, .init(path: "/etc/larder/other.pac")]
        statistics.pacFiles[1].failure = "it returned nothing"
        var fetched = Statistics.PACFile(path: "https://wpad.example/")
        (fetched.fetchedAt, fetched.fetchFailure, fetched.fetchFailingSince) = (1_767_225_600, "no", 1_767_225_601)
        statistics.pacFiles.append(fetched)
        let list = try JSONValue(parsing: statistics.json())["pac_files"]?.elements
        #expect(list?.count == 3 && list?[0]["path"] == .string("/etc/larder/proxy.pac"))
        for (index, name) in ["waiting", "questions", "hits", "failures", "timeouts", "restarts", "process"]
            .enumerated()
        {
            #expect(list?[0][name] == .integer(Int64(index + 1)), "\(name)")
        }
        #expect(list?[0]["failure"] == nil && list?[1]["process"] == nil)
        #expect(list?[1]["failure"] == .string("it returned nothing"))
        #expect(list?[1]["fetch_failing"] == .bool(false) && list?[1]["fetched_at"] == nil)
        #expect(list?[2]["fetch_failing"] == .bool(true) && list?[2]["fetch_failure"] == .string("no"))
        #expect(list?[2]["fetched_at"] == .string("2026-01-01T00:00:00Z"))
        #expect(list?[2]["fetch_failing_since"] == .string("2026-01-01T00:00:01Z"))
        let metrics = String(decoding: statistics.prometheus(), as: UTF8.self)
        for line in [
            "larder_pac_file_waiting{path=\"/etc/larder/proxy.pac\"} 1",
            "larder_pac_file_questions_total{path=\"/etc/larder/proxy.pac\"} 2",
            "larder_pac_file_hits_total{path=\"/etc/larder/proxy.pac\"} 3",
            "larder_pac_file_failures_total{path=\"/etc/larder/proxy.pac\"} 4",
            "larder_pac_file_timeouts_total{path=\"/etc/larder/proxy.pac\"} 5",
            "larder_pac_file_restarts_total{path=\"/etc/larder/proxy.pac\"} 6",
            "larder_pac_file_fetch_failing{path=\"/etc/larder/proxy.pac\"} 0",
            "larder_pac_file_fetch_failing{path=\"https://wpad.example/\"} 1",
        ] { #expect(metrics.contains(line + "\n"), "\(line)") }
        #expect(!String(decoding: Statistics().prometheus(), as: UTF8.self).contains("pac_file"))
    }

    @Test func `origins that are not verified are listed`() throws {
        var statistics = Statistics()
        statistics.unverifiedOrigins = [.init(host: "a.example", rule: 2, isPinned: true)]
        let list = try JSONValue(parsing: statistics.json())["unverified_origins"]?.elements
        #expect(list?.count == 1 && list?[0]["host"] == .string("a.example"))
        #expect(list?[0]["rule"] == .integer(2) && list?[0]["pinned"] == .bool(true))
    }

    @Test func `origins that do not accept connections are listed`() throws {
        var statistics = Statistics()
        statistics.originsDown = [.init(origin: "a.example:443", since: 1_767_225_600, retryAfter: 7)]
        let list = try JSONValue(parsing: statistics.json())["origins_down"]?.elements
        #expect(list?.count == 1 && list?[0]["origin"] == .string("a.example:443"))
        #expect(list?[0]["since"] == .string("2026-01-01T00:00:00Z") && list?[0]["retry_after"] == .integer(7))
    }

    @Test func `names that name servers are silent about are listed`() throws {
        var statistics = Statistics()
        statistics.namesUnanswered = [
            .init(name: "a.example", servers: "192.0.2.53:53", since: 1_767_225_600, retryAfter: 7)
        ]
        let list = try JSONValue(parsing: statistics.json())["names_unanswered"]?.elements
        #expect(list?.count == 1 && list?[0]["name"] == .string("a.example"))
        #expect(list?[0]["servers"] == .string("192.0.2.53:53") && list?[0]["retry_after"] == .integer(7))
        #expect(list?[0]["since"] == .string("2026-01-01T00:00:00Z"))
    }

    @Test func `limits of the rate are listed`() throws {
        var statistics = Statistics()
        statistics.bandwidthLimits = [.init(limit: "class nightly", rate: 1000, average: 990, flows: 3)]
        let list = try JSONValue(parsing: statistics.json())["bandwidth_limits"]?.elements
        #expect(list?.count == 1 && list?[0]["limit"] == .string("class nightly"))
        #expect(list?[0]["rate"] == .integer(1000) && list?[0]["average"] == .integer(990))
        #expect(list?[0]["flows"] == .integer(3))
    }

    @Test func `each rule of limits has its figures, in all three forms`() throws {
        var statistics = Statistics()
        var use = LimitRuleUse()
        (use.refusedRequests, use.refusedConcurrent, use.refusedBudget, use.refusedSize) = (1, 2, 3, 4)
        (use.refusedConnections, use.delayed, use.bytes, use.buckets) = (5, 6, 7000, 8)
        (use.underWay, use.connections) = (9, 10)
        statistics.limitRules = [.init(name: "each", use: use)]
        let stats = try JSONValue(parsing: statistics.json())
        let rule = stats["limit_rules"]?.elements?.first
        #expect(rule?["name"] == .string("each"))
        let metrics = String(decoding: statistics.prometheus(), as: UTF8.self)
        let table = statisticsTable(stats).split(separator: "\n").map {
            $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
        }
        for (name, metric, line, value) in [
            ("refused_requests", "refused_requests_total", "too many requests 1", 1),
            ("refused_concurrent", "refused_concurrent_total", "too many under way 2", 2),
            ("refused_budget", "refused_budget_total", "budget spent 3", 3),
            ("refused_size", "refused_size_total", "too long 4", 4),
            ("refused_connections", "refused_connections_total", "too many connections 5", 5),
            ("delayed", "delayed_total", "delayed 6", 6), ("bytes", "bytes_total", "bytes 6.8 KiB", 7000),
            ("buckets", "buckets", "buckets 8", 8), ("under_way", "under_way", "under way 9", 9),
            ("connections", "connections", "connections 10", 10),
        ] as [(String, String, String, Int64)] {
            #expect(rule?[name] == .integer(value), "\(name)")
            #expect(metrics.contains("\nlarder_limit_\(metric){rule=\"each\"} \(value)\n"), "\(metric)")
            #expect(table.contains(line), "\(line)")
        }
        #expect(table.contains("Limit each"))
    }

    @Test func `each recipe has its line, in all three forms`() throws {
        var statistics = Statistics()
        var counts = EcosystemCounts()
        (counts.requests, counts.fromCache, counts.bytes, counts.bytesSaved) = (5, 3, 700, 400)
        statistics.ecosystems = [.init(name: "npm", counts: counts)]
        let stats = try JSONValue(parsing: statistics.json())
        let npm = stats["ecosystems"]?.elements?.first
        #expect(npm?["name"] == .string("npm") && npm?["requests"] == .integer(5) && npm?["from_cache"] == .integer(3))
        #expect(npm?["bytes"] == .integer(700) && npm?["bytes_saved"] == .integer(400))
        let metrics = String(decoding: statistics.prometheus(), as: UTF8.self)
        #expect(metrics.contains("\nlarder_recipe_saved_bytes_total{recipe=\"npm\"} 400\n"))
        #expect(statisticsTable(stats).contains("Recipe npm\n"))
    }

    @Test func `before the first request a ratio is null, not zero`() throws {
        let empty = try JSONValue(parsing: Statistics().json())
        #expect(empty["hit_ratio"]?["requests"] == .null)
        #expect(empty["hit_ratio"]?["bytes"] == .null)
    }

    @Test func `what the cache finishes for nobody is not saved, and not less than nothing`() {
        var counts = Counts()
        counts[.bytesToClients] = 10
        counts[.bytesFromCache] = 10
        counts[.bytesFromOrigins] = 11
        #expect(counts.bytesSaved == 0)
    }

    static let times: [(seconds: Int64, text: String)] = [
        (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"), (951_868_799, "2000-02-29T23:59:59Z"),
        (1_709_164_800, "2024-02-29T00:00:00Z"), (1_767_225_599, "2025-12-31T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"),
    ]
    @Test(arguments: times) func `times are RFC 3339`(_ row: (seconds: Int64, text: String)) {
        #expect(rfc3339(secondsSinceEpoch: row.seconds) == row.text)
    }
}

@Suite("GET /metrics (Prometheus text 0.0.4)")
struct MetricsTests {
    static let lines = String(decoding: sampleStatistics.prometheus(), as: UTF8.self).split(separator: "\n")

    static let samples = [
        "larder_build_info{version=\"1.2.3\"} 1", "larder_start_time_seconds 1767225600", "larder_draining 0",
        "larder_worker_requests_total{worker=\"0\"} 119", "larder_requests_total{outcome=\"hit\"} 70",
        "larder_requests_total{outcome=\"tunnel\"} 7", "larder_client_sent_bytes_total 1000",
        "larder_cache_sent_bytes_total 750", "larder_origin_received_bytes_total 300",
        "larder_errors_total{type=\"dns_error\"} 25", "larder_refusals_total{reason=\"te-with-cl\"} 27",
        "larder_client_connections_closed_total{reason=\"client-left\"} 41",
        "larder_client_connections 8", "larder_origin_connections{state=\"busy\"} 2",
        "larder_origin_connections{state=\"idle\"} 10", "larder_tunnel_bytes_total{direction=\"to_client\"} 17",
        "larder_memory_used_bytes 1048576", "larder_zone_memory_used_bytes{zone=\"default\"} 1048576",
        "larder_store_events_total{event=\"parts-stored\"} 24", "larder_dns_failures_total 23", "larder_dns_entries 25",
    ]
    @Test(arguments: samples) func `every number is a sample`(_ line: String) {
        #expect(Self.lines.contains(line[...]))
    }

    @Test func `each family has HELP and TYPE once, before its samples, and counters end in _total`() {
        var declared: [Substring: Substring] = [:]
        for line in Self.lines {
            let words = line.split(separator: " ")
            if line.hasPrefix("# TYPE ") {
                #expect(declared[words[2]] == nil)
                declared[words[2]] = words[3]
                #expect((words[3] == "counter") == words[2].hasSuffix("_total"))
            } else if !line.hasPrefix("#") {
                let name = line.prefix { $0 != "{" && $0 != " " }
                #expect(declared[name] != nil, "\(name) is not declared")
                #expect(name.hasPrefix("larder_"))
            }
        }
        #expect(Self.lines.filter { $0.hasPrefix("# HELP ") }.count == declared.count)
    }

    @Test func `label values are escaped`() {
        var metrics = MetricsWriter()
        metrics.family("x_total", .counter, "h\\\n\"", label: "l", [("a\"b\\c\nd", 1)])
        #expect(
            String(decoding: metrics.bytes, as: UTF8.self)
                == "# HELP x_total h\\\\\\n\"\n# TYPE x_total counter\nx_total{l=\"a\\\"b\\\\c\\nd\"} 1\n")
    }
}
