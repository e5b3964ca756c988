import EventLoop
import Glibc
import Provisioning
import Settings
import TLS
import Texts

/// The files of an authority.
struct AuthorityDirectory {
    let path: String
    /// The intermediate, and after it every root that clients have to trust.
    let intermediate: String
    let key: String

    init(_ path: String) {
        let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        self.init(path, intermediate: "\(path)/intermediate.pem", key: "\(path)/intermediate.key")
    }

    private init(_ path: String, intermediate: String, key: String) {
        self.path = path
        self.intermediate = intermediate
        self.key = key
    }

    /// The files that `intercept.ca` names, or the usual directory.
    init(of configuration: Configuration) {
        guard let certificate = configuration.intercept.certificateFile, let key = configuration.intercept.keyFile
        else {
            self.init(AuthorityDirectory.usual)
            return
        }
        let slash = certificate.lastIndex(of: "/")
        let path = slash.map { String(certificate[..<$0]) } ?? "."
        self.init(path, intermediate: certificate, key: key)
    }

    static let usual = "/etc/larder/ca"

    var root: String { "\(path)/root.pem" }
    var previousRoot: String { "\(path)/root-previous.pem" }
    /// The authority that replaces this one, while clients learn to trust it.
    var next: AuthorityDirectory { AuthorityDirectory("\(path)/next") }

    func node(_ name: String) -> AuthorityDirectory { AuthorityDirectory("\(path)/\(name)") }

    /// The file that configurations name comes last.
    var files: [String] { [root, key, intermediate] }

    /// Makes the directory for its owner alone. Throws if others may write to one that exists.
    func make() throws {
        if unsafe mkdir(path, 0o700) == 0 { return }
        if errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            makeDirectories(String(path[..<slash]), mode: 0o755)
            if unsafe mkdir(path, 0o700) == 0 { return }
        }
        guard errno == EEXIST else { throw FileError(path: path, code: errno) }
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw FileError(path: path, code: errno) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw FileError(path: path, code: ENOTDIR) }
        guard status.st_mode & 0o022 == 0, status.st_uid == geteuid() || status.st_uid == 0 else {
            throw AuthorityFailure(
                "others than this user may write to \(path)",
                hint: "choose another directory, or run: chmod 700 \(shellWord(path))")
        }
    }

    /// All certificates of `intermediate.pem`, the intermediate first.
    func certificates() throws -> [CertificateDescription] {
        let found: [CertificateDescription]? = CertificateDescription.all(inPEM: try read(intermediate))
        guard let found, !found.isEmpty else { throw AuthorityError.noCertificate(path: intermediate) }
        return found
    }

    /// The roots that clients have to trust and that are still valid. A directory with one authority for each node has only `root.pem`.
    func roots(at now: Int64) throws -> [CertificateDescription] {
        let certificates =
            fileExists(intermediate) || !fileExists(root)
            ? try certificates() : CertificateDescription.all(inPEM: try read(root)) ?? []
        return certificates.filter { $0.isSelfSigned && $0.notAfter > now }
    }

    func read(_ file: String) throws -> [UInt8] {
        do throws(FileError) {
            return try readFile(file)
        } catch {
            guard error.code == ENOENT else { throw error }
            throw AuthorityFailure(
                "there is no \(file)", hint: "larder ca create makes an authority; --out DIR names another directory")
        }
    }
}

/// Replaces a file that everybody may read: certificates are no secret.
func replaceForAll(_ path: String, _ bytes: [UInt8]) throws(FileError) {
    try replaceFile(path, with: bytes)
    guard unsafe chmod(path, 0o644) == 0 else { throw FileError(path: path, code: errno) }
}

/// New files, which appear together or not at all. No file is overwritten.
struct NewFiles {
    private var contents: [(path: String, bytes: [UInt8], mode: mode_t)] = []

    mutating func add(_ path: String, _ bytes: [UInt8], mode: mode_t = 0o644) { contents.append((path, bytes, mode)) }

    var paths: [String] { contents.map(\.path) }

    func write() throws(FileError) {
        for file in contents where fileExists(file.path) { throw FileError(path: file.path, code: EEXIST) }
        var written: [String] = []
        do throws(FileError) {
            for file in contents {
                try createFile(file.path, with: file.bytes, mode: file.mode)
                written.append(file.path)
            }
        } catch {
            for path in written { _ = unsafe unlink(path) }
            throw error
        }
    }
}

/// Creates a file that did not exist. It appears with all of its content, which has reached the disk.
private func createFile(_ path: String, with bytes: [UInt8], mode: mode_t) throws(FileError) {
    let temporary = "\(path).new-\(getpid())"
    let raw = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard raw >= 0 else { throw FileError(path: temporary, code: errno) }
    let file = Descriptor(adopting: raw)
    var bytes = bytes
    let failure =
        writeAll(&bytes, to: file.rawValue)
        ?? (fchmod(file.rawValue, mode) == 0 ? nil : errno)
        ?? (fsync(file.rawValue) == 0 ? nil : errno)
        // link(2) does not replace a file that has appeared in the meantime.
        ?? (unsafe link(temporary, path) == 0 ? nil : errno)
    _ = unsafe unlink(temporary)
    if let failure { throw FileError(path: path, code: failure) }
}
