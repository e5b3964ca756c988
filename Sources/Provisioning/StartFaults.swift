package import EventLoop
import Glibc
package import Server
package import Settings
import Storage

extension Proxy.StartError {
    /// The error with the setting that causes it, and what to do. Nil: no setting does.
    ///
    /// - Parameter isFromFile: a configuration file was read, and the problem names it.
    package func fault(_ configuration: Configuration, isFromFile: Bool) -> ProvisioningFault? {
        func key(_ index: Int?) -> String {
            index.map { configuration.listen.count == 1 ? "listen" : "listen[\($0 + 1)]" } ?? "fleet.node.peer.address"
        }
        switch self {
        case .listen(let index, let address, let error):
            return listeningFault(
                error, address: address, key: key(index), setting: index == nil ? key(nil) : "listen",
                isFromFile: isFromFile)
        case .notInherited(let index, _): return ProvisioningFault(key(index), description)
        case .unguarded(let index, _): return ProvisioningFault(key(index), description)
        case .log(let path, let code): return logFault(path, code)
        case .logInDisk(let path, let zone):
            return ProvisioningFault(
                "log.access", "\(path) lies in the directory of the disk of zone \(zone), which may hold nothing else",
                hint: "write the log to another directory")
        case .disk(let refusal):
            guard let disk = configuration.cache.disks.first(where: { refusal.concerns($0.path) }) else { return nil }
            return ProvisioningFault(
                "\(configuration.cache.key(ofDisk: disk.zone)).path", "the disk tier cannot be opened: \(refusal)",
                hint: refusal.isInUse
                    ? nil : "name a directory that is empty, or one that Larder can make in a directory that exists")
        case .worker: return nil
        }
    }
}

/// An address on which Larder cannot listen.
///
/// - Parameters:
///   - key: where it stands.
///   - setting: what has to be changed, for people.
///   - alternative: what the setting accepts besides an address.
package func listeningFault(
    _ error: SocketError, address: String, key: String, setting: String, alternative: String? = nil, isFromFile: Bool
) -> ProvisioningFault {
    ProvisioningFault(
        key, "cannot listen on \(address): \(error)",
        hint: listeningHint(error, address: address, key: setting, alternative: alternative, isFromFile: isFromFile))
}

/// Throws if `admin.address` is no address of this machine. Nothing listens afterwards. Asked by `check`, and by `serve` before it starts anything.
func checkAdminAddress(_ settings: AdminSettings, isFromFile: Bool) throws(ProvisioningFault) {
    guard case .tcp(let address, let port) = settings.address else { return }
    let place = SocketAddress(address, port: port)
    do throws(SocketError) { try Sockets.checkPlace(place) } catch {
        throw adminFault(error, address: place, isFromFile: isFromFile)
    }
}

/// The admin server cannot listen.
package func adminFault(_ error: SocketError, address: SocketAddress, isFromFile: Bool) -> ProvisioningFault {
    listeningFault(
        error, address: "\(address)", key: "admin.address", setting: "admin.address", alternative: "off",
        isFromFile: isFromFile)
}

/// What to do about an address on which Larder cannot listen. Returns nil if the error is sufficient.
///
/// - Parameters:
///   - alternative: what the setting accepts besides an address.
///   - isFromFile: a configuration file was read, and the problem names it.
package func listeningHint(
    _ error: SocketError, address: String, key: String, alternative: String? = nil, isFromFile: Bool
) -> String? {
    let place = isFromFile ? key : "\(key) in larder.yaml"
    let other = alternative.map { ", or to \($0)" } ?? ""
    let kind = address.hasPrefix("/") || address.hasPrefix("unix:") ? "path" : "port"
    switch error {
    case .addressInUse: return "another Larder may be running: set \(place) to another \(kind)\(other)"
    case .failed(_, EADDRNOTAVAIL): return "no interface of this machine has this address: change \(place)"
    case .failed(_, EACCES) where kind == "port":
        return "this user may not listen on this port: set \(place) to one of 1024 or more\(other)"
    case .failed(_, ENOENT) where kind == "path": return "make the directory of the socket, or change \(place)"
    case .noSocket: return "remove the file, or set \(place) to another path\(other)"
    case .failed, .pathTooLong, .emptyPath: return nil
    }
}
