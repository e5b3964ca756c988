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
    let server = AdminServer(proxy: proxy, loop: loop, token: try token(settings))
    if case .tcp(let address, let port) = settings.address {
        let place = SocketAddress(address, port: port)
        do throws(SocketError) {
            try server.listen(place)
        } catch {
            server.close()
            let fault = adminFault(error, address: place, isFromFile: isFromFile)
            throw AdminStartFailure(key: fault.key, message: fault.message, hint: fault.hint)
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
    case .addressInUse, .pathTooLong, .emptyPath, .noSocket: false
    }
}

private func token(_ settings: AdminSettings) throws(AdminStartFailure) -> [UInt8]? {
    do throws(ProvisioningFault) { return try readAdminToken(settings) } catch {
        throw AdminStartFailure(key: error.key, message: error.message, hint: error.hint)
    }
}
