package import Server
package import Settings
import Storage

/// A proxy that has been started.
package struct StartedProxy {
    package let proxy: Proxy
    /// The zones whose disks could not be opened. They are in memory only until the next start.
    package let zonesWithoutDisk: [String]
    /// One for each of these zones.
    package let warnings: [ConfigurationError]
}

/// Starts the proxy even if another process uses the directory of a disk tier, or if a disk tier that is not configured cannot be opened on
/// this machine. Waits for PAC files from URLs, for `pac.fetch_timeout` at most.
///
/// - Parameter reading: a configuration without errors.
/// - Throws: a `ProvisioningFault`, or a `Proxy.StartError` for any other problem.
package func startProxy(_ reading: ConfigurationReading, _ pacFiles: PACFiles) throws -> StartedProxy {
    guard var configuration = reading.configuration else {
        preconditionFailure("a proxy starts with a configuration")
    }
    try checkAdminAddress(configuration.admin, isFromFile: reading.file != nil)
    if configuration.cache.writtenDiskPath == nil, let disk = configuration.cache.disk,
        let slash = disk.path.lastIndex(of: "/")
    {
        makeDirectories(String(disk.path[..<slash]), mode: 0o700)
    }
    pacFiles.prefetch(for: configuration)
    var zonesWithoutDisk: [String] = []
    var warnings: [ConfigurationError] = []
    while true {
        do {
            return StartedProxy(
                proxy: try Proxy.start(
                    try makeSnapshot(configuration, pacFiles), fleet: try readFleet(configuration)),
                zonesWithoutDisk: zonesWithoutDisk,
                warnings: warnings)
        } catch Proxy.StartError.disk(let refusal) {
            guard let disk = configuration.cache.disks.first(where: { refusal.concerns($0.path) }),
                refusal.isInUse || (disk.zone == "default" && configuration.cache.isDiskLeftOut)
            else { throw Proxy.StartError.disk(refusal) }
            warnings.append(
                reading.problem(
                    configuration.cache.key(ofDisk: disk.zone),
                    "\(refusal): zone \(disk.zone) stores responses in memory only", hint: hint(refusal)))
            configuration.cache = configuration.cache.withoutDisk(ofZone: disk.zone)
            zonesWithoutDisk.append(disk.zone)
        }
    }
}

private func hint(_ refusal: BackStoreRefusal) -> String {
    refusal.isInUse
        ? "another Larder may be running: give this one a directory of its own, or size: 0"
        : "give the disk tier another directory, or size: 0"
}
