import Credentials
import EventLoop
import Glibc
import Routing
import Secrets
import Server
import Settings
import TLS

/// What the files of `tls` in the rules of `origins` contain, and what the operator should know about them.
struct OriginTLSReading {
    private(set) var materials: [TLSMaterial] = []
    private(set) var remarks: [ProvisioningFault] = []

    init(_ configuration: Configuration) throws(ProvisioningFault) {
        for rule in configuration.origins {
            guard let tls = rule.tls else { continue }
            var files = OriginTLSFiles(tls, key: "origins[\(rule.number)].tls")
            let options = try files.options(over: configuration.tls)
            materials.append(TLSMaterial(rule: rule.number, tls, options, digest: files.digest))
            remarks += files.remarks
            if let identity = options.identity {
                remarks += identity.remarks(at: Int64(time(nil))).map { files.problem(files.identityKey, $0) }
            }
            if tls.verification == .none {
                let hosts = rule.conditions.hosts.map { "\($0)" }.joined(separator: ", ")
                remarks.append(
                    files.problem(
                        "verify",
                        tls.pins.isEmpty
                            ? "the certificates of \(hosts) are NOT VERIFIED: whoever is on the way can read and change everything"
                            : "the certificates of \(hosts) are NOT VERIFIED; only their keys are",
                        hint: "trust the origin with ca_file"))
            }
        }
    }
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

    mutating func options(over general: TLSSettings) throws(ProvisioningFault) -> TLSClientOptions {
        var options = TLSClientOptions(tls, over: general)
        if let path = tls.authorityFile {
            options.authorities = .pem(try read(path, "ca_file"))
        } else if let path = general.caFile {
            options.authorities = .pem(try read(path, of: "tls.ca_file"))
        }
        options.identity = try identity()
        do throws(TLSContextError) {
            // Tried here, where the rule is known. The snapshot makes its own.
            _ = try TLSClientContext(options)
        } catch {
            switch error {
            case .authoritiesUnreadable(let reason):
                guard let path = tls.authorityFile else { throw ProvisioningFault("tls.ca_file", reason) }
                throw problem("ca_file", "\(path): \(reason)")
            case .certificateUnusable, .privateKeyUnusable, .outOfMemory: throw problem(identityKey, "\(error)")
            }
        }
        return options
    }

    private mutating func identity() throws(ProvisioningFault) -> ClientIdentity? {
        guard let identity = tls.identity else { return nil }
        let password = try password()
        switch identity {
        case .pem(let certificate, let key):
            let certificates = try read(certificate, "certificate")
            let keyBytes = key == certificate ? certificates : try read(key, "key")
            remarkIfExposed(key, key == certificate ? "certificate" : "key")
            return try checked(certificate, key) { () throws(ClientIdentityError) in
                try ClientIdentity(certificates: certificates, key: keyBytes, passphrase: password)
            }
        case .pkcs12(let path):
            let bytes = try read(path, "pkcs12")
            remarkIfExposed(path, "pkcs12")
            return try checked(path, path) { () throws(ClientIdentityError) in
                try ClientIdentity(pkcs12: bytes, passphrase: password)
            }
        }
    }

    private func checked(
        _ certificate: String, _ key: String, _ read: () throws(ClientIdentityError) -> ClientIdentity
    ) throws(ProvisioningFault) -> ClientIdentity {
        do throws(ClientIdentityError) { return try read() } catch {
            switch error {
            case .noCertificate, .certificateUnreadable, .bundleUnreadable, .bundleIncomplete, .bundleOutdated:
                throw problem(identityKey, "\(certificate): \(error)", hint: error.hint)
            case .keyUnreadable, .keyOfAnother:
                guard key == certificate else { throw problem("key", "\(key): \(error)", hint: error.hint) }
                throw problem(identityKey, "\(key): \(error)", hint: error.hint ?? "add key: FILE")
            case .passphraseMissing:
                throw problem(
                    key == certificate ? identityKey : "key", "\(key): \(error)", hint: "add password_file: FILE")
            case .passphraseWrong: throw problem("password_file", "\(error) for \(key)", hint: error.hint)
            }
        }
    }

    private mutating func password() throws(ProvisioningFault) -> [UInt8]? {
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
            problem(name, "every user of this machine has access to \(path)", hint: "run: chmod o= \(path)"))
    }

    private mutating func read(_ path: String, _ name: String) throws(ProvisioningFault) -> [UInt8] {
        try read(path, of: "\(key).\(name)")
    }

    private mutating func read(_ path: String, of key: String) throws(ProvisioningFault) -> [UInt8] {
        do throws(FileError) {
            let bytes = try readFile(path)
            digests += Digest.sha256(bytes)
            return bytes
        } catch {
            throw ProvisioningFault(key, "\(path) cannot be read: \(systemErrorText(error.code))")
        }
    }
}
