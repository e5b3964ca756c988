import Access
import Accounts
import Framing
import Server
import Transaction

/// The objects of `/stats`, in their order, with the figures of each. `zones` and `workers` are lists and stand for themselves:
/// ZoneFigures.swift.
package enum StatisticsSection: String, CaseIterable, Sendable {
    /// Of the process: these stand in `/stats` itself.
    case process = ""
    case requests
    case hitRatio = "hit_ratio"
    case bytes, bandwidth, clients, origins, tunnels, memory, store
    case names = "dns"
    case authentication, fleet, owners, peers, log, errors, refusals, denials, closes

    /// For people.
    package var title: String {
        switch self {
        case .process: "Process"
        case .requests: "Requests"
        case .hitRatio: "Hit ratio"
        case .bytes: "Traffic"
        case .bandwidth: "Bandwidth"
        case .clients: "Connections of clients"
        case .origins: "Connections to origins"
        case .tunnels: "Tunnels"
        case .memory: "Memory tier"
        case .store: "Store"
        case .names: "Names"
        case .authentication: "Authentication"
        case .fleet: "Fleet"
        case .owners: "Owners in the fleet"
        case .peers: "Clients and origins at fault"
        case .log: "Access log"
        case .errors: "Errors"
        case .refusals: "Refusals"
        case .denials: "Denials"
        case .closes: "Closed connections"
        }
    }

    /// The figures are the members of a closed set that the manual explains in a table of its own; what is zero is left out.
    package var isTally: Bool {
        switch self {
        case .errors, .refusals, .denials, .closes: true
        case .process, .requests, .hitRatio, .bytes, .bandwidth, .clients, .origins, .tunnels, .memory, .store, .names,
            .authentication, .fleet, .owners, .peers, .log:
            false
        }
    }

    package var figures: [Figure<Statistics>] { Self.tables[self] ?? [] }

    /// Made once; `rows` says what is in them.
    private static let tables = Dictionary(uniqueKeysWithValues: allCases.map { ($0, $0.rows) })

    private var rows: [Figure<Statistics>] {
        switch self {
        case .process: Self.ofProcess
        case .requests: Self.ofRequests
        case .hitRatio: Self.ofHitRatio
        case .bytes: Self.ofBytes
        case .bandwidth: Self.ofBandwidth
        case .clients: Self.ofClients
        case .origins: Self.ofOrigins
        case .tunnels: Self.ofTunnels
        case .memory: memoryFigures.map { $0.read(from: \.memory, prefix: "memory_") }
        case .store: Self.ofStore
        case .names: Self.ofNames
        case .authentication: Self.ofAuthentication
        case .fleet: fleetFigures.map { $0.read(from: \.fleet, prefix: "fleet_") }
        case .owners: ownerFigures.map { $0.read(from: \.owners, prefix: "fleet_peer_") }
        case .peers: Self.ofPeers
        case .log: Self.ofLog
        case .errors: Self.ofErrors
        case .refusals: Self.ofRefusals
        case .denials: Self.ofDenials
        case .closes: Self.ofCloses
        }
    }
}

// MARK: what Larder has done

extension StatisticsSection {
    private static let ofProcess: [Figure<Statistics>] = [
        Figure(
            "version", .text("build_info", label: "version"), unit: .text, help: "The version of Larder.",
            value: { .text($0.version) }),
        Figure(
            "started_at", .gauge("start_time_seconds"), unit: .time,
            help: "When the process started: RFC 3339 in `/stats`, Unix time in `/metrics`.",
            value: { .time($0.startedAt) }),
        Figure(
            "uptime_seconds", nil, unit: .seconds, help: "Seconds since the process started.", count: \.uptimeSeconds),
        Figure(
            "draining", .gauge("draining"), unit: .flag,
            help: "Whether Larder is stopping and accepts no more connections.",
            value: { .flag($0.isDraining) }),
    ]

    private static let ofRequests: [Figure<Statistics>] =
        [
            Figure("total", help: "Requests by all outcomes together.", count: \.counts.requestsAnswered),
            Figure("received", .counter("requests_received"), .requests, shown: .detail),
            Figure(
                "hits_by_earlier_decision", .counter("hits_by_earlier_decision"), .hitsByEarlierDecision, shown: .detail
            ),
            Figure("hits_from_disk", .counter("hits_from_disk"), .hitsFromDisk, shown: .detail),
            Figure("hits_shared", .counter("hits_shared"), .hitsShared, shown: .detail),
            Figure("reported", .counter("requests_reported"), .reported, shown: .detail),
        ]
        + RequestOutcome.allCases.filter { !$0.counters.isEmpty }.map { outcome in
            Figure(
                "\(outcome.name)", .sample(of: .requests, "\(outcome.name)"), help: "\(outcome.meaning)",
                count: { $0.counts[outcome] })
        }

