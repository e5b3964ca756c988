import Glibc
package import Settings
import EventLoop

extension ConfigurationReading {
    /// Prepares everything that `serve` prepares before it listens, with the same readers, and adds all that is wrong. Nothing is kept, created or changed.
    ///
    /// A secret from a descriptor is left out: whoever starts `serve` hands it over. Blocks while PAC files are fetched and commands run.
    package mutating func checkPreparation(_ fetch: @escaping PACFetcher) {
        guard let configuration else { return }
        var preparation = Preparation.check
        do throws(ProvisioningFault) {
            let materials = try Materials(configuration, access: nil, after: nil, &preparation)
            self.configuration?.access = materials.access
            try tryPACFiles(configuration, fetch, &preparation)
            _ = try readFleet(configuration, &preparation)
            try preparation.attempt { () throws(ProvisioningFault) in _ = try readAdminToken(configuration.admin) }
            try preparation.attempt { () throws(ProvisioningFault) in try checkLog(configuration.log.access) }
            for disk in configuration.cache.disks
            where disk.zone != "default" || !configuration.cache.isDiskLeftOut {
                try preparation.attempt { () throws(ProvisioningFault) in
                    try checkDirectory(disk.path, key: "\(configuration.cache.key(ofDisk: disk.zone)).path")
                }
            }
        } catch { preparation.add(error) }
        warnings += preparation.remarks.map { problem($0) }
        reject(preparation.faults)
    }
}

/// The first line of the file that `admin.token` names. Nil if it names none.
package func readAdminToken(_ settings: AdminSettings) throws(ProvisioningFault) -> [UInt8]? {
    guard let path = settings.tokenFile else { return nil }
    let line = try firstLine(path, key: "admin.token")
    guard line.count >= 16, line.allSatisfy({ (0x21...0x7E).contains($0) }) else {
        throw ProvisioningFault(
            "admin.token", "\(path): the first line must be a token of at least 16 visible characters")
    }
    return line
}

/// Throws if the access log cannot be opened. Creates nothing.
private func checkLog(_ target: AccessLogTarget) throws(ProvisioningFault) {
    guard case .file(let path) = target else { return }
    if let code = fileExists(path) ? refusal(path, W_OK) : refusal(directory(of: path), W_OK | X_OK) {
        throw logFault(path, code)
    }
}

/// The access log cannot be opened.
package func logFault(_ path: String, _ code: CInt) -> ProvisioningFault {
    ProvisioningFault(
        "log.access", "\(path) cannot be opened: \(systemErrorText(code))",
        hint: code == ENOENT ? "make the directory \(directory(of: path))" : nil)
}

/// Throws if the directory of a disk tier can be neither used nor created. Larder creates the last directory of the path and none above it.
private func checkDirectory(_ path: String, key: String) throws(ProvisioningFault) {
    let code = fileExists(path) ? refusal(path, R_OK | W_OK | X_OK) : refusal(directory(of: path), W_OK | X_OK)
    guard let code else { return }
    throw ProvisioningFault(key, "\(path) cannot be used: \(systemErrorText(code))")
}

/// The error with which the system refuses this access. Nil if it grants it.
private func refusal(_ path: String, _ mode: CInt) -> CInt? { unsafe access(path, mode) == 0 ? nil : errno }

private func directory(of path: String) -> String {
    var path = path[...]
    while path.count > 1, path.last == "/" { path = path.dropLast() }
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
}
