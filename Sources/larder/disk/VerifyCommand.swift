import Admin
import Disk
import DiskTools
import Settings
import Texts

/// `larder verify [--repair] [--zone NAME] [--json]`: returns 0 if everything is intact or was repaired, otherwise 1.
func verifyCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.isEmpty else { throw UsageError("verify takes no \"\(arguments.words[0])\"") }
    guard let disks = try zoneDisks(arguments, console) else { return ExitStatus.usage }
    let bar = ProgressBar()
    var outcomes: [VerifyOutcome] = []
    for disk in disks {
        let outcome = verified(disk, repair: arguments.has(.repair), bar)
        bar.clear()
        outcomes.append(outcome)
        // Print each result as soon as it is known: a large zone takes long.
        if arguments.has(.json) { continue }
        if let problem = outcome.problem { console.error("larder: zone \(disk.zone): \(problem)") }
        if let text = outcome.text { console.print(text) }
    }
    if arguments.has(.json) { console.print(VerifyOutcome.json(outcomes)) }
    return outcomes.allSatisfy(\.isFine) ? ExitStatus.done : ExitStatus.failed
}

private func verified(_ disk: ZoneDisk, repair: Bool, _ bar: ProgressBar) -> VerifyOutcome {
    do throws(DiskRefusal) {
        let report = try verify(path: disk.path, repair: repair) { progress in
            bar.show(
                progress.bytesDone, of: progress.bytesTotal,
                "\(disk.zone): \(phaseText(progress.phase, repair: repair))")
        }
        return VerifyOutcome(disk: disk, report: report)
    } catch {
        return VerifyOutcome(disk: disk, refusal: error, repair: repair)
    }
}

private func phaseText(_ phase: VerifyProgress.Phase, repair: Bool) -> String {
    switch phase {
    case .book: "the book"
    case .segments: "records and blocks"
    case .entries: "the book's entries"
    case .repair: "repairing"
    }
}

/// The result for the disk of one zone, as text and as JSON.
struct VerifyOutcome {
    let disk: ZoneDisk
    private let report: VerifyReport?
    /// Why the disk could not be examined. Nil if it was examined.
    let problem: String?

    init(disk: ZoneDisk, report: VerifyReport) {
        self.disk = disk
        self.report = report
        problem = nil
    }

    init(disk: ZoneDisk, refusal: DiskRefusal, repair: Bool) {
        self.disk = disk
        report = nil
        let reason = refusal.description
        if case .inUse = refusal, repair {
            problem =
                "\(reason): stop the proxy to repair; while it runs, it removes damaged responses itself, and verify without --repair works"
        } else {
            problem = reason
        }
    }

    var isFine: Bool { report?.isFine ?? false }

    /// Nil if the disk could not be examined.
    var text: String? {
        guard let report else { return nil }
        let read =
            "\(binarySize(Double(report.bytesRead))) in \(counted(report.segmentsRead)) files, \(counted(report.blocksRead)) blocks"
        var lines = [
            "zone \(disk.zone), \(disk.path)" + (report.wasInUse ? " (in use by a proxy)" : ""),
            "  objects  \(counted(report.objectsGood)) whole, \(counted(report.largeGood)) of them large",
            "  read     \(read); book \(binarySize(Double(report.bookBytes)))",
        ]
        lines += report.findings.map { "  \($0.line)" }
        let unlisted = report.findingCount - min(report.findingCount, UInt64(report.findings.count))
        if unlisted > 0 { lines.append("  and \(counted(unlisted)) more") }
        if let moved = report.bookMovedTo { lines.append("  the damaged book is now \(moved); you can delete it") }
        lines.append("  \(conclusion(report))")
        return lines.joined(separator: "\n")
    }

    private func conclusion(_ report: VerifyReport) -> String {
        let count = "\(counted(report.findingCount)) \(report.findingCount == 1 ? "finding" : "findings")"
        if report.findingCount == 0 { return "all is fine" }
        if report.isFine { return "\(count), all repaired" }
        return report.repairedCount == 0
            ? "\(count): stop the proxy and run larder verify --repair"
            : "\(count), \(counted(report.repairedCount)) of them repaired"
    }

    /// `{"fine":…,"zones":[…]}`
    static func json(_ outcomes: [VerifyOutcome]) -> String {
        var writer = JSONWriter()
        writer.object { json in
            json.member("fine", outcomes.allSatisfy(\.isFine))
            json.key("zones")
            json.array { for outcome in outcomes { outcome.write(to: &$0) } }
        }
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("name", disk.zone)
            json.member("path", disk.path)
            json.member("fine", isFine)
            if let problem { json.member("error", problem) }
            guard let report else { return }
            json.member("in_use", report.wasInUse)
            json.member("objects", report.objectsGood)
            json.member("large", report.largeGood)
            json.member("files", report.segmentsRead)
            json.member("blocks", report.blocksRead)
            json.member("bytes", report.bytesRead)
            json.member("book_bytes", report.bookBytes)
            json.member("finding_count", report.findingCount)
            json.member("repaired", report.repairedCount)
            if let moved = report.bookMovedTo { json.member("book_moved_to", moved) }
            json.key("findings")
            json.array { for finding in report.findings { finding.write(to: &$0) } }
        }
    }
}

/// A count with separators: `2,000`.
func counted(_ value: some BinaryInteger) -> String { grouped(Int64(clamping: value)) }

extension VerifyFinding {
    /// `record-damaged  segments/00000001.seg at 4096  http://a/b: its checksum is wrong (repaired)`
    fileprivate var line: String {
        let place = file.isEmpty ? "" : "\(file)\(offset > 0 ? " at \(offset)" : "")  "
        let key = key.isEmpty ? "" : "\(lineText(String(decoding: key, as: UTF8.self))): "
        return "\(padded(kind.rawValue, 16)) \(place)\(key)\(text)\(isRepaired ? " (repaired)" : "")"
    }

    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("kind", kind.rawValue)
            if !key.isEmpty { $0.member("key", String(decoding: key, as: UTF8.self)) }
            if !file.isEmpty { $0.member("file", file) }
            $0.member("offset", offset)
            $0.member("text", text)
            $0.member("repaired", isRepaired)
        }
    }
}
