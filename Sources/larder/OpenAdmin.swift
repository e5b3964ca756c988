import Admin
import EventLoop
import Glibc
import Message
import Provisioning
import Settings

/// Why the admin server cannot start: the setting, what is wrong, and what to do about it.
struct AdminStartFailure: Error, Equatable {
    var key: String
    var message: String
    var hint: String?
}

/// Starts the admin server on the loop of the control thread.
///
/// If its TCP address cannot be used, Larder does not start. If its socket cannot be created, the next path of `adminSocketPaths` is tried.
/// If none is left, or another Larder answers there, a warning says so and the proxy serves without the socket.
/// - Parameter isFromFile: the settings come from a configuration file.
/// - Returns: the server. The caller closes it on the same thread, before the loop ends.
func openAdmin(
    _ settings: AdminSettings, proxy: any AdministeredProxy, loop: EventLoop, isFromFile: Bool = true,
    _ console: Console
) throws(AdminStartFailure) -> AdminServer {
    let server = AdminServer(proxy: proxy, loop: loop, token: try readToken(settings))
    if case .tcp(let address, let port) = settings.address {
        let place = socketAddress(address, port)
        do throws(SocketError) {
            try server.listen(place)
        } catch {
            server.close()
            let hint = listeningHint(
                error, address: "\(place)", key: "admin.address", alternative: "off", isFromFile: isFromFile)
            throw AdminStartFailure(
                key: "admin.address", message: "cannot listen on \(place): \(error)", hint: hint)
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
            guard path != configured else { return }
            return console.error(
                "warning: admin.socket: \(configured) cannot be created; using \(path) instead")
        } catch {
            guard mayFallBack(error) else {
                return console.error(
                    "warning: admin.socket: \(path): \(error); larder purge and stats will not reach this process"
                )
            }
        }
    }
    console.error("warning: admin.socket: \(configured) cannot be created; larder purge and stats will not work")
}

/// Whether this user must not write to the path. Any other error (in use, too long) would occur at the other paths, too.
private func mayFallBack(_ error: SocketError) -> Bool {
    switch error {
    case .failed(_, let code): [EACCES, EPERM, EROFS, ENOENT, ENOTDIR].contains(code)
    case .addressInUse, .pathTooLong, .emptyPath: false
    }
}

/// The first line of the token file. Returns nil if no token file is configured.
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
            key: "admin.token",
            message: error.code == EINVAL
                ? "\(path): the first line must be a token of at least 16 visible characters" : error.text)
    }
}

func socketAddress(_ address: IPAddress, _ port: UInt16) -> SocketAddress {
    if let v4 = address.v4 { return SocketAddress(v4: v4, port: port) }
    return SocketAddress(v6: address.v6.high, low: address.v6.low, port: port)
}
