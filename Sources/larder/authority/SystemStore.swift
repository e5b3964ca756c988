import Glibc
import Provisioning

/// The store of certificates that a Linux distribution's programs trust: a directory for additions, and the program that builds the
/// store from it.
struct SystemStore: Equatable {
    var directory: String
    /// The names of certificates end in this.
    var suffix: String
    var program: String
    var arguments: [String] = []

    /// In the order in which they are looked for. Debian, Ubuntu and Alpine read names that end in `.crt`, with one certificate each.
    static let known = [
        SystemStore(directory: "/etc/pki/ca-trust/source/anchors", suffix: ".pem", program: "update-ca-trust"),
        SystemStore(directory: "/etc/ca-certificates/trust-source/anchors", suffix: ".pem", program: "update-ca-trust"),
        SystemStore(
            directory: "/usr/local/share/ca-certificates", suffix: ".crt", program: "update-ca-certificates"),
    ]
    private static let programDirectories = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]

    /// The store of this machine, with the path of its program. Nil if there is none that is known.
    ///
    /// - Parameter prefix: a directory in place of `/`.
    static func find(below prefix: String = "") -> SystemStore? {
        for store in known where fileExists(prefix + store.directory) {
            for place in programDirectories where fileExists("\(prefix)\(place)/\(store.program)") {
                var found = store
                found.directory = prefix + store.directory
                found.program = "\(prefix)\(place)/\(store.program)"
                return found
            }
        }
        return nil
    }

    /// `larder.crt` for the first root, and `larder-2.crt` for a second one while it replaces the first.
    func file(_ index: Int) -> String {
        "\(directory)/larder\(index == 0 ? "" : "-\(index + 1)")\(suffix)"
    }

    /// Our files that exist.
    var files: [String] { (0..<SystemStore.rootsMax).map(file).filter(fileExists) }

    static let rootsMax = 4
}

/// Runs a program to its end with our outputs. Returns its exit status; -1 if it could not be started or was ended by a signal.
func runProgram(_ path: String, _ arguments: [String]) -> Int32 {
    var argv: [UnsafeMutablePointer<CChar>?] = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
    defer { unsafe argv.forEach { unsafe free($0) } }
    var pid: pid_t = 0
    guard unsafe posix_spawn(&pid, path, nil, nil, &argv, environ) == 0 else { return -1 }
    var status: Int32 = 0
    while unsafe waitpid(pid, &status, 0) < 0 {
        guard errno == EINTR else { return -1 }
    }
    return status & 0x7F == 0 ? status >> 8 & 0xFF : -1
}
