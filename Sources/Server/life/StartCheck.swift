import Accounts
import EventLoop
import Glibc
package import Settings
import Storage

/// What keeps a proxy from starting on this machine, found without changing anything: no file is made, no store is locked, and nothing listens.
///
/// `Proxy.start` asks it first, and `larder check` asks it as well, so that both refuse the same. Not found is what the moment decides: a port or a
/// store that another process holds, which may be the Larder that runs with the configuration before this one; whether this user may listen on
/// a port; and sockets of a service manager, which it passes to `serve` alone.
package enum StartCheck {
    /// In the order in which a start would find them.
    package static func faults(of configuration: Configuration) -> [Proxy.StartError] {
        listening(configuration) + log(configuration) + disks(configuration)
    }

    private static func listening(_ configuration: Configuration) -> [Proxy.StartError] {
        var places: [(index: Int?, address: ListenAddress)] = configuration.listen.enumerated().map {
            ($0.offset, $0.element.address)
        }
        if configuration.fleet.asksPeers, let address = configuration.fleet.peer.address {
            places.append((nil, address))
        }
        return places.compactMap { place in
            var text: String
            do throws(SocketError) {
                switch place.address {
                case .tcp(let address, let port):
                    let address = SocketAddress(address, port: port)
                    text = "\(address)"
                    do throws(SocketError) { try Sockets.checkPlace(address) } catch {
                        return .listen(index: place.index, address: text, error)
                    }
                case .unix(let path):
                    text = path
                    let address = try SocketAddress(unixPath: path)
                    text = "\(address)"
                    try Sockets.checkPlace(address)
                case .inherited: break
                }
                return nil
            } catch { return .listen(index: place.index, address: text, error) }
        }
    }

    private static func log(_ configuration: Configuration) -> [Proxy.StartError] {
        if case .file(let path) = configuration.log.access,
            let disk = configuration.cache.disks.first(where: { makesForeign($0, fileAt: path) })
        {
            return [.logInDisk(path: path, zone: disk.zone)]
        }
        do throws(AccessLogSink.Failure) {
            try AccessLogSink.check(configuration.log.access)
            return []
        } catch {
            guard case .cannotOpen(let path, let code) = error else { return [] }
            return [.log(path: path, errno: code)]
        }
    }

    /// Whether a file would keep a directory from becoming the store of a disk. A store stays one.
    private static func makesForeign(_ disk: ZoneDisk, fileAt path: String) -> Bool {
        guard isSame(FileCreation.directory(of: path), disk.path) else { return false }
        do throws(BackStoreRefusal) { return try !Zones.hasStore(disk) } catch {
            return true
        }
    }

    private static func isSame(_ one: String, _ other: String) -> Bool {
        var (a, b) = (stat(), stat())
        guard unsafe stat(one, &a) == 0, unsafe stat(other, &b) == 0 else {
            return one.split(separator: "/") == other.split(separator: "/")
                && one.hasPrefix("/") == other.hasPrefix("/")
        }
        return a.st_dev == b.st_dev && a.st_ino == b.st_ino
    }

    private static func disks(_ configuration: Configuration) -> [Proxy.StartError] {
        configuration.cache.disks.compactMap { disk in
            do throws(BackStoreRefusal) {
                _ = try Zones.hasStore(disk)
                return nil
            } catch { return .disk(error) }
        }
    }
}
