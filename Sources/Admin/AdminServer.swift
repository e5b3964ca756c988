package import EventLoop
import Glibc

/// The HTTP server for those who watch and steer: its listeners and their connections, on the control thread's loop.
///
/// `close()` it on that thread before the loop goes away.
package final class AdminServer {
    private let loop: EventLoop
    private let router: AdminRouter
    private var listeners: [AdminListener] = []
    /// Where it listens on TCP, with the ports that were really taken.
    package private(set) var addresses: [SocketAddress] = []

    /// - Parameter token: what changes over TCP must carry as `Authorization: Bearer`; nil: none are made over TCP.
    package init(proxy: any AdministeredProxy, loop: EventLoop, token: [UInt8]? = nil) {
        self.loop = loop
        router = AdminRouter(proxy: proxy, token: token)
    }

    deinit { precondition(listeners.isEmpty, "the admin server is closed before it goes away") }

    /// Listens on an address and port; with port zero the kernel chooses one.
    /// - Returns: where it listens.
    @discardableResult
    package func listen(_ address: SocketAddress) throws(SocketError) -> SocketAddress {
        let socket = try Sockets.listen(address, reusePort: false, backlog: 64)
        let local = try Sockets.localAddress(socket.rawValue)
        add(socket, door: .tcp, path: nil)
        addresses.append(local)
        return local
    }

    /// Listens on a Unix socket that only our own user (and root) may open.
    ///
    /// The directory is made where only it is missing; a socket file that nobody answers on is replaced.
    package func listen(unixPath: String) throws(SocketError) {
        let address = try SocketAddress(unixPath: unixPath)
        if let slash = unixPath.lastIndex(of: "/"), slash != unixPath.startIndex {
            _ = unsafe mkdir(String(unixPath[..<slash]), 0o755)  // what can not be made makes bind fail, which says so
        }
        add(
            try Sockets.listen(address, reusePort: false, backlog: 64, unixMode: 0o600), door: .unixSocket,
            path: unixPath)
    }

    /// Ends all connections and listeners and removes the socket file.
    package func close() {
        for listener in listeners { listener.close() }
        listeners = []
    }

    private func add(_ socket: consuming Descriptor, door: AdminRequest.Door, path: String?) {
        let listener = AdminListener(loop: loop, router: router, socket: socket, door: door, path: path)
        listeners.append(listener)
        listener.start()
    }
}
