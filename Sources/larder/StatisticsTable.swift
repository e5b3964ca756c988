import Admin

/// Renders `/stats` for people, in sections of aligned lines. Values that a server of another version does not send are left out.
func statisticsTable(_ stats: JSONValue) -> String {
    var table = Table()
    table.title(
        "larder \(stats["version"]?.text ?? "?"), up \(timeSpan(stats["uptime_seconds"]?.integer ?? 0))"
            + (stats["draining"]?.flag == true ? ", draining" : ""))
    table.section("Requests", stats["requests"]) { line in
        for member in stats["requests"]?.members ?? [] { line.count(member.name, member.value) }
    }
    table.section("Hit ratio", stats["hit_ratio"]) {
        $0.ratio("by requests", stats["hit_ratio"]?["requests"])
        $0.ratio("by bytes", stats["hit_ratio"]?["bytes"])
    }
    table.section("Traffic", stats["bytes"]) {
        $0.size("to clients", stats["bytes"]?["to_clients"], perSecond: stats["bandwidth"]?["to_clients"])
        $0.size("from cache", stats["bytes"]?["from_cache"])
        $0.size("from origins", stats["bytes"]?["from_origins"], perSecond: stats["bandwidth"]?["from_origins"])
        $0.size("saved", stats["bytes"]?["saved"])
    }
    table.section("Memory tier", stats["memory"]) {
        $0.size("used", stats["memory"]?["used"])
        $0.size("budget", stats["memory"]?["budget"])
        $0.count("responses", stats["memory"]?["records"])
        $0.count("evicted", stats["memory"]?["evictions"])
    }
    if let zones = stats["zones"]?.elements, zones.count > 1 {
        table.section("Zones", stats["zones"]) {
            for zone in zones { $0.size(zone["name"]?.text ?? "?", zone["used"]) }
        }
    }
    for zone in stats["zones"]?.elements ?? [] {
        guard let disk = zone["disk"] else { continue }
        table.section("Disk of zone \(zone["name"]?.text ?? "?")", disk) { $0.disk(disk) }
    }
    table.section("Store", stats["store"]) {
        for member in stats["store"]?.members ?? [] { $0.count(member.name, member.value) }
    }
    table.section("Connections", stats["clients"]) {
        $0.count("clients", stats["clients"]?["open"])
        $0.count("origins", stats["origins"]?["open"])
        $0.count("origins idle", stats["origins"]?["idle"])
        $0.count("origins reused", stats["origins"]?["reused"])
        $0.count("tunnels", stats["tunnels"]?["open"])
    }
    for (title, key) in [("Refusals", "refusals"), ("Errors", "errors"), ("Closed connections", "closes")] {
        guard let members = stats[key]?.members, !members.isEmpty else { continue }
        table.section(title, stats[key]) { for member in members { $0.count(member.name, member.value) } }
    }
    return table.text
}

/// Lines below a heading. Names are on the left, numbers on the right.
private struct Table {
    private var lines: [String] = []

    var text: String { lines.joined(separator: "\n") }

    mutating func title(_ text: String) { lines.append(text) }

    mutating func section(_ title: String, _ value: JSONValue?, _ body: (inout Table) -> Void) {
        guard value != nil else { return }
        lines += ["", title]
        body(&self)
    }

    /// Prints `state` first, with the error if the disk is off: then the other numbers matter less.
    mutating func disk(_ disk: JSONValue) {
        let state = disk["state"]?.text ?? "?"
        row("state", disk["loaded"]?.flag == false ? "\(state), loading its index" : state)
        if let reason = disk["reason"]?.text { lines.append("  nothing can be written: \(reason)") }
        size("used", disk["used_bytes"])
        size("size", disk["size_bytes"])
        size("pinned", disk["pinned_bytes"])
        size("pinned, at most", disk["pinned_limit_bytes"])
        size("waiting", disk["waiting_bytes"])
        count("responses", disk["objects"])
        count("written", disk["stored_objects"])
        count("evicted", disk["evicted_objects"])
        for (name, key) in [
            ("not written, busy", "refused_busy"), ("not pinned, full", "refused_pinned"),
            ("damaged", "damaged_objects"), ("read errors", "read_errors"), ("write errors", "write_errors"),
        ] where (disk[key]?.integer ?? 0) > 0 { count(name, disk[key]) }
    }

    mutating func count(_ name: String, _ value: JSONValue?) {
        if let count = value?.integer { row(name, grouped(count)) }
    }

    mutating func ratio(_ name: String, _ value: JSONValue?) {
        row(name, value?.number.map { "\(fixed($0 * 100)) %" } ?? "-")
    }

    mutating func size(_ name: String, _ value: JSONValue?, perSecond: JSONValue? = nil) {
        guard let bytes = value?.number else { return }
        row(name, binarySize(bytes) + (perSecond?.number.map { "   now \(binarySize($0))/s" } ?? ""), width: 12)
    }

    private mutating func row(_ name: String, _ value: String, width: Int = 12) {
        let number = value.prefix { $0 != " " }
        let indent = String(repeating: " ", count: max(0, width - number.count))
        lines.append("  \(padded(name, 28))\(indent)\(value)")
    }
}

/// Separates thousands: `1,234,567`.
func grouped(_ value: Int64) -> String {
    var result: [Character] = []
    for (index, digit) in String(value.magnitude).reversed().enumerated() {
        if index > 0, index % 3 == 0 { result.append(",") }
        result.append(digit)
    }
    return (value < 0 ? "-" : "") + String(result.reversed())
}

/// `12.3 MiB`.
func binarySize(_ bytes: Double) -> String {
    var value = bytes
    var units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][...]
    while value >= 1024, units.count > 1 {
        value /= 1024
        units.removeFirst()
    }
    return "\(units.first == "B" ? String(Int64(value)) : fixed(value)) \(units.first ?? "")"
}

/// Rounds to one digit behind the point.
func fixed(_ value: Double) -> String {
    let tenths = Int64((value * 10).rounded())
    return "\(tenths < 0 ? "-" : "")\(tenths.magnitude / 10).\(tenths.magnitude % 10)"
}

/// `3 d 4 h`, `4 h 5 min`, `5 min 6 s`, `6 s`.
func timeSpan(_ seconds: Int64) -> String {
    if seconds >= 86_400 { return "\(seconds / 86_400) d \(seconds / 3600 % 24) h" }
    if seconds >= 3600 { return "\(seconds / 3600) h \(seconds / 60 % 60) min" }
    return seconds >= 60 ? "\(seconds / 60) min \(seconds % 60) s" : "\(seconds) s"
}
