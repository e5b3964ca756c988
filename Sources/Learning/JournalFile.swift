import Access
import Message
import Rules

/// A journal as the text of a file: one line for each thing, its values separated by tabs. The last line counts the others, so that a file
/// that broke off is not taken for a whole one.
package enum JournalFile {
    private static let magic = "larder-journal 1"
    /// A file is no longer than this: twice what the bounds of a journal allow in practice.
    package static let bytesMax = 64 << 20

    package static func text(of journal: Journal) -> [UInt8] {
        var lines = [[magic], ["job", journal.job]]
        let scope = journal.scope
        // The last value is written where it is needed, so that an earlier version reads the others.
        lines.append(
            ["scope", scope.client.map { "\($0)" } ?? "-", optional(scope.user)]
                + (scope.listener == nil ? [] : [optional(scope.listener)]))
        lines.append(["left-out", "\(journal.leftOut)"])
        for run in journal.runs {
            lines.append([
                "run", "\(run.startedAt.secondsSinceEpoch)", optional(run.endedAt.map { "\($0.secondsSinceEpoch)" }),
                "\(run.requests)", run.allowed ? "allowed" : "-",
            ])
        }
        for (name, table) in [("needed", journal.needed), ("denied", journal.denied)] {
            for (place, shapes) in table.places.sorted(by: { $0.key < $1.key }) {
                for (shape, row) in shapes.sorted(by: { ($0.key?.pattern ?? "") < ($1.key?.pattern ?? "") }) {
                    lines.append([name] + fields(of: place) + fields(of: shape) + fields(of: row))
                }
            }
        }
        lines.append(["end", "\(lines.count)"])
        return lines.flatMap { Array($0.map(escaped).joined(separator: "\t").utf8) + [0x0A] }
    }

    /// - Returns: nil if the text is not a whole journal.
    package static func journal(from text: [UInt8]) -> Journal? {
        guard text.count <= bytesMax, text.last == 0x0A else { return nil }
        let lines = text.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            line.split(separator: 0x09, omittingEmptySubsequences: false).map(unescaped)
        }
        guard lines.count >= 5, lines[0] == [magic], lines[lines.count - 1] == ["end", "\(lines.count - 1)"],
            lines[1].count == 2, lines[1][0] == "job", isJobName(lines[1][1]), let scope = scope(lines[2]),
            lines[3].count == 2, lines[3][0] == "left-out", let leftOut = count(lines[3][1])
        else { return nil }
        var journal = Journal(job: lines[1][1], scope: scope)
        journal.leftOut = leftOut
        for line in lines[4..<(lines.count - 1)] where !read(line, into: &journal) { return nil }
        return journal
    }

    private static func read(_ line: [String], into journal: inout Journal) -> Bool {
        switch line.first {
        case "run":
            guard line.count == 5, journal.runs.count < Journal.runsMax, let start = Int64(line[1]),
                let requests = count(line[3])
            else { return false }
            var run = Journal.Run(startedAt: WallTime(secondsSinceEpoch: start))
            run.endedAt = Int64(line[2].dropFirst()).map { WallTime(secondsSinceEpoch: $0) }
            run.requests = requests
            run.allowed = line[4] == "allowed"
            journal.runs.append(run)
            return true
        case "needed": return read(line, into: &journal.needed)
        case "denied": return read(line, into: &journal.denied)
        default: return false
        }
    }

    private static func read(_ line: [String], into table: inout Table) -> Bool {
        guard line.count == 20, let place = place(line[1...4]), let row = row(line[7...]) else { return false }
        let shape: PathShape?
        switch line[5] {
        case "exact": shape = .exact(line[6])
        case "below": shape = .below(line[6])
        case "-": shape = nil
        case let kind where kind.hasPrefix("recipe:"): shape = .recipe(String(kind.dropFirst(7)), pattern: line[6])
        default: return false
        }
        guard shape.map({ PathPattern($0.pattern) != nil }) ?? (place.method == "CONNECT") else { return false }
        return table.restore(row, at: place, shape)
    }

    // MARK: parts of a line

    private static func scope(_ line: [String]) -> JobScope? {
        guard (3...4).contains(line.count), line[0] == "scope" else { return nil }
        let client = AddressRange(line[1])
        guard client != nil || line[1] == "-" else { return nil }
        func text(_ field: String) -> String? { field == "-" ? nil : String(field.dropFirst()) }
        return JobScope(client: client, user: text(line[2]), listener: line.count == 4 ? text(line[3]) : nil)
    }

    private static func fields(of place: Place) -> [String] {
        [
            "\(place.host)", "\(place.port)", place.method,
            place.addresses.isEmpty ? "-" : place.addresses.map { "\($0)" }.joined(separator: ","),
        ]
    }

    private static func place(_ fields: ArraySlice<String>) -> Place? {
        let fields = Array(fields)
        let addresses = fields[3] == "-" ? [] : fields[3].split(separator: ",").map { AddressRange($0) }
        guard
            let host = IPAddress(strict: Array(fields[0].utf8)).map(DestinationHost.address)
                ?? DestinationHost(Array(fields[0].utf8)), let port = UInt16(fields[1]), !fields[2].isEmpty,
            !addresses.contains(nil)
        else { return nil }
        return Place(host: host, port: port, method: fields[2], addresses: addresses.compactMap(\.self))
    }

    private static func fields(of shape: PathShape?) -> [String] {
        switch shape {
        case nil: ["-", "-"]
        case .exact(let text): ["exact", text]
        case .below(let directory): ["below", directory]
        case .recipe(let name, let pattern): ["recipe:\(name)", pattern]
        }
    }

    private static func fields(of row: Row) -> [String] {
        [
            "\(row.runs)", "\(row.requests)", "\(row.permitted)", "\(row.opened)", "\(row.requestBytesMax)",
            "\(row.responseBytesMax)", row.credentials.isEmpty ? "-" : "=" + row.credentials.joined(separator: ","),
            optional(row.reason?.rawValue), optional(row.rule.map { "\($0)" }),
            row.sample.scheme == .https ? "https" : "http", row.sample.client.map { "\($0)" } ?? "-",
            optional(row.sample.user), row.sample.path.map { "=" + String(decoding: $0, as: UTF8.self) } ?? "-",
        ]
    }

    private static func row(_ slice: ArraySlice<String>) -> Row? {
        let fields = Array(slice)
        guard let runs = UInt64(fields[0]), let requests = count(fields[1]), let permitted = count(fields[2]),
            let opened = count(fields[3]), let sent = UInt64(fields[4]), let received = UInt64(fields[5])
        else { return nil }
        let reason = fields[7] == "-" ? nil : DenialReason(rawValue: String(fields[7].dropFirst()))
        let sample = Row.Sample(
            scheme: fields[9] == "https" ? .https : .http, client: IPAddress(strict: Array(fields[10].utf8)),
            user: fields[11] == "-" ? nil : String(fields[11].dropFirst()),
            path: fields[12] == "-" ? nil : Array(fields[12].utf8.dropFirst()))
        return Row(
            runs: runs, requests: requests, permitted: permitted, opened: opened, requestBytesMax: sent,
            responseBytesMax: received,
            credentials: fields[6] == "-" ? [] : fields[6].dropFirst().split(separator: ",").map { String($0) },
            reason: reason, rule: fields[8] == "-" ? nil : Int(fields[8].dropFirst()), sample: sample)
    }

    /// A count that others can be added to. Returns nil for what is none.
    private static func count(_ text: String) -> Int? { parseOctetCount(text.utf8).map { Int($0) } }

    /// `-` for nil; other texts have a `=` before them.
    private static func optional(_ text: String?) -> String { text.map { "=" + $0 } ?? "-" }

    private static func escaped(_ text: String) -> String {
        text.utf8.reduce(into: "") { result, byte in
            if byte > 0x1F && byte < 0x7F && byte != UInt8(ascii: "%") {
                result.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                result += "%" + String(decoding: hexadecimal([byte]), as: UTF8.self)
            }
        }
    }

    private static func unescaped(_ text: ArraySlice<UInt8>) -> String {
        var result: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let high = hexValue(rest[rest.startIndex]),
                let low = hexValue(rest[rest.startIndex + 1])
            {
                result.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
