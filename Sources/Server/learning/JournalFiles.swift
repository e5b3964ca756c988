import Accounts
import EventLoop
import Glibc
import Learning
import Message
import Secrets

/// The files of the journals: `JOB.journal` in one directory. All calls block.
struct JournalFiles: Sendable {
    private let directories: [String]
    private let make: @Sendable (String) -> Void
    /// The one that has the files. Nil before one is needed.
    private var directory: String?
    /// What was said about a file last: it is said once.
    private var complaint: String?

    private static let suffix = ".journal"

    init(_ directories: [String], make: @escaping @Sendable (String) -> Void) {
        self.directories = directories
        self.make = make
        directory = directories.first { JournalFiles.isWritable($0) }
    }

    private static func isWritable(_ path: String) -> Bool { unsafe access(path, R_OK | W_OK | X_OK) == 0 }

    /// Makes the directory if there is none yet.
    ///
    /// - Returns: why there is none.
    mutating func prepare() -> String? {
        if directory != nil { return nil }
        for path in directories {
            make(path)
            if JournalFiles.isWritable(path) {
                directory = path
                return nil
            }
        }
        return "no journal can be written to \(directories.joined(separator: " or ")): it is kept in memory only"
    }

    /// All journals. A file that is no journal is named in the log, and left as it is.
    func read() -> [Journal] {
        guard let directory else { return [] }
        return names(in: directory).sorted().compactMap { name in
            let path = "\(directory)/\(name)"
            var file = PrivateFile(path: path, bytesMax: JournalFile.bytesMax)
            do throws(ReadFailure) {
                guard let content = try file.readIfChanged() else { return nil }
                guard var journal = JournalFile.journal(from: content.bytes), "\(journal.job)\(Self.suffix)" == name
                else {
                    Diagnostics.warning("learning: \(path) is damaged: what the job requested before is lost")
                    return nil
                }
                if journal.isRunning { journal.end(at: WallTime(ticks: readWallTicks())) }
                return journal
            } catch {
                Diagnostics.warning("learning: \(path) cannot be read: \(error.text)")
                return nil
            }
        }
    }

    mutating func write(_ journal: Journal) {
        guard let directory else { return }
        let path = "\(directory)/\(journal.job)\(Self.suffix)"
        let code = replaceFile(path, with: JournalFile.text(of: journal), mode: 0o600)
        let problem = code.map { "learning: \(path) cannot be written: \(systemErrorText($0))" }
        if let problem, problem != complaint { Diagnostics.warning(problem) }
        complaint = problem
    }

    func remove(_ job: String) {
        guard let directory else { return }
        _ = unsafe unlink("\(directory)/\(job)\(Self.suffix)")
    }

    private func names(in directory: String) -> [String] {
        guard let stream = unsafe opendir(directory) else { return [] }
        defer { unsafe closedir(stream) }
        var names: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name.hasSuffix(Self.suffix) { names.append(name) }
        }
        return names
    }
}
