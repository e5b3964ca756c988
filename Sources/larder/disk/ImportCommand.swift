import Admin
import Disk
import DiskTools
import Settings
import TLS
import Texts

/// `larder import FILE.tar [--zone NAME] [--host HOST | --prefix URL] [--dry-run] [--json]`
func importCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let archive = try archivePath(arguments, .import)
    let selection = try KeySelection(arguments)
    guard let disk = try zoneDisk(arguments, console) else { return ExitStatus.usage }
    let isDryRun = arguments.has(.dryRun)
    let options = ImportOptions(
        archive: archive, store: diskOptions(disk, console), selects: { selection.holds($0) },
        sha256: { Digest.sha256($0) })
    let bar = ProgressBar()
    let show = { (progress: ArchiveProgress) in bar.show(progress.bytesDone, of: progress.bytesTotal) }
    let damaged = { (name: [UInt8]) in
        bar.clear()
        console.error("larder: damaged, left out: \(lineText(String(decoding: name, as: UTF8.self)))")
    }
    do throws(ArchiveError) {
        let report =
            try isDryRun
            ? surveyImport(options, progress: show, damaged: damaged)
            : `import`(options, progress: show, damaged: damaged)
        bar.clear()
        console.print(
            arguments.has(.json)
                ? importJSON(report, disk, archive, isDryRun: isDryRun)
                : importText(report, disk, archive, isDryRun: isDryRun))
        return report.isFine ? ExitStatus.done : ExitStatus.failed
    } catch {
        bar.clear()
        console.error("larder: \(text(of: error, zone: disk.zone))")
        return ExitStatus.failed
    }
}

/// The options with which the proxy would open the store. The hash is valid in this process only, and is never stored.
private func diskOptions(_ disk: ZoneDisk, _ console: Console) -> DiskOptions {
    DiskOptions(
        path: disk.path, size: disk.size, pinned: disk.pinned, syncInterval: disk.sync,
        hash: { key in
            var hasher = Hasher()
            unsafe key.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
            return UInt64(bitPattern: Int64(hasher.finalize()))
        },
        log: { event in
            if event.level != .info { console.error("larder: zone \(disk.zone): \(event.text)") }
        })
}

func importText(_ report: ImportReport, _ disk: ZoneDisk, _ archive: String, isDryRun: Bool) -> String {
    let verb = isDryRun ? "would import" : "imported"
    let first =
        "\(verb) \(objects(report.objects)), \(binarySize(Double(report.bytes))), from \(archive) into zone \(disk.zone)"
    var rest = lines([
        (report.completed, "of them were stored in part before"), (report.there, "were stored already"),
        (report.notSelected, "were not selected"), (report.damaged, "damaged ones were left out"),
        (report.damagedBlocks, "damaged blocks were left out"),
        (report.pinnedQuotaFull, "pinned ones were left out: the quota of the zone (pinned) is full"),
        (report.refused, "were left out: too large for the zone, or they could not be written"),
        (report.evicted, "were evicted to make room: the zone is too small for the archive"),
    ])
    if !report.isWhole {
        rest.append("  the archive is incomplete: run the export again to complete it, then import the rest")
    } else if report.isDigestRight != true {
        rest.append(
            "  the archive was changed: its digest is \(report.isDigestRight == nil ? "missing" : "wrong")"
        )
    }
    return ([first] + rest).joined(separator: "\n")
}

func importJSON(_ report: ImportReport, _ disk: ZoneDisk, _ archive: String, isDryRun: Bool) -> String {
    var writer = JSONWriter()
    writer.object {
        $0.member("zone", disk.zone)
        $0.member("file", archive)
        $0.member("fine", report.isFine)
        $0.member("dry_run", isDryRun)
        $0.member("objects", report.objects)
        $0.member("bytes", report.bytes)
        $0.member("completed", report.completed)
        $0.member("there", report.there)
        $0.member("not_selected", report.notSelected)
        $0.member("damaged", report.damaged)
        $0.member("damaged_blocks", report.damagedBlocks)
        $0.member("pinned_quota_full", report.pinnedQuotaFull)
        $0.member("refused", report.refused)
        $0.member("evicted", report.evicted)
        $0.member("whole", report.isWhole)
        if let isDigestRight = report.isDigestRight { $0.member("digest_right", isDigestRight) }
    }
    return String(decoding: writer.bytes, as: UTF8.self)
}
