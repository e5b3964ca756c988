import Admin
import EventLoop
import Glibc
import Message
import Settings

/// Why `serve` can not offer what the configuration asks for.
struct AdminStartFailure: Error, Equatable {
    var message: String
}

/// Starts the admin server on the control thread's loop, as configured.
///
/// A TCP address that can not be had ends the start. A socket path that this user may not write falls back
/// (`adminSocketPaths`); where none can be had, and where another Larder answers, a warning says so and the proxy serves.
/// - Returns: the server; the caller closes it on the same thread before the loop goes away.
func openAdmin(
    _ settings: AdminSettings, house: any House, loop: EventLoop, _ console: Console
) throws(AdminStartFailure) -> AdminServer {
    let server = AdminServer(house: house, loop: loop, token: try readToken(settings))
    if case .tcp(let address, let port) = settings.address {
        let place = socketAddress(address, port)
        do throws(SocketError) {
            try server.listen(place)
        } catch {
            server.close()
            throw AdminStartFailure(message: "admin.address \(place): \(error)")
        }
    }
    openSocket(server, adminSocketPaths(settings, environment: environmentVariable), console)
    return server
}

func openSocket(_ server: AdminServer, _ paths: [String], _ console: Console) {
    guard let configured = paths.first else { return }
    for path in paths {
        if path != configured, let slash = path.lastIndex(of: "/") {
            makeDirectories(String(path[..<slash]), mode: 0o700)
        }
        do throws(SocketError) {
            try server.listen(unixPath: path)
            if path != configured { console.error("warning: admin.socket \(configured) can not be had; using \(path)") }
            return
        } catch {
            guard mayFallBack(error) else {
                return console.error(
                    "warning: admin.socket \(path): \(error); larder purge and stats will not reach this one")
            }
        }
    }
    console.error("warning: admin.socket \(configured) can not be had; larder purge and stats will not work")
}

/// The path is not ours to write; anything else (in use, too long) would not be better elsewhere.
private func mayFallBack(_ error: SocketError) -> Bool {
    switch error {
    case .failed(_, let code): [EACCES, EPERM, EROFS, ENOENT, ENOTDIR].contains(code)
    case .addressInUse, .pathTooLong, .emptyPath: false
    }
}

/// The first line of the token file; nil where none is configured.
private func readToken(_ settings: AdminSettings) throws(AdminStartFailure) -> [UInt8]? {
    guard let path = settings.tokenFile else { return nil }
    do throws(FileError) {
        let line = Array(try readFile(path, bytesMax: 64 << 10).prefix { $0 != 0x0A && $0 != 0x0D })
        guard line.count >= 16, line.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw FileError(path: path, code: EINVAL)
        }
        return line
    } catch {
        throw AdminStartFailure(
            message: error.code == EINVAL
                ? "admin token in \(path): one line of at least 16 visible characters, please"
                : "admin token: \(error.text)")
    }
}

func socketAddress(_ address: IPAddress, _ port: UInt16) -> SocketAddress {
    if let v4 = address.v4 { return SocketAddress(v4: v4, port: port) }
    return SocketAddress(v6: address.v6.high, low: address.v6.low, port: port)
}
