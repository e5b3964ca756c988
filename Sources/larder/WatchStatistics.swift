import Admin
import Glibc
import JSON

/// `larder stats --watch`: a picture of the traffic, once a second. Ends when the proxy does, or with a signal.
///
/// On a terminal each picture takes the place of the one before. Elsewhere they follow each other; with `--json` each is one line.
func watch(_ client: AdminClient, _ arguments: Arguments, _ console: Console) throws(AdminClient.Failure) -> Int32 {
    let isTerminal = isatty(STDOUT_FILENO) == 1
    var pictures = TrafficPictures()
    while true {
        let stats = try client.ask("GET", "/stats")
        let transfers = try client.ask("GET", "/transfers")
        guard stats.status == 200, transfers.status == 200 else {
            console.error("larder: the admin server answered with status \(max(stats.status, transfers.status))")
            return ExitStatus.failed
        }
        if arguments.has(.json) {
            let parts = [stats, transfers].map { String(decoding: $0.body, as: UTF8.self).trimmingNewline }
            // The second is an object with one member.
            console.print("{\"stats\":\(parts[0]),\(parts[1].dropFirst())")
        } else {
            do throws(JSONError) {
                let size = isTerminal ? terminalSize() : (columns: 200, rows: Int.max)
                let text = pictures.next(
                    try JSONValue(parsing: stats.body).legible, try JSONValue(parsing: transfers.body).legible,
                    after: .seconds(1), columns: size.columns, rows: size.rows)
                if isTerminal { Console.clearScreen() }
                console.print(text)
            } catch {
                console.error("larder: the answer is not JSON: \(error.text)")
                return ExitStatus.failed
            }
        }
        sleep(1)
    }
}

private func terminalSize() -> (columns: Int, rows: Int) {
    var size = winsize()
    guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 1 else {
        return (80, 24)
    }
    return (Int(size.ws_col), Int(size.ws_row))
}

/// What `--watch` shows, from two answers to the next: rates are differences.
struct TrafficPictures {
    private var requests: Int64?
    /// The bytes of each transfer in the picture before, by its ID.
    private var bytes: [String: Int64] = [:]

    /// - Parameters:
    ///   - time: since the picture before.
    ///   - rows: how many lines there is room for.
    mutating func next(
        _ stats: JSONValue, _ transfers: JSONValue, after time: Duration, columns: Int, rows: Int
    ) -> String {
        let seconds = max(0.001, Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18)
        let total = count(stats["requests"]?["total"])
        let rate = requests.map { Double(max(0, total - $0)) / seconds }
        requests = total
        let traffic = stats["bandwidth"]
        var lines = [
            "larder \(stats["version"]?.text ?? "?"), up \(timeSpan(stats["uptime_seconds"]?.integer ?? 0))"
                + (stats["draining"]?.flag == true ? ", draining" : ""),
            "\(rate.map { fixed($0) } ?? "-") requests/s, "
                + "\(binarySize(traffic?["to_clients"]?.number ?? 0))/s to clients, "
                + "\(binarySize(traffic?["from_origins"]?.number ?? 0))/s from origins, "
                + "hit ratio \(stats["hit_ratio"]?["requests"]?.number.map { "\(fixed($0 * 100)) %" } ?? "-")",
        ]
        for limit in stats["bandwidth_limits"]?.elements ?? [] {
            lines.append(
                "\(limit["limit"]?.text ?? "?"): \(binarySize(limit["average"]?.number ?? 0))/s of "
                    + "\(binarySize(limit["rate"]?.number ?? 0))/s")
        }
        lines.append("")
        let list = (transfers["transfers"]?.elements ?? []).sorted {
            ($0["age_milliseconds"]?.integer ?? 0) > ($1["age_milliseconds"]?.integer ?? 0)
        }
        var present: [String: Int64] = [:]
        for transfer in list { lines.append(line(transfer, seconds, isNarrow: columns < 130, &present)) }
        bytes = present
        if list.isEmpty { lines.append("no transfer is under way") }
        if lines.count > rows - 1 {
            let hidden = lines.count - rows + 2
            lines = lines.prefix(rows - 2) + ["… and \(hidden) more"]
        }
        return lines.map { String($0.prefix(columns)) }.joined(separator: "\n")
    }

    private func line(
        _ transfer: JSONValue, _ seconds: Double, isNarrow: Bool, _ present: inout [String: Int64]
    ) -> String {
        let width = isNarrow ? 8 : 20
        let id = transfer["id"]?.text ?? "?"
        let received = count(transfer["received_bytes"])
        let sent = count(transfer["sent_bytes"])
        present[id] = received + sent
        let age = Double(transfer["age_milliseconds"]?.integer ?? 0) / 1000
        let rate =
            bytes[id].map { Double(max(0, received + sent - $0)) / seconds } ?? Double(received + sent)
            / max(age, 0.001)
        var parts = [padded(id, 10)]
        if case let expected = count(transfer["expected_bytes"]), expected > 0 {
            let share = min(1, Double(received) / Double(expected))
            let filled = Int(share * Double(width))
            parts.append(
                "[\(String(repeating: "#", count: filled))\(String(repeating: "-", count: width - filled))]"
                    + aligned("\(Int(share * 100)) %", 6))
            parts.append(padded("\(binarySize(Double(received))) of \(binarySize(Double(expected)))", 24))
            parts.append(aligned("\(binarySize(rate))/s", 14))
            if !isNarrow {
                parts.append(padded(rate >= 1 ? "\(timeSpan(whole(Double(expected - received) / rate))) left" : "", 16))
            }
        } else {
            parts.append(padded(transfer["state"]?.text ?? "", width + 8))
            parts.append(
                padded(binarySize(Double(received)) + (sent > 0 ? ", sent \(binarySize(Double(sent)))" : ""), 24))
            parts.append(aligned("\(binarySize(rate))/s", 14))
            if !isNarrow { parts.append(padded(timeSpan(whole(age)), 16)) }
        }
        if !isNarrow, let request = transfer["request_id"]?.text { parts.append(request) }
        parts.append("\(transfer["method"]?.text ?? "?") \(transfer["url"]?.text ?? "?")")
        return parts.joined(separator: " ")
    }
}

/// A count of the server, from 0 to 2⁵³ − 1.
private func count(_ value: JSONValue?) -> Int64 { min(max(value?.integer ?? 0, 0), 1 << 53 - 1) }
