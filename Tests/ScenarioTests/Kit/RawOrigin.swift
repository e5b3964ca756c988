import EventLoop
import Glibc

/// An origin of which a test sees every byte and how the connection ends.
final class RawOrigin {
    private let socket: Descriptor
    let port: UInt16

    init() throws {
        socket = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: 0), reusePort: false, backlog: 4)
        port = try Sockets.localAddress(socket.rawValue).port
    }

    /// The next connection.
    func accept(_ s: Scenario) throws -> Wire {
        var accepted: CInt = -1
        try s.eventually("the proxy connects") {
            accepted = Glibc.accept(socket.rawValue, nil, nil)
            return accepted >= 0
        }
        return Wire(adopting: accepted, "origin")
    }
}
