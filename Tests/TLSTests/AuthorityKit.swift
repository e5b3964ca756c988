import Glibc
import TLS

/// A directory for the files of one test. It is removed with the object.
final class Files: Sendable {
    let directory: String

    init() {
        directory = "/tmp/larder-test-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        _ = unsafe mkdir(directory, 0o700)
    }

    deinit { _ = shell("rm -rf '\(directory)'") }

    func write(_ name: String, _ bytes: [UInt8], mode: mode_t = 0o600) -> String {
        let path = "\(directory)/\(name)"
        let fd = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, mode)
        precondition(fd >= 0)
        _ = unsafe Glibc.write(fd, bytes, bytes.count)
        _ = fchmod(fd, mode)
        close(fd)
        return path
    }
}

/// Runs a command line. Returns its exit status, and what it wrote to both of its outputs.
func shell(_ command: String) -> (status: CInt, output: String) {
    guard let pipe = unsafe popen("{ \(command)\n} 2>&1 </dev/null", "r") else { return (-1, "") }
    var output: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = unsafe fread(&chunk, 1, chunk.count, pipe)
        if count == 0 { break }
        output += chunk.prefix(count)
    }
    let status = unsafe pclose(pipe)
    return (status & 0x7F == 0 ? status >> 8 & 0xFF : -1, String(decoding: output, as: UTF8.self))
}

/// An authority as `larder ca create` makes it, in files.
struct AuthorityFixture {
    let files = Files()
    let root: RootAuthority
    let authority: CertificateAuthority
    let rootPath: String
    /// 2026-11-22 11:06:40 UTC.
    static let now: Int64 = 1_795_345_600

    init(
        permitting names: [String]?, addresses: [[UInt8]] = [], at now: Int64 = AuthorityFixture.now, days: Int64 = 397
    )
        throws
    {
        root = try RootAuthority(
            constraints: names.map { NameConstraints(permitting: $0, addresses: addresses) }, at: now, days: days)
        let issued = try root.issue(node: nil, at: now, days: days)
        rootPath = files.write("root.pem", root.certificate.pem)
        authority = try CertificateAuthority(
            certificateFile: files.write("intermediate.pem", issued.certificates),
            keyFile: files.write("intermediate.key", issued.key), at: now)
    }

    /// The leaf as `openssl x509 -text` shows it, and the answer of a strict verification for its name.
    func examine(_ leaf: Leaf, at now: Int64 = AuthorityFixture.now) -> (text: String, verdict: String, isGood: Bool) {
        let path = files.write("leaf.pem", leaf.pem)
        let option =
            switch leaf.name {
            case .dns(let name): "-verify_hostname '\(name)'"
            case .address: "-verify_ip '\(leaf.name.text)'"
            }
        let verdict = shell(
            "openssl verify -x509_strict -attime \(now) -purpose sslserver \(option) -CAfile '\(rootPath)' -untrusted '\(path)' '\(path)'"
        )
        return (shell("openssl x509 -in '\(path)' -noout -text").output, verdict.output, verdict.status == 0)
    }
}
