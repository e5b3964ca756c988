import EventLoop
import Glibc
import Server
package import Settings

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
            try preparation.attempt { () throws(ProvisioningFault) in
                try checkAdminAddress(configuration.admin, isFromFile: file != nil)
            }
            var started = configuration
            // `serve` makes the directories above one that it has chosen itself, and does without it if it has to.
            if started.cache.isDiskLeftOut || started.cache.writtenDiskPath == nil && hasNoParent(started.cache.disk) {
                started.cache = started.cache.withoutDisk(ofZone: "default")
            }
            for error in StartCheck.faults(of: started) {
                error.fault(configuration, isFromFile: file != nil).map { preparation.add($0) }
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

/// The access log cannot be opened.
func logFault(_ path: String, _ code: CInt) -> ProvisioningFault {
    let hint: String? =
        switch code {
        case ENOENT: "make the directory \(FileCreation.directory(of: path))"
        case EISDIR: "name a file in it, such as \(path)\(path.hasSuffix("/") ? "" : "/")access.log"
        default: nil
        }
    return ProvisioningFault("log.access", "\(path) cannot be opened: \(systemErrorText(code))", hint: hint)
}

private func hasNoParent(_ disk: ZoneDisk?) -> Bool {
    disk.map { !fileExists(FileCreation.directory(of: $0.path)) } ?? false
}