    private static let ofHitRatio: [Figure<Statistics>] = [
        Figure(
            "requests", nil, unit: .ratio, label: "by requests",
            help:
                "`hit`, `stale`, `revalidated` and `collapsed` divided by these, `miss` and `pass`; null before the first of them.",
            value: { .ratio($0.counts.requestHitRatio) }),
        Figure(
            "bytes", nil, unit: .ratio, label: "by bytes",
            help: "`bytes.from_cache` divided by `bytes.to_clients`; null before the first byte.",
            value: { .ratio($0.counts.byteHitRatio) }),
    ]

    private static let ofBytes: [Figure<Statistics>] = [
        Figure("to_clients", .counter("client_sent_bytes"), .bytesToClients, unit: .bytes),
        Figure("from_clients", .counter("client_received_bytes"), .bytesFromClients, unit: .bytes, shown: .detail),
        Figure("from_cache", .counter("cache_sent_bytes"), .bytesFromCache, unit: .bytes),
        Figure("from_origins", .counter("origin_received_bytes"), .bytesFromOrigins, unit: .bytes),
        Figure("to_origins", .counter("origin_sent_bytes"), .bytesToOrigins, unit: .bytes, shown: .detail),
        Figure(
            "saved", nil, unit: .bytes,
            help:
                "Bytes that clients got and no origin had to send: `to_clients` less `from_origins`, `from_cache` at most.",
            count: \.counts.bytesSaved),
    ]

    private static let ofBandwidth: [Figure<Statistics>] = [
        Figure(
            "to_clients", nil, unit: .bytesPerSecond,
            help: "Bytes per second to clients of this node, without tunnels, the mean of the last five seconds.",
            count: \.bandwidth.toClients),
        Figure(
            "from_origins", nil, unit: .bytesPerSecond,
            help:
                "Bytes per second to this node from origins and from other nodes of the fleet, without tunnels, the mean of the last five seconds.",
            count: \.bandwidth.fromOrigins),
    ]

    private static let ofStore: [Figure<Statistics>] = [
        .event("stored", .stored), .event("parts-stored", .partsStored), .event("parts-kept", .keptPartial),
        .event("freshened", .freshened), .event("invalidated", .invalidated),
        .event("storing-refused", .storingRefused), .event("storing-failed", .storingFailed),
        .event("digest-mismatches", .digestMismatches), .event("digests-promised", .digestsPromised),
        .event("folded-proven", .foldedProven),
        .event("folded-unproven", .foldedUnproven),
        .event("releases-removed", .releasesRemoved), .event("releases-reported", .releasesReported),
        .event("releases-undated", .releasesUndated),
        .event("transfers-resumed", .resumed), .event("collapse-timeouts", .collapseTimeouts),
    ]
}

// MARK: connections

extension StatisticsSection {
    private static let ofClients: [Figure<Statistics>] = [
        Figure("open", .gauge("client_connections"), help: "Open connections of clients.", count: \.counts.clientsOpen),
        Figure("accepted", .counter("client_connections_accepted"), .clientConnectionsAccepted),
        Figure("closed", nil, .clientConnectionsClosed, shown: .detail),
        Figure("refused", .counter("client_connections_refused"), .clientConnectionsRefused, shown: .trouble),
        Figure("proxy_headers", .counter("proxy_headers"), .proxyHeaders, shown: .detail),
        Figure("handshakes", .counter("proxy_handshakes"), .proxyHandshakes, shown: .detail),
        Figure("handshakes_resumed", .counter("proxy_handshakes_resumed"), .proxyHandshakesResumed, shown: .detail),
    ]

