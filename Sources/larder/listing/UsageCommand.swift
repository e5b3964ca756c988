import Admin
import Message
import JSON

/// `larder du [PREFIX] [CONDITION]... [--json]`: how many responses, and how many bytes of bodies, by host and by zone.
func usageCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    var usage = Usage()
    let status = try forEachObject(arguments, console) { _, object in usage.add(object) }
    guard status == ExitStatus.done else { return status }
    console.print(arguments.has(.json) ? usage.json : usage.text)
    return status
}

/// Sums over the objects of `GET /objects`.
struct Usage {
    struct Sum: Equatable {
        var records: Int64 = 0
        var bytes: Int64 = 0
    }
    private(set) var hosts: [String: Sum] = [:]
    private(set) var zones: [String: Sum] = [:]
    private(set) var total = Sum()

    mutating func add(_ object: JSONValue) {
        let bytes = object["bytes"]?.integer ?? 0
        // What has several addresses counts for the first: each response is there once.
        let address = object["addresses"]?.elements?.first ?? object["url"]
        let host = address?.text.flatMap { TargetURI($0.utf8) }?.host ?? "?"
        hosts[host, default: Sum()].add(bytes)
        zones[object["zone"]?.text ?? "?", default: Sum()].add(bytes)
        total.add(bytes)
    }

    var text: String {
        let lines =
            ["By host"] + Usage.ordered(hosts).map { Usage.line($0.name, $0.sum) } + ["", "By zone"]
            + Usage.ordered(zones).map { Usage.line($0.name, $0.sum) } + ["", Usage.line("total", total)]
        return lines.joined(separator: "\n")
    }

    var json: String {
        var writer = JSONWriter()
        writer.object { writer in
            for (key, name, sums) in [("hosts", "host", hosts), ("zones", "zone", zones)] {
                writer.key(key)
                writer.array { writer in
                    for entry in Usage.ordered(sums) {
                        writer.object {
                            $0.member(name, entry.name)
                            $0.member("records", entry.sum.records)
                            $0.member("bytes", entry.sum.bytes)
                        }
                    }
                }
            }
            writer.member("records", total.records)
            writer.member("bytes", total.bytes)
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// In decreasing order.
    private static func ordered(_ sums: [String: Sum]) -> [(name: String, sum: Sum)] {
        sums.map { (name: $0.key, sum: $0.value) }
            .sorted { ($1.sum.bytes, $1.sum.records, $0.name) < ($0.sum.bytes, $0.sum.records, $1.name) }
    }

    private static func line(_ name: String, _ sum: Sum) -> String {
        "  \(aligned(binarySize(Double(sum.bytes)), 10))  \(aligned(grouped(sum.records), 9))  \(name)"
    }
}

extension Usage.Sum {
    fileprivate mutating func add(_ count: Int64) {
        records += 1
        bytes = bytes.saturatingAdd(count)
    }
}
