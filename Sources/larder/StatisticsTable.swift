import Admin
import JSON

/// Renders `/stats` for people, in sections of aligned lines. Figures that a server of another version does not send are left out.
func statisticsTable(_ stats: JSONValue) -> String {
    var table = Table()
    table.title(
        "larder \(stats["version"]?.text ?? "?"), up \(timeSpan(stats["uptime_seconds"]?.integer ?? 0))"
            + (stats["draining"]?.flag == true ? ", draining" : ""))
    let isAlone = stats["fleet"]?["node"] == nil
    let ownsNothing = stats["owners"]?["members"]?.integer ?? 0 == 0
    for section in StatisticsSection.allCases where section != .process {
        if section == .fleet && isAlone || section == .owners && ownsNothing { continue }
        table.section(section.title, section.figures, stats[section.rawValue])
        if section == .bytes { table.ecosystems(stats["ecosystems"]?.elements ?? []) }
        if section == .memory { table.zones(stats["zones"]?.elements ?? []) }
    }
    table.limitRules(stats["limit_rules"]?.elements ?? [])
    table.learning(stats["learning"]?.elements ?? [])
    return table.text
}

/// Lines below a heading. Names are on the left, numbers on the right.
private struct Table {
    private var lines: [String] = []

    var text: String { lines.joined(separator: "\n") }

    mutating func title(_ text: String) { lines.append(text) }

    /// A section without a figure to show is left out.
    mutating func section<Subject>(_ title: String, _ figures: [Figure<Subject>], _ values: JSONValue?) {
        guard let values else { return }
        let heading = lines
        lines += ["", title]
        let count = lines.count
        for figure in figures { row(figure, values[figure.name]) }
        if lines.count == count { lines = heading }
    }

    mutating func ecosystems(_ ecosystems: [JSONValue]) {
        for ecosystem in ecosystems {
            section("Recipe \(ecosystem["name"]?.text ?? "?")", ecosystemFigures, ecosystem)
        }
    }

    mutating func limitRules(_ rules: [JSONValue]) {
        for rule in rules { section("Limit \(rule["name"]?.text ?? "?")", limitRuleFigures, rule) }
    }

    mutating func zones(_ zones: [JSONValue]) {
        for zone in zones {
            let name = zone["name"]?.text ?? "?"
            if zones.count > 1 { section("Memory tier of zone \(name)", memoryFigures, zone) }
            section("Disk tier of zone \(name)", diskFigures, zone["disk"])
        }
    }

    mutating func learning(_ jobs: [JSONValue]) {
        guard !jobs.isEmpty else { return }
        lines += ["", "Jobs that learn"]
        for job in jobs {
            let end = job["ends"]?.text.map { " until \($0)" } ?? ""
            let allowance = job["allows"]?.flag == true ? ": what the access rules deny is let through" : ""
            lines.append("  \(padded(job["job"]?.text ?? "?", 28))\(job["scope"]?.text ?? "")\(allowance)\(end)")
        }
    }

    private mutating func row<Subject>(_ figure: Figure<Subject>, _ value: JSONValue?) {
        guard let value, let text = figure.unit.text(value) else { return }
        if figure.prominence == .trouble && value.integer == 0 { return }
        let number = text.prefix { $0 != " " }
        let indent = String(repeating: " ", count: max(0, 12 - number.count))
        lines.append("  \(padded(figure.label, 28))\(indent)\(text)")
    }
}

extension FigureUnit {
    /// Nil if the value is not one of this unit.
    fileprivate func text(_ value: JSONValue) -> String? {
        switch self {
        case .count: value.integer.map(grouped)
        case .bytes: value.number.map(binarySize)
        case .bytesPerSecond: value.number.map { "\(binarySize($0))/s" }
        case .seconds: value.integer.map(timeSpan)
        case .ratio: value.number.map { "\(fixed($0 * 100)) %" } ?? "-"
        case .flag: value.flag.map { $0 ? "yes" : "no" }
        case .text, .time: value.text
        }
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
    return "\(units.first == "B" ? String(whole(value)) : fixed(value)) \(units.first ?? "")"
}

/// Rounds to one digit behind the point.
func fixed(_ value: Double) -> String {
    let tenths = whole((value * 10).rounded())
    return "\(tenths < 0 ? "-" : "")\(tenths.magnitude / 10).\(tenths.magnitude % 10)"
}

/// Without its fraction, and clamped to the range of the type. What is no number becomes 0.
func whole(_ value: Double) -> Int64 {
    if let exact = Int64(exactly: value.rounded(.towardZero)) { return exact }
    return value.isNaN ? 0 : value < 0 ? .min : .max
}

/// `3 d 4 h`, `4 h 5 min`, `5 min 6 s`, `6 s`.
func timeSpan(_ seconds: Int64) -> String {
    if seconds >= 86_400 { return "\(seconds / 86_400) d \(seconds / 3600 % 24) h" }
    if seconds >= 3600 { return "\(seconds / 3600) h \(seconds / 60 % 60) min" }
    return seconds >= 60 ? "\(seconds / 60) min \(seconds % 60) s" : "\(seconds) s"
}
