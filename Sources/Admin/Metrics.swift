/// Renders `GET /metrics`: the Prometheus text exposition format 0.0.4.
///
/// Every family has HELP and TYPE, its samples stand together, label values are escaped; counters end in `_total`.
package struct MetricsWriter {
    package private(set) var bytes: [UInt8] = []

    package enum Kind: String { case counter, gauge }

    package init() {}

    package mutating func family(
        _ name: String, _ kind: Kind, _ help: String, label: String? = nil, _ samples: [(label: String, value: UInt64)]
    ) {
        append("# HELP \(name) \(Self.escaped(help, quote: false))\n# TYPE \(name) \(kind.rawValue)\n")
        for sample in samples {
            let labels = label.map { "{\($0)=\"\(Self.escaped(sample.label, quote: true))\"}" } ?? ""
            append("\(name)\(labels) \(sample.value)\n")
        }
    }

    package mutating func single(_ name: String, _ kind: Kind, _ help: String, _ value: UInt64) {
        family(name, kind, help, [("", value)])
    }

    /// Backslash and line feed everywhere, the quote in label values as well.
    static func escaped(_ text: String, quote: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quote: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}

extension Statistics {
    /// The body of `GET /metrics`. Names are a promise to dashboards: they may be added to, not renamed.
    package func prometheus() -> [UInt8] {
        var metrics = MetricsWriter()
        writeProcess(to: &metrics)
        writeTraffic(to: &metrics)
        writeConnections(to: &metrics)
        writeMemory(to: &metrics)
        writeDisks(to: &metrics)
        writeNames(to: &metrics)
        return metrics.bytes
    }

    private func writeProcess(to metrics: inout MetricsWriter) {
        metrics.family(
            "larder_build_info", .gauge, "Always 1; the label is the version.", label: "version", [(version, 1)])
        metrics.single(
            "larder_start_time_seconds", .gauge, "Start of the process, Unix time.", UInt64(max(0, startedAt)))
        metrics.single("larder_draining", .gauge, "1 while the process is draining.", isDraining ? 1 : 0)
        metrics.family(
            "larder_worker_requests_total", .counter, "Requests by worker.", label: "worker",
            workers.map { (String($0.number), $0.requests) })
    }

    private func writeTraffic(to metrics: inout MetricsWriter) {
        metrics.family(
            "larder_requests_total", .counter, "Requests by outcome.", label: "outcome",
            RequestOutcome.allCases.map { ($0.name, requests[$0]) })
        metrics.single(
            "larder_client_sent_bytes_total", .counter, "Bytes of responses sent to clients.", bytes.toClients)
        metrics.single(
            "larder_cache_sent_bytes_total", .counter, "The part of them that came from the cache.", bytes.fromCache)
        metrics.single(
            "larder_origin_received_bytes_total", .counter, "Bytes of responses from origins.", bytes.fromOrigins)
        metrics.family(
            "larder_errors_total", .counter, "Failed requests by error type (RFC 9209).", label: "type",
            errors.map { ($0.name, $0.count) })
        metrics.family(
            "larder_refusals_total", .counter, "Refused requests by reason.", label: "reason",
            refusals.map { ($0.name, $0.count) })
    }

    private func writeConnections(to metrics: inout MetricsWriter) {
        metrics.single("larder_client_connections", .gauge, "Open client connections.", clients.open)
        metrics.single(
            "larder_client_connections_accepted_total", .counter, "Accepted client connections.", clients.accepted)
        metrics.family(
            "larder_client_connections_closed_total", .counter, "Closed client connections by reason.", label: "reason",
            closes.map { ($0.name, $0.count) })
        metrics.family(
            "larder_origin_connections", .gauge, "Open origin connections.", label: "state",
            [("busy", origins.open > origins.idle ? origins.open - origins.idle : 0), ("idle", origins.idle)])
        metrics.single(
            "larder_origin_connections_opened_total", .counter, "Origin connections opened.", origins.opened)
        metrics.single(
            "larder_origin_connections_reused_total", .counter, "Requests sent on a pooled connection.",
            origins.reused)
        metrics.single("larder_tunnels", .gauge, "Open tunnels.", tunnels.open)
        metrics.single("larder_tunnels_opened_total", .counter, "Tunnels opened.", tunnels.opened)
        metrics.family(
            "larder_tunnel_bytes_total", .counter, "Bytes through tunnels.", label: "direction",
            [("from_client", tunnels.bytesFromClients), ("to_client", tunnels.bytesToClients)])
    }

    private func writeMemory(to metrics: inout MetricsWriter) {
        metrics.single("larder_memory_budget_bytes", .gauge, "Budget of the memory tier.", memory.budget)
        metrics.single("larder_memory_used_bytes", .gauge, "Used by the memory tier.", memory.used)
        metrics.single("larder_memory_records", .gauge, "Responses stored in the memory tier.", memory.records)
        metrics.single(
            "larder_memory_evictions_total", .counter, "Responses evicted from the memory tier.", memory.evictions)
        writeZones(to: &metrics)
        metrics.family(
            "larder_store_events_total", .counter, "What happened to stored responses and transfers.", label: "event",
            store.map { ($0.name, $0.count) })
    }

    private func writeZones(to metrics: inout MetricsWriter) {
        func family(_ name: String, _ kind: MetricsWriter.Kind, _ help: String, _ value: (MemoryUse) -> UInt64) {
            metrics.family(
                "larder_zone_memory_\(name)", kind, help, label: "zone", zones.map { ($0.name, value($0.memory)) })
        }
        family("budget_bytes", .gauge, "Budget of a zone.") { $0.budget }
        family("used_bytes", .gauge, "Used by a zone.") { $0.used }
        family("records", .gauge, "Responses stored in a zone.") { $0.records }
        family("evictions_total", .counter, "Responses evicted from a zone.") { $0.evictions }
    }

    private func writeNames(to metrics: inout MetricsWriter) {
        metrics.single("larder_dns_queries_total", .counter, "Names asked for.", names.queries)
        metrics.single("larder_dns_cached_total", .counter, "Names answered by the cache of names.", names.cached)
        metrics.single("larder_dns_failures_total", .counter, "Names that could not be resolved.", names.failures)
        metrics.single("larder_dns_entries", .gauge, "Names in the cache of names.", names.entries)
    }
}
