import Admin
import Disk
import DiskTools
import Settings
import TLS
import Texts

/// `larder export FILE.tar [--zone NAME] [--host HOST | --prefix URL] [--dry-run] [--json]`
func exportCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let archive = try archivePath(arguments, .export)
    let selection = try KeySelection(arguments)
    guard let disk = try zoneDisk(arguments, console) else { return ExitStatus.usage }
    let options = ExportOptions(
        path: disk.path, zone: disk.zone, archive: archive, range: selection.range, selection: selection.text,
        isDryRun: arguments.has(.dryRun), sha256: { Digest.sha256($0) })
    let bar = ProgressBar()
    do throws(ArchiveError) {
        let report = try export(options) {
            bar.show($0.bytesDone, of: $0.bytesTotal)
        } damaged: { key in
            bar.clear()
            console.error("larder: damaged, left out: \(lineText(String(decoding: key, as: UTF8.self)))")
        }
        bar.clear()
        let isDryRun = arguments.has(.dryRun)
        console.print(
            arguments.has(.json)
                ? exportJSON(report, disk, archive, isDryRun: isDryRun)
                : exportText(report, disk, archive, isDryRun: isDryRun))
        return report.isFine ? ExitStatus.done : ExitStatus.failed
    } catch {
        bar.clear()
        console.error("larder: \(text(of: error, zone: disk.zone))")
        return ExitStatus.failed
    }
}

func exportText(_ report: ExportReport, _ disk: ZoneDisk, _ archive: String, isDryRun: Bool) -> String {
    let verb = isDryRun ? "would export" : "exported"
    let first =
        "\(verb) \(objects(report.objects)), \(binarySize(Double(report.bytes))), from zone \(disk.zone) to \(archive)"
    let rest = lines([
        (report.objectsBefore, "were in it already from an earlier run"),
        (report.gone, "were removed before their turn"),
        (report.damaged, "damaged ones were left out"), (report.damagedBlocks, "damaged blocks were left out"),
        (report.damagedEntries, "entries of the index could not be read"),
    ])
    return ([first] + rest + (report.isFine ? [] : ["  run larder verify for details"])).joined(separator: "\n")
}

func exportJSON(_ report: ExportReport, _ disk: ZoneDisk, _ archive: String, isDryRun: Bool) -> String {
    var writer = JSONWriter()
    writer.object {
        $0.member("zone", disk.zone)
        $0.member("file", archive)
        $0.member("fine", report.isFine)
        $0.member("dry_run", isDryRun)
        $0.member("objects", report.objects)
        $0.member("bytes", report.bytes)
        $0.member("objects_before", report.objectsBefore)
        $0.member("gone", report.gone)
        $0.member("damaged", report.damaged)
        $0.member("damaged_blocks", report.damagedBlocks)
        $0.member("damaged_entries", report.damagedEntries)
    }
    return String(decoding: writer.bytes, as: UTF8.self)
}
