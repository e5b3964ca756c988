import Disk
import DiskTools
import Provisioning
import Settings

/// The disks of the zone that `--zone` names, or of all zones. Returns nil after printing errors.
func zoneDisks(_ arguments: Arguments, _ console: Console) throws(UsageError) -> [ZoneDisk]? {
    var reading = readConfiguration(arguments)
    reading.chooseDisk()
    guard let configuration = reading.configuration else {
        for error in reading.errors { console.error("larder: \(error)") }
        return nil
    }
    return try zoneDisks(named: arguments[.zone], in: configuration, name: reading.name)
}

/// - Parameter name: the name of the configuration, for messages.
func zoneDisks(
    named zone: String?, in configuration: Configuration, name: String
) throws(UsageError) -> [ZoneDisk] {
    let disks = configuration.cache.disks
    guard !disks.isEmpty else {
        throw UsageError("no zone has a disk in \(name)", hint: "use --config for another configuration file")
    }
    guard let zone else { return disks }
    if let disk = configuration.cache.disk(ofZone: zone) { return [disk] }
    let names = ["default"] + configuration.cache.zones.map(\.name)
    guard names.contains(zone) else { throw .unknown("zone", zone, among: names) }
    throw UsageError(
        "zone \(zone) has no disk", hint: "zones with one: \(disks.map(\.zone).joined(separator: ", "))")
}

/// The disk of the zone that `--zone` names, or the only one that exists.
func zoneDisk(_ arguments: Arguments, _ console: Console) throws(UsageError) -> ZoneDisk? {
    guard let disks = try zoneDisks(arguments, console) else { return nil }
    guard disks.count == 1 else {
        throw UsageError(
            "there is more than one zone with a disk",
            hint: "--zone takes one of \(disks.map(\.zone).joined(separator: ", "))")
    }
    return disks[0]
}
