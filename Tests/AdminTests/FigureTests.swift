import Accounts
import Admin
import Foundation
import Framing
import Storage
import Testing
import Transaction

@Suite("Every figure is declared once")
struct FigureTests {
    private static func published(_ change: (inout Counts) -> Void) -> (stats: [UInt8], metrics: [UInt8]) {
        var statistics = Statistics()
        change(&statistics.counts)
        return (statistics.json(), statistics.prometheus())
    }

    /// Both outputs change when it does.
    private static func isPublished(_ name: String, _ add: (inout Counts) -> Void) {
        let before = published { _ in }
        let after = published(add)
        #expect(before.stats != after.stats, "\(name) is not in /stats")
        #expect(before.metrics != after.metrics, "\(name) is not in /metrics")
    }

    @Test(arguments: Counter.allCases) func `every counter is published`(_ counter: Counter) {
        Self.isPublished("\(counter)") { $0[counter] = 7 }
    }

    @Test(arguments: Gauge.allCases.filter { $0 != .isFinished }) func `every gauge is published`(_ gauge: Gauge) {
        Self.isPublished("\(gauge)") { $0[gauge] = 7 }
    }

    @Test(arguments: Refusal.allCases) func `every refusal is published`(_ refusal: Refusal) {
        Self.isPublished(refusal.name) { $0[refusal] = 7 }
    }

    @Test(arguments: FramingError.allCases) func `every violation is published`(_ violation: FramingError) {
        Self.isPublished(violation.reason) { $0[violation] = 7 }
    }

    @Test(arguments: CloseReason.allCases) func `every close reason is published`(_ reason: CloseReason) {
        Self.isPublished(reason.name) { $0[reason] = 7 }
    }

    /// Each counter has at most one outcome: the outcomes add up to the requests that were answered.
    @Test func `no counter is part of two outcomes`() {
        let counters = RequestOutcome.allCases.flatMap(\.counters)
        #expect(Set(counters).count == counters.count)
    }

    @Test func `no name stands twice in a section, and refusals and violations do not share one`() {
        for section in StatisticsSection.allCases {
            let names = section.figures.map(\.name)
            #expect(Set(names).count == names.count, "\(section)")
        }
        for names in [
            diskFigures.map(\.name), memoryFigures.map(\.name), workerFigures.map(\.name), ecosystemFigures.map(\.name),
            pacFileFigures.map(\.name),
        ] {
            #expect(Set(names).count == names.count)
        }
    }

    @Test func `every help is a sentence`() {
        let helps =
            StatisticsSection.allCases.flatMap { $0.figures.map(\.help) } + diskFigures.map(\.help)
            + memoryFigures.map(\.help) + workerFigures.map(\.help) + ecosystemFigures.map(\.help)
            + pacFileFigures.map(\.help)
        for help in helps {
            #expect(help.hasSuffix("."), "\(help)")
            #expect(help.first?.isUppercase == true || help.hasPrefix("`"), "\(help)")
            #expect(!help.contains("|") && !help.contains("\n"), "it is a cell of a table: \(help)")
        }
    }
}

@Suite("The published names are a promise")
struct PublishedNameTests {
    /// Names that scripts and dashboards rely on; some may be added, none may go.
    static let stats = """
        version started_at uptime_seconds draining requests.total requests.hit requests.stale requests.revalidated \
        requests.collapsed requests.miss requests.pass requests.refused requests.error requests.tunnel \
        hit_ratio.requests hit_ratio.bytes bytes.to_clients bytes.from_cache bytes.from_origins bytes.saved \
        bandwidth.to_clients bandwidth.from_origins clients.open clients.accepted origins.open origins.idle \
        origins.opened origins.reused tunnels.open tunnels.opened tunnels.bytes_from_clients tunnels.bytes_to_clients \
        memory.budget memory.used memory.records memory.evictions zones store.stored store.parts-stored \
        store.parts-kept store.freshened store.invalidated store.storing-refused store.storing-failed \
        store.transfers-resumed store.collapse-timeouts dns.queries dns.cached dns.failures dns.entries errors \
        refusals closes workers
        """.split(separator: " ").map(String.init)
    static let metrics = """
        build_info start_time_seconds draining worker_requests_total requests_total client_sent_bytes_total \
        cache_sent_bytes_total origin_received_bytes_total errors_total refusals_total client_connections \
        client_connections_accepted_total client_connections_closed_total origin_connections \
        origin_connections_opened_total origin_connections_reused_total tunnels tunnels_opened_total \
        tunnel_bytes_total memory_budget_bytes memory_used_bytes memory_records memory_evictions_total \
        zone_memory_budget_bytes zone_memory_used_bytes zone_memory_records zone_memory_evictions_total \
        store_events_total dns_queries_total dns_cached_total dns_failures_total dns_entries
        """.split(separator: " ").map { "# TYPE larder_\($0) " }

    @Test(arguments: stats) func `every member of stats stays`(_ path: String) throws {
        #expect(try StatisticsJSONTests.value(path) != nil)
    }

    @Test(arguments: metrics) func `every family of metrics stays`(_ line: String) {
        #expect(
            String(decoding: sampleStatistics.prometheus(), as: UTF8.self).contains("\n\(line)")
                || line.contains("build_info"))
    }
}

@Suite("The dashboard shows figures that exist")
struct DashboardFigureTests {
    @Test func `the script names no other members of stats`() {
        let names = Set(
            StatisticsSection.allCases.flatMap { section in section.figures.map { "\(section.rawValue).\($0.name)" } }
        )
        .union(StatisticsSection.process.figures.map(\.name))
        let sections = Set(StatisticsSection.allCases.map(\.rawValue)).union([
            "zones", "workers", "certificate_refusals", "certificate_requests", "ecosystems", "next_proxies",
            "origins_down", "names_unanswered", "bandwidth_limits", "limit_rules", "unverified_origins",
            "credentials", "cookie_jars", "pac_files",
        ])
        let page = String(decoding: ask("GET", "/").body, as: UTF8.self)
        var count = 0
        for match in page.matches(of: /\bs\.([a-z_]+)(\.[a-z_]+)?/) {
            count += 1
            let (section, member) = (String(match.1), match.2.map { String($0.dropFirst()) })
            let isMethod = [
                "zones", "workers", "certificate_refusals", "certificate_requests", "ecosystems", "next_proxies",
                "origins_down", "names_unanswered", "bandwidth_limits", "limit_rules", "unverified_origins",
                "credentials", "cookie_jars", "pac_files",
            ]
            .contains(section)
            guard let member, !isMethod else {
                #expect(sections.contains(section) || names.contains(section), "s.\(section)")
                continue
            }
            #expect(names.contains("\(section).\(member)"), "s.\(section).\(member)")
        }
        #expect(count > 20)
    }

    @Test func `each outcome has a colour`() {
        let page = String(decoding: ask("GET", "/").body, as: UTF8.self)
        for outcome in RequestOutcome.allCases where !outcome.counters.isEmpty {
            #expect(page.contains(".\(outcome.name) { background:"), "\(outcome.name)")
        }
    }
}

@Suite("Rendering: docs/statistics.md")
struct StatisticsManualRenderingTests {
    @Test func `LARDER_RENDER=1 writes the file that this compares`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/statistics.md")
        let text = renderStatisticsManual()
        if ProcessInfo.processInfo.environment["LARDER_RENDER"] == "1" {
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == text)
    }
}