    private static let ofOrigins: [Figure<Statistics>] = [
        Figure("open", help: "Open connections to origins.", count: { $0.counts[.originConnectionsOpen] }),
        Figure(
            "idle", .sample(of: .originConnections, "idle"),
            help: "Open connections to origins that wait for their next request.",
            count: { $0.counts[.originConnectionsIdle] }),
        Figure(
            "busy", .sample(of: .originConnections, "busy"), shown: .detail,
            help: "Open connections to origins that carry a request.", count: \.counts.originsBusy),
        Figure("pinned", .gauge("origin_pins"), .originPinsOpen),
        Figure("opened", .counter("origin_connections_opened"), .originConnectionsOpened),
        Figure("reused", .counter("origin_connections_reused"), .originConnectionsReused),
        Figure("closed", .counter("origin_connections_closed"), .originConnectionsClosed, shown: .detail),
        Figure("failed", .counter("origin_connections_failed"), .originConnectionsFailed, shown: .trouble),
        Figure("handshakes", .counter("origin_handshakes"), .originHandshakes, shown: .detail),
        Figure(
            "handshakes_resumed", .counter("origin_handshakes_resumed"), .originHandshakesResumed, shown: .detail),
        Figure(
            "unverified", .counter("origin_connections_unverified"), .originConnectionsUnverified, shown: .trouble),
        Figure("requests", .counter("origin_requests"), .originRequests, shown: .detail),
        Figure("retries", .counter("origin_retries"), .originRetries, shown: .detail),
        Figure("repeated", .counter("origin_repeated"), .retries, shown: .detail),
        Figure("repetitions_refused", .counter("origin_repetitions_refused"), .retriesRefused, shown: .detail),
        Figure("not_tried", .counter("origin_connections_not_tried"), .originsUnavailable, shown: .trouble),
        Figure("encoded", .counter("origin_requests_encoded"), .requestsEncoded, shown: .detail),
        Figure("redirects_followed", .counter("redirects_followed"), .redirectsFollowed, shown: .detail),
        Figure("cancelled", .counter("transfers_cancelled"), .transfersCancelled, shown: .detail),
        Figure("queued", .counter("origin_queued"), .originQueued, shown: .detail),
        Figure("next_proxy_failures", .counter("next_proxy_failures"), .nextProxyFailures, shown: .trouble),
        Figure("credentials_sent", .counter("credentials_sent"), .credentialsSent, shown: .detail),
        Figure("credentials_refused", .counter("credentials_refused"), .credentialsRefused, shown: .trouble),
        Figure("connection_log_ins", .counter("connection_log_ins"), .connectionLogIns, shown: .detail),
        Figure(
            "connection_log_ins_failed", .counter("connection_log_ins_failed"), .connectionLogInsFailed, shown: .trouble
        ),
        Figure("placeholders_replaced", .counter("placeholders_replaced"), .placeholdersReplaced, shown: .detail),
        Figure("placeholders_renewed", .counter("placeholders_renewed"), .placeholdersRenewed, shown: .detail),
        Figure("placeholders_misplaced", .counter("placeholders_misplaced"), .placeholdersMisplaced, shown: .trouble),
        Figure("bodies_kept", .counter("bodies_kept"), .bodiesKept, shown: .detail),
        Figure("failed_over", .counter("routes_failed_over"), .routesFailedOver, shown: .detail),
    ]

    private static let ofTunnels: [Figure<Statistics>] = [
        Figure("open", .gauge("tunnels"), help: "Open tunnels.", count: \.counts.tunnelsOpen),
        Figure(
            "opened", .counter("tunnels_opened"),
            help: "Tunnels opened, by CONNECT or by a switch to another protocol (101).", count: \.counts.tunnelsOpened),
        Figure("upgraded", .counter("tunnels_upgraded"), .upgrades, shown: .detail),
        Figure("closed", .counter("tunnels_closed"), .tunnelsClosed, shown: .detail),
        Figure("intercepted", .counter("tunnels_intercepted"), .tunnelsOpened),
        Figure("handshakes", .counter("client_handshakes"), .handshakes, shown: .detail),
        Figure("handshakes_resumed", .counter("client_handshakes_resumed"), .handshakesResumed, shown: .detail),
        Figure("certificates_issued", .counter("certificates_issued"), .leavesIssued, shown: .detail),
        Figure("certificates_refused", .counter("certificates_refused"), .leavesRefused),
        Figure(
            "bytes_from_clients", .sample(of: .tunnelBytes, "from_client"), .bytesTunnelledFromClients, unit: .bytes),
        Figure("bytes_to_clients", .sample(of: .tunnelBytes, "to_client"), .bytesTunnelledToClients, unit: .bytes),
    ]

