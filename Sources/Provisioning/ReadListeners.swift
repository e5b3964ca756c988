import Accounts
package import EventLoop
import Glibc
package import Server
package import Settings
import TLS
import Texts

/// Reads the certificates of listeners, and throws the first fault. Blocks.
///
/// - Parameter earlier: what listeners show now. It goes on if the settings are the same, with what the files contain now.
package func readListeners(
    _ listeners: [ListenerSettings], earlier: [ListenerTLSSettings: ListenerTLS] = [:]
) throws(ProvisioningFault) -> [ListenerTLSSettings: ListenerTLS] {
    try Preparation.throwing { preparation throws(ProvisioningFault) in
        try readListeners(listeners, earlier: earlier, &preparation)
    }
}

/// Reads the certificates of listeners. Blocks.
func readListeners(
    _ listeners: [ListenerSettings], earlier: [ListenerTLSSettings: ListenerTLS], _ preparation: inout Preparation
) throws(ProvisioningFault) -> [ListenerTLSSettings: ListenerTLS] {
    var result: [ListenerTLSSettings: ListenerTLS] = [:]
    for (index, listener) in listeners.enumerated() {
        guard let settings = listener.tls, result[settings] == nil else { continue }
        let key = listeners.count == 1 ? "listen" : "listen[\(index + 1)]"
        guard let context = try readContext(settings, key: "\(key).tls", &preparation) else { continue }
        if let known = earlier[settings] {
            known.replace(by: context)
            result[settings] = known
        } else {
            result[settings] = ListenerTLS(context)
        }
    }
    return result
}

/// Nil for a fault.
///
/// - Parameter authorityKey: the key behind `key` that names the authorities of clients.
func readContext(
    _ settings: ListenerTLSSettings, key: String, authorityKey: String = "client_ca",
    _ preparation: inout Preparation
) throws(ProvisioningFault) -> TLSServerContext? {
    let faultCount = preparation.faults.count
    var authorities: [UInt8]?
    if let path = settings.clientAuthorityFile {
        authorities = try preparation.attempt { () throws(ProvisioningFault) in
            try readPEM(path, key: "\(key).\(authorityKey)")
        }
    }
    var revocations: [UInt8]?
    if let path = settings.revocationFile {
        revocations = try preparation.attempt { () throws(ProvisioningFault) in
            try readPEM(path, key: "\(key).crl")
        }
    }
    let privateKey = try preparation.attempt { () throws(ProvisioningFault) in
        if let mode = exposure(of: settings.keyFile) {
            throw ProvisioningFault(
                "\(key).key",
                "\(settings.keyFile) has the permissions 0\(String(mode, radix: 8)): others can read the key",
                hint: "run: chmod 600 \(shellWord(settings.keyFile))")
        }
        return try readPEM(settings.keyFile, key: "\(key).key")
    }
    let certificates = try preparation.attempt { () throws(ProvisioningFault) in
        try readPEM(settings.certificateFile, key: "\(key).certificate")
    }
    guard let privateKey, let certificates, preparation.faults.count == faultCount else { return nil }
    let clients = authorities.map {
        ClientVerification(
            authorities: $0, revocations: revocations, isRequired: settings.clientCertificate == .required)
    }
    return try preparation.attempt { () throws(ProvisioningFault) in
        do throws(TLSContextError) {
            return try TLSServerContext(certificates: certificates, privateKey: privateKey, clients: clients)
        } catch {
            throw fault(error, settings, key, authorityKey)
        }
    }
}

/// How many bytes of a file with certificates, keys or revocation lists are read.
private let pemBytesMax = 4 << 20

/// The permissions of a key that others than its owner and a group may read. Nil if nobody else may.
private func exposure(of path: String) -> UInt32? {
    var status = stat()
    guard unsafe stat(path, &status) == 0, status.st_mode & 0o027 != 0 else { return nil }
    return status.st_mode & 0o777
}

private func readPEM(_ path: String, key: String) throws(ProvisioningFault) -> [UInt8] {
    do throws(FileError) { return try readFile(path, bytesMax: pemBytesMax) } catch {
        throw ProvisioningFault(key, error.text)
    }
}

private func fault(
    _ error: TLSContextError, _ settings: ListenerTLSSettings, _ key: String, _ authorityKey: String
) -> ProvisioningFault {
    switch error {
    case .authoritiesUnreadable(let reason):
        ProvisioningFault(
            "\(key).\(authorityKey)",
            "\(settings.clientAuthorityFile ?? "")\(settings.revocationFile.map { ", \($0)" } ?? ""): \(reason)")
    case .certificateUnusable(let reason):
        ProvisioningFault("\(key).certificate", "\(settings.certificateFile): \(reason)")
    case .privateKeyUnusable(let reason):
        ProvisioningFault("\(key).key", "\(settings.keyFile): \(reason)", hint: "it must be the key of the certificate")
    case .outOfMemory: ProvisioningFault(key, "\(error)")
    }
}

/// Looks every two seconds whether a file of a listener has changed, and reads all of that listener then. Used on the control thread.
package final class ListenerWatch {
    private var files: [String: WatchedFile] = [:]
    private var complaints: [ListenerTLSSettings: String] = [:]
    private let snapshot: () -> Snapshot
    private let noteChange: () -> Void
    private let loop: EventLoop
    private let repeating: RepeatingTimer
    private static let pause = Duration.seconds(2)

    /// - Parameter changed: called when a listener shows or asks for something else.
    package init(on loop: EventLoop, of snapshot: @escaping () -> Snapshot, changed: @escaping () -> Void) {
        noteChange = changed
        self.loop = loop
        repeating = RepeatingTimer(on: loop, every: ListenerWatch.pause)
        self.snapshot = snapshot
        for path in snapshot().listenerTLS.keys.flatMap(\.files) { _ = hasChanged(path) }
    }

    package func start() {
        repeating.start { [unowned self] in look() }
    }

    package func stop() { repeating.stop() }

    private func hasChanged(_ path: String) -> Bool {
        files[path, default: WatchedFile(path, pause: .zero, now: loop.now)].hasChanged(at: loop.now)
    }

    private func look() {
        for (settings, tls) in snapshot().listenerTLS {
            // Each file is looked at, so that none is left with a version of long ago.
            let changed = settings.files.filter { hasChanged($0) }
            // What could not be read is read again: its parts may have been replaced one after the other.
            guard !changed.isEmpty || complaints[settings] != nil else { continue }
            do throws(ProvisioningFault) {
                tls.replace(
                    by: try Preparation.throwing { preparation throws(ProvisioningFault) in
                        try readContext(settings, key: "listen.tls", &preparation)
                    })
                complaints[settings] = nil
                noteChange()
                Diagnostics.info("the certificate of a listener, \(settings.certificateFile), was read again")
            } catch {
                guard complaints.updateValue("\(error)", forKey: settings) != "\(error)" else { continue }
                Diagnostics.warning("\(error); what the listener has shown before stays in use")
            }
        }
    }
}
