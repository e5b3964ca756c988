import Credentials
import EventLoop
import Glibc
import Origins
import Secrets
import Server
import Settings
import TLS
import Texts

/// Reads the files of `tls` in the rules of `origins`. Blocks.
func readOriginTLS(
    _ configuration: Configuration, _ preparation: inout Preparation
) throws(ProvisioningFault) -> [TLSMaterial] {
    var materials: [TLSMaterial] = []
    for rule in configuration.origins {
        guard let tls = rule.tls else { continue }
        var files = OriginTLSFiles(tls, key: "origins[\(rule.number)].tls")
        let options = try files.options(over: configuration.tls, &preparation)
        if let options { materials.append(TLSMaterial(rule: rule.number, tls, options, digest: files.digest)) }
        for remark in files.remarks { preparation.remark(remark) }
        if let identity = options?.identity {
            for remark in identity.remarks(at: Int64(time(nil))) {
                preparation.remark(files.problem(files.identityKey, remark))
            }
        }
        if tls.verification == .none {
            let hosts = rule.conditions.hosts.map { "\($0)" }.joined(separator: ", ")
            preparation.remark(
                files.problem(
                    "verify",
                    tls.pins.isEmpty
                        ? "the certificates of \(hosts) are NOT VERIFIED: whoever is on the way can read and change everything"
                        : "the certificates of \(hosts) are NOT VERIFIED; only their keys are",
                    hint: "trust the origin with ca_file"))
        }
    }
    return materials
}

/// The files of one rule.
private struct OriginTLSFiles {
    private let tls: OriginTLS
    private let key: String
    private var digests: [UInt8] = []
    private(set) var remarks: [ProvisioningFault] = []

    init(_ tls: OriginTLS, key: String) {
        self.tls = tls
        self.key = key
    }

    /// Of all files that were read.
    var digest: [UInt8] { Digest.sha256(digests) }

    /// The key of the certificate that is shown.
    var identityKey: String {
        if case .pkcs12? = tls.identity { "pkcs12" } else { "certificate" }
    }

    func problem(_ name: String, _ message: String, hint: String? = nil) -> ProvisioningFault {
        ProvisioningFault("\(key).\(name)", message, hint: hint)
    }

    /// Nil for a fault.
    mutating func options(
        over general: TLSSettings, _ preparation: inout Preparation
    ) throws(ProvisioningFault) -> TLSClientOptions? {
        var options = TLSClientOptions(tls, over: general)
        let faultCount = preparation.faults.count
        if let path = tls.authorityFile {
            let text = try preparation.attempt { () throws(ProvisioningFault) in try read(path, "ca_file") }
            options.authorities = .pem(text ?? [])
        } else if let path = general.caFile {
            // What is wrong with it is said once, for all origins.
            guard
                let text = try preparation.attempt({ () throws(ProvisioningFault) in try read(path, of: "tls.ca_file") }
                )
            else { return nil }
            options.authorities = .pem(text)
        }
        options.identity = try identity(&preparation)
        guard preparation.faults.count == faultCount else { return nil }
        let tried = options
        return try preparation.attempt { () throws(ProvisioningFault) in
            try checkContext(tried)
            return tried
        }
    }

    /// Tries the options here, where the rule is known. The snapshot makes its own context.
    private func checkContext(_ options: TLSClientOptions) throws(ProvisioningFault) {
        do throws(TLSContextError) { _ = try TLSClientContext(options) } catch {
            switch error {
            case .authoritiesUnreadable(let reason):
                guard let path = tls.authorityFile else { throw ProvisioningFault("tls.ca_file", reason) }
                throw problem("ca_file", "\(path): \(reason)")
            case .certificateUnusable, .privateKeyUnusable, .outOfMemory: throw problem(identityKey, "\(error)")
            }
        }
    }

    /// Nil if the rule names none, or for a fault.
    private mutating func identity(_ preparation: inout Preparation) throws(ProvisioningFault) -> ClientIdentity? {
        guard let identity = tls.identity else { return nil }
        let password = try preparation.attempt { () throws(ProvisioningFault) in try passphrase() }
        switch identity {
        case .pem(let certificate, let key):
            let certificates = try preparation.attempt { () throws(ProvisioningFault) in
                try read(certificate, "certificate")
            }
            let keyBytes =
                key == certificate
                ? certificates : try preparation.attempt { () throws(ProvisioningFault) in try read(key, "key") }
            remarkIfExposed(key, key == certificate ? "certificate" : "key")
            guard let password, let certificates, let keyBytes else { return nil }
            return try preparation.attempt { () throws(ProvisioningFault) -> ClientIdentity in
                do throws(ClientIdentityError) {
                    return try ClientIdentity(certificates: certificates, key: keyBytes, passphrase: password)
                } catch { throw fault(error, certificate, key) }
            }
        case .pkcs12(let path):
            let bytes = try preparation.attempt { () throws(ProvisioningFault) in try read(path, "pkcs12") }
            remarkIfExposed(path, "pkcs12")
            guard let password, let bytes else { return nil }
            return try preparation.attempt { () throws(ProvisioningFault) -> ClientIdentity in
                do throws(ClientIdentityError) {
                    return try ClientIdentity(pkcs12: bytes, passphrase: password)
                } catch { throw fault(error, path, path) }
            }
        }
    }

    private func fault(_ error: ClientIdentityError, _ certificate: String, _ key: String) -> ProvisioningFault {
        switch error {
        case .noCertificate, .certificateUnreadable, .bundleUnreadable, .bundleIncomplete, .bundleOutdated:
            return problem(identityKey, "\(certificate): \(error)", hint: error.hint)
        case .keyUnreadable, .keyOfAnother:
            guard key == certificate else { return problem("key", "\(key): \(error)", hint: error.hint) }
            return problem(identityKey, "\(key): \(error)", hint: error.hint ?? "add key: FILE")
        case .passphraseMissing:
            return problem(
                key == certificate ? identityKey : "key", "\(key): \(error)", hint: "add password_file: FILE")
        case .passphraseWrong: return problem("password_file", "\(error) for \(key)", hint: error.hint)
        }
    }

    private mutating func passphrase() throws(ProvisioningFault) -> [UInt8]? {
        guard let path = tls.passwordFile else { return nil }
        let source = SecretSource.file(path)
        let line: [UInt8]
        do throws(ReadFailure) {
            var file = SecretFile(path: path, bytesMax: SecretSource.bytesMax)
            line = try file.readIfChanged() ?? []
        } catch { throw problem("password_file", "\(source) cannot be read: \(error.text)") }
        digests += Digest.sha256(line)
        remarkIfExposed(path, "password_file")
        do throws(SecretFault) { return try source.secret(in: line).bytes } catch {
            throw problem("password_file", error.text(of: source))
        }
    }

    /// Remarks that a file with a secret is open to everybody.
    private mutating func remarkIfExposed(_ path: String, _ name: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & 0o007 != 0 else { return }
        remarks.append(
            problem(name, "every user of this machine has access to \(path)", hint: "run: chmod o= \(shellWord(path))"))
    }

    private mutating func read(_ path: String, _ name: String) throws(ProvisioningFault) -> [UInt8] {
        try read(path, of: "\(key).\(name)")
    }

    private mutating func read(_ path: String, of key: String) throws(ProvisioningFault) -> [UInt8] {
        let bytes = try contents(of: path, key: key)
        digests += Digest.sha256(bytes)
        return bytes
    }
}
