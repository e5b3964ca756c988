import CLarder
import ClientSetup
import Glibc
import Provisioning

/// The files of certificates that Python packages bring along: certifi and its copies. A program that passes such a file itself heeds no
/// variable.
///
/// - Parameter path: the value of PATH, in which Pythons are looked for.
func bundledCertificates(path: String) -> [String] {
    let names = [
        "certifi/cacert.pem", "pip/_vendor/certifi/cacert.pem", "botocore/cacert.pem",
        "stripe/data/ca-certificates.crt",
        "httplib2/cacerts.txt", "grpc/_cython/_credentials/roots.pem",
    ]
    var found: [String] = []
    for directory in pythonDirectories(path) {
        for name in names where fileExists("\(directory)/\(name)") { found.append("\(directory)/\(name)") }
    }
    return found
}

/// Where the Pythons on PATH look for packages.
private func pythonDirectories(_ path: String) -> [String] {
    guard let python = findProgram("python3", path: path) else { return [] }
    var template = Array("/tmp/larder-doctor-XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { return [] }
    let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    defer { unsafe clarder_remove_tree(directory) }
    let outcome = runTool(
        ToolProbe(running: [python, "-c", "import sys; print('\\n'.join(sys.path))"]), in: directory)
    var directories: [String] = []
    for line in (outcome?.output ?? "").split(separator: "\n")
    where line.hasPrefix("/") && !directories.contains(String(line)) {
        directories.append(String(line))
    }
    return directories
}
