package import EventLoop
import Glibc

/// The HTTP server for administrators: its listeners and their connections, on the loop of the control thread.
///
/// Call `close()` on that thread before the loop ends.
package final class AdminServer {
    private let loop: EventLoop
    private let router: AdminRouter
    private var listeners: [AdminListener] = []
    /// The TCP addresses on which it listens, with the ports that the kernel chose.
    package private(set) var addresses: [SocketAddress] = []

    /// - Parameter token: what `Authorization: Bearer` must carry to change something over TCP. If nil, that takes the Unix socket.
    package init(proxy: any AdministeredProxy, loop: EventLoop, token: [UInt8]? = nil) {
        self.loop = loop
        router = AdminRouter(proxy: proxy, token: token)
    }

    deinit { precondition(listeners.isEmpty, "the admin server is closed before it goes away") }

    /// Listens on an address and port. If the port is zero, the kernel chooses one.
    /// - Returns: the address with the port.
    @discardableResult
    package func listen(_ address: SocketAddress) throws(SocketError) -> SocketAddress {
        let socket = try Sockets.listen(address, reusePort: false, backlog: 64)
        let local = try Sockets.localAddress(socket.rawValue)
        add(socket, door: .tcp, path: nil)
        addresses.append(local)
        return local
    }

    /// Listens on a Unix socket that only the user of this process, and root, can open.
    ///
    /// Creates the directory if only its last component is missing. Replaces a socket file on which nobody answers.
    package func listen(unixPath: String) throws(SocketError) {
        let address = try SocketAddress(unixPath: unixPath)
        if let slash = unixPath.lastIndex(of: "/"), slash != unixPath.startIndex {
            _ = unsafe mkdir(String(unixPath[..<slash]), 0o755)  // if this fails, bind fails and reports it
        }
        add(
            try Sockets.listen(address, reusePort: false, backlog: 64, unixMode: 0o600), door: .unixSocket,
            path: unixPath)
    }

    /// Closes all connections and listeners, and removes the socket file.
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
