import Admin
import JSON

/// `larder stats --fleet`: the nodes of the fleet, as the node that is asked knows them.
///
/// - Returns: 1 if this Larder is in no fleet, or has no connection to the Redis: the figures of the others are old then.
func showFleet(
    _ client: AdminClient, _ arguments: Arguments, _ console: Console
) throws(AdminClient.Failure) -> Int32 {
    let answer = try client.ask("GET", "/stats?fleet")
    guard answer.status == 200 else {
        let reason = (try? JSONValue(parsing: answer.body))?.legible["error"]?.text
        console.error("larder: \(reason ?? "the admin server answered with status \(answer.status)")")
        if answer.status == 404 { console.error("        docs/fleet.md says how to set up a fleet") }
        return ExitStatus.failed
    }
    var away: String?
    let status = show(answer.body, arguments, console) { view in
        away = awayText(view)
        return fleetTable(view)
    }
    if arguments.has(.json) { away = ((try? JSONValue(parsing: answer.body))?.legible).flatMap(awayText) }
    guard status == ExitStatus.done, let away else { return status }
    console.error("larder: \(away)")
    return ExitStatus.failed
}

/// Nil if there is a connection.
private func awayText(_ view: JSONValue) -> String? {
    guard view["connected"]?.flag == false else { return nil }
    let since = view["away_since"]?.text.map { " since \($0)" } ?? ""
    let reason = view["failure"]?.text.map { ": \($0)" } ?? ""
    return
        "no connection to the Redis\(since)\(reason). The figures of the other nodes are the last ones that are known"
}

/// Renders `/stats?fleet` for people.
func fleetTable(_ view: JSONValue) -> String {
    let nodes = view["nodes"]?.elements ?? []
    var rows = [columns.map(\.head)] + nodes.map { node in columns.map { $0.text(node) } }
    if nodes.count > 1, let sum = view["sum"] {
        rows.append(columns.map { $0.isOfSum ? $0.text(sum) : "" })
        rows[rows.count - 1][0] = "sum"
    }
    let widths = columns.indices.map { index in rows.map { $0[index].count }.max() ?? 0 }
    var lines = rows.map { row in
        var line = ""
        for (index, text) in row.enumerated() {
            let gap = String(repeating: " ", count: widths[index] - text.count)
            line += (index == 0 ? "" : "  ") + (columns[index].isNumber ? gap + text : text + gap)
        }
        while line.last == " " { line.removeLast() }
        return line
    }
    if let own = view["node"]?.text, let server = view["server"]?.text {
        lines.insert(contentsOf: ["The fleet at \(server), as \(own) knows it", ""], at: 0)
    }
    if let failure = view["failure"]?.text, view["connected"]?.flag == true {
        lines += ["", "\(view["node"]?.text ?? "This node") does not follow the purges of the others: \(failure)"]
    }
    if let count = view["unreadable"]?.integer, count > 0 {
        lines += [
            "",
            "\(grouped(count)) more in the register, whose figures this node cannot read: an earlier release, another secret, or a made-up name",
        ]
    }
    for node in nodes where node["namesake"]?.flag == true {
        lines += ["", "Two nodes have the name \(node["name"]?.text ?? "?"): give each its own with fleet.node.name"]
    }
    return lines.joined(separator: "\n")
}

private struct Column: Sendable {
    let head: String
    var isNumber = true
    var isOfSum = true
    /// `-` stands for what the node does not say.
    let text: @Sendable (JSONValue) -> String

    init(_ head: String, isNumber: Bool = true, isOfSum: Bool = true, _ text: @escaping @Sendable (JSONValue) -> String)
    {
        self.head = head
        self.isNumber = isNumber
        self.isOfSum = isOfSum
        self.text = text
    }

    static func count(_ head: String, _ member: String) -> Column {
        Column(head) { $0[member]?.integer.map(grouped) ?? "-" }
    }

    static func size(_ head: String, _ member: String) -> Column {
        Column(head) { $0[member]?.number.map(binarySize) ?? "-" }
    }
}

private let columns: [Column] = [
    Column("NODE", isNumber: false, isOfSum: false) { $0["name"]?.text ?? "?" },
    Column("RELEASE", isNumber: false, isOfSum: false) { $0["release"]?.text ?? "?" },
    Column("UP", isOfSum: false) { $0["uptime"]?.integer.map(timeSpan) ?? "-" },
    Column("STATE", isNumber: false, isOfSum: false, stateText),
    .count("REQUESTS", "requests"),
    Column("HITS") { $0["hit_ratio"]?.number.map { "\(fixed($0 * 100)) %" } ?? "-" },
    .count("MEMORY", "memory_hits"), .count("DISK", "disk_hits"), .count("SHARED", "shared_hits"),
    .count("PEER", "peer_hits"), .count("ORIGIN", "from_origin"),
    .size("SERVED", "bytes_served"), .size("SAVED", "bytes_saved"),
    Column("NOW") { $0["bandwidth_to_clients"]?.number.map { "\(binarySize($0))/s" } ?? "-" },
]

@Sendable private func stateText(_ node: JSONValue) -> String {
    let state = node["state"]?.text ?? "?"
    let age = timeSpan(node["age_seconds"]?.integer ?? 0)
    switch FleetMember.State(rawValue: state) {
    case .up: return "connected"
    case .notFollowing: return "does not follow"
    case .draining: return "draining"
    case .alone: return "no Redis"
    case .silent: return "silent for \(age)"
    case .unknown: return "unknown for \(age)"
    case nil: return state
    }
}