    private static let ofNames: [Figure<Statistics>] = [
        Figure("queries", .counter("dns_queries"), .nameQueries),
        Figure("cached", .counter("dns_cached"), .nameHits),
        Figure("failures", .counter("dns_failures"), .nameFailures),
        Figure("stale", .counter("dns_stale"), .namesStale),
        Figure("unasked", .counter("dns_unasked"), .namesUnasked),
        Figure("entries", .gauge("dns_entries"), .namesKept),
    ]
}

// MARK: what went wrong

extension StatisticsSection {
    private static let ofAuthentication: [Figure<Statistics>] = [
        Figure("checks", .counter("authentication_checks"), .authenticationChecks, shown: .detail),
        Figure("failures", .counter("authentication_failures"), .authenticationFailures, shown: .trouble),
        Figure("stale", .counter("authentication_stale"), .authenticationStale, shown: .detail),
        Figure("waits", .counter("authentication_waits"), .authenticationWaits, shown: .trouble),
        Figure("directory_accepted", .counter("directory_accepted"), .directoryAccepted, shown: .detail),
        Figure("directory_refused", .counter("directory_refused"), .directoryRefused, shown: .detail),
        Figure("directory_failures", .counter("directory_failures"), .directoryFailures, shown: .trouble),
    ]

    private static let ofPeers: [Figure<Statistics>] = [
        Figure("violations", .counter("protocol_violations"), .protocolViolations, shown: .trouble),
        Figure("timeouts", .counter("timeouts"), .timeouts, shown: .trouble),
    ]

    private static let ofLog: [Figure<Statistics>] = [
        Figure("lines", .counter("access_log_lines"), .accessLogLines, shown: .detail),
        Figure("lines_dropped", .counter("access_log_lines_dropped"), .accessLogLinesDropped, shown: .trouble),
    ]

    /// What origins did wrong, by the error types of RFC 9209 §2.3. Several refusals can have the same type.
    private static let ofErrors: [Figure<Statistics>] = {
        let ofOrigin = Refusal.allCases.filter(\.isOfOrigin)
        return Set(ofOrigin.map { "\($0.proxyStatusError)" }).sorted().map { type in
            let refusals = ofOrigin.filter { "\($0.proxyStatusError)" == type }
            return .tally(type, .errors, help: refusals.map { "\($0.explanation)" }.joined(separator: " ")) { counts in
                refusals.reduce(0) { $0 &+ counts[$1] }
            }
        }
    }()

    private static let ofRefusals: [Figure<Statistics>] =
        Refusal.allCases.filter { !$0.isOfOrigin }.map { refusal in
            .tally(refusal.name, .refusals, help: "\(refusal.explanation)") { $0[refusal] }
        }
        + FramingError.allCases.map { violation in
            .tally(violation.reason, .refusals, help: "\(violation.explanation)") { $0[violation] }
        }

    private static let ofDenials: [Figure<Statistics>] = DenialReason.allCases.map { reason in
        .tally(reason.rawValue, .denials, help: "\(reason.meaning)") { $0[reason] }
    }

    private static let ofCloses: [Figure<Statistics>] = CloseReason.allCases.map { reason in
        .tally(reason.name, .closes, help: "\(reason.explanation)") { $0[reason] }
    }
}

extension Figure where Subject == Statistics {
    /// What a counter says, in its own words.
    fileprivate init(
        _ name: String, _ metric: Metric?, _ counter: Counter, unit: FigureUnit = .count,
        shown prominence: FigureProminence = .overview
    ) {
        self.init(
            name, metric, unit: unit, shown: prominence, help: "\(counter.help)", count: { $0.counts[counter] })
    }

    fileprivate init(_ name: String, _ metric: Metric?, _ gauge: Gauge) {
        self.init(name, metric, help: "\(gauge.help)", count: { $0.counts[gauge] })
    }

    fileprivate static func event(_ name: String, _ counter: Counter) -> Figure {
        Figure(name, .sample(of: .storeEvents, name), counter)
    }

    /// A member of a closed set: people see its name as it stands in logs and responses.
    fileprivate static func tally(
        _ name: String, _ family: MetricFamily, help: String, _ count: @escaping @Sendable (Counts) -> UInt64
    ) -> Figure {
        Figure(
            name, .sample(of: family, name), label: name, shown: .trouble, help: help, count: { count($0.counts) })
    }
}
