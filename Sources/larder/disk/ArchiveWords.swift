import Disk
import DiskTools
import Provisioning

/// The argument of export and import: one file.
func archivePath(_ arguments: Arguments, _ command: Command) throws(UsageError) -> String {
    guard arguments.words.count == 1 else {
        throw UsageError(
            "\(command.rawValue) takes one file", hint: "larder \(command.rawValue) \(command.synopsis)")
    }
    return arguments.words[0]
}

/// Tells the operator why an export or import was not done.
func text(of error: ArchiveError, zone: String) -> String {
    switch error {
    case .noStore(let path): "zone \(zone): \(path) has no disk store yet"
    case .store(.inUse(let path)):
        "zone \(zone): \(path) is in use by another process: stop the proxy before you import (export and verify work while it runs)"
    case .store(let refusal): "zone \(zone): \(refusal)"
    case .book(let path, .failed(let code)): FileError(path: "\(path)/book", code: code).text
    case .book(let path, let error): "\(path): \(error)"
    case .archive(let path, let code): FileError(path: path, code: code).text
    case .notAnExport(let path): "\(path) is not an export of Larder"
    case .unknownVersion(let path, let version):
        "\(path) is an export of version \(version), which this Larder does not support"
    case .alreadyWhole(let path): "\(path) already contains a complete export: delete it, or name another file"
    case .another(let path):
        "\(path) is the start of a different export: delete it, or name another file"
    case .storeOff(let reason): "zone \(zone): nothing can be written: \(reason)"
    case .notWritten: "zone \(zone): not everything could be written"
    }
}

/// `1 object`, `2,000 objects`.
func objects(_ count: UInt64) -> String { "\(counted(count)) \(count == 1 ? "object" : "objects")" }

/// One line for each count that is not 0.
func lines(_ counts: [(count: UInt64, text: String)]) -> [String] {
    counts.filter { $0.count > 0 }.map { "  \(counted($0.count)) \($0.text)" }
}
