import Admin
import CLarder
import EventLoop
import Glibc
import Interception
import Provisioning
import Server
import Settings
import TLS
import Texts

/// One thing about the proxy's machine that `larder doctor --server` looks at.
struct ServerCheck: Equatable {
    enum State: String { case ok, warning, wrong }

    let name: String
    let state: State
    let text: String
    /// What to do. Nil if nothing is to be done.
    var mend: String?
}

/// `larder doctor --server`: looks at the machine of the proxy: configuration, files, disks, descriptors, name servers, the Redis of a fleet, clock.
func serverDoctorCommand(_ arguments: Arguments, _ console: Console) -> Int32 {
    var reading = readConfiguration(arguments)
    reading.chooseDisk()
    var checks = [configurationCheck(reading)]
    if let configuration = reading.configuration {
        checks += diskChecks(configuration.cache)
        let authentication = configuration.access.authentication
        for path in [authentication.basic.usersFile, authentication.digest.usersFile] { checks += userChecks(path) }
        checks += authorityChecks(configuration.intercept)
        checks += nameServerChecks(configuration.dns.servers)
        checks += fleetChecks(configuration)
    }
    checks += [descriptorCheck(), clockCheck()]
    if arguments.has(.json) {
        console.print(String(decoding: json(checks), as: UTF8.self))
    } else {
        for check in checks {
            console.print("\(padded(check.state.rawValue, 9))\(padded(check.name, 15))\(check.text)")
            if let mend = check.mend { console.print(padded("", 24) + mend) }
        }
    }
    return checks.contains { $0.state == .wrong } ? ExitStatus.failed : ExitStatus.done
}

private func configurationCheck(_ reading: ConfigurationReading) -> ServerCheck {
    if let error = reading.errors.first {
        return ServerCheck(
            name: "configuration", state: .wrong, text: "\(error)", mend: "larder check shows all errors")
    }
    if let warning = reading.warnings.first {
        return ServerCheck(
            name: "configuration", state: .warning, text: "\(warning)", mend: "larder check shows all warnings")
    }
    return ServerCheck(name: "configuration", state: .ok, text: "\(reading.name): no errors")
}

// MARK: files

private func diskChecks(_ cache: CacheSettings) -> [ServerCheck] {
    cache.disks.map { disk in
        let name = disk.zone == "default" ? "disk" : "disk \(disk.zone)"
        guard let directory = nearestDirectory(disk.path) else {
            return ServerCheck(
                name: name, state: .wrong, text: "\(disk.path): no such place", mend: "set cache.disk.path")
        }
        guard unsafe access(directory, W_OK | X_OK) == 0 else {
            return ServerCheck(
                name: name, state: .wrong, text: "\(directory) cannot be written by this user",
                mend: "run larder as its owner, or chown it")
        }
        var status = statvfs()
        guard unsafe statvfs(directory, &status) == 0 else {
            return ServerCheck(name: name, state: .wrong, text: "\(directory): \(systemErrorText(errno))")
        }
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        let text = "\(disk.path): \(free >> 20) MiB free, the tier may take \(disk.size >> 20) MiB"
        guard free >= 64 << 20 else {
            return ServerCheck(name: name, state: .wrong, text: text, mend: "free some space: the tier stores nothing")
        }
        return ServerCheck(name: name, state: .ok, text: text)
    }
}

/// The path if it is a directory, or the directory above it that exists.
private func nearestDirectory(_ path: String) -> String? {
    var place = path
    while !place.isEmpty {
        var status = stat()
        if unsafe stat(place, &status) == 0 { return status.st_mode & S_IFMT == S_IFDIR ? place : nil }
        guard let slash = place.lastIndex(of: "/") else { return "." }
        place = slash == place.startIndex && place.count > 1 ? "/" : String(place[..<slash])
    }
    return nil
}

/// The users' file has hashes of passwords, which nobody else should read.
private func userChecks(_ path: String?) -> [ServerCheck] {
    guard let path else { return [] }
    var status = stat()
    guard unsafe stat(path, &status) == 0 else {
        return [ServerCheck(name: "users", state: .wrong, text: "\(path): \(systemErrorText(errno))")]
    }
    guard status.st_mode & 0o007 == 0 else {
        return [
            ServerCheck(
                name: "users", state: .warning, text: "\(path) can be read by everybody",
                mend: "chmod 640 \(shellWord(path))")
        ]
    }
    return [ServerCheck(name: "users", state: .ok, text: path)]
}

/// The authority of `intercept.ca`: its files, the permissions of its key, and the days that it is valid for.
private func authorityChecks(_ settings: InterceptSettings) -> [ServerCheck] {
    do throws(ProvisioningFault) {
        guard let interceptor = try readInterceptor(settings) else { return [] }
        let days = interceptor.authority.daysLeft(at: Int64(time(nil)))
        let state: ServerCheck.State = days <= 30 ? .warning : .ok
        let life = ServerCheck(
            name: "authority", state: state, text: "valid for \(days) more days",
            mend: days <= 30 ? "larder ca rotate" : nil)
        return [life]
            + interceptor.authority.remarks.map { ServerCheck(name: "authority", state: .warning, text: $0) }
    } catch {
        return [ServerCheck(name: "authority", state: .wrong, text: "\(error.key): \(error.message)", mend: error.hint)]
    }
}

// MARK: the machine

private func descriptorCheck() -> ServerCheck {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
        return ServerCheck(name: "descriptors", state: .warning, text: "the limit is not known")
    }
    // serve raises the soft limit to the hard one.
    if let warning = DescriptorLimit.warning(soft: UInt64(limit.rlim_max)) {
        return ServerCheck(
            name: "descriptors", state: .wrong, text: warning,
            mend: "LimitNOFILE=65536 in the unit, or ulimit -Hn 65536")
    }
    return ServerCheck(
        name: "descriptors", state: .ok, text: "\(min(UInt64(limit.rlim_max), 1 << 20)) files and connections at most")
}

/// Certificates and ages depend on the clock.
private func clockCheck() -> ServerCheck {
    switch clarder_clock_is_synchronised() {
    case 1: return ServerCheck(name: "clock", state: .ok, text: "synchronised")
    case 0:
        return ServerCheck(
            name: "clock", state: .warning, text: "the clock is not synchronised",
            mend: "run a time service, such as systemd-timesyncd or chrony; in a container, on its host")
    default:
        return ServerCheck(name: "clock", state: .warning, text: "the kernel does not say whether it is synchronised")
    }
}

private func json(_ checks: [ServerCheck]) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
        json.member("fine", !checks.contains { $0.state == .wrong })
        json.key("checks")
        json.array { array in
            for check in checks {
                array.object { json in
                    json.member("name", check.name)
                    json.member("state", check.state.rawValue)
                    json.member("text", check.text)
                    if let mend = check.mend { json.member("mend", mend) }
                }
            }
        }
    }
    return writer.bytes
}
