import EventLoop
import Foundation

/// Servers on loopback that do nothing for those who ask them.
enum Unanswering {
    /// Connections are accepted by the kernel; nobody reads from them, and nobody answers.
    final class Listener {
        private let socket: Descriptor
        let port: UInt16

        init() throws {
            socket = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: 0), reusePort: false, backlog: 16)
            port = try Sockets.localAddress(socket.rawValue).port
        }
    }

    /// A port that nobody listens on, and that nobody else can get meanwhile: connections are refused.
    final class ClosedPort {
        private let socket: Descriptor
        let port: UInt16

        init() throws {
            socket = Descriptor(adopting: Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
            port = try bindToLoopback(socket.rawValue)
        }
    }

    /// A listener whose queue is full: the kernel drops the first packet of each further connection.
    final class FullListener {
        private let socket: Descriptor
        private var waiting: [Wire] = []
        private var accepted: [Wire] = []
        let port: UInt16

        init() throws {
            socket = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: 0), reusePort: false, backlog: 0)
            port = try Sockets.localAddress(socket.rawValue).port
            let address = SocketAddress(v4: 0x7F00_0001, port: port)
            // One has room in the queue; the second is there in case the kernel is generous.
            for _ in 0..<2 {
                let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
                let client = Wire(adopting: Glibc.socket(AF_INET, type, 0), "filler")
                _ = unsafe address.withSockaddr {
                    unsafe Glibc.connect(client.fd, $0.assumingMemoryBound(to: sockaddr.self), $1)
                }
                waiting.append(client)
            }
        }

        /// Makes room in the queue: connections are accepted again, and nobody answers.
        func makeRoom() throws {
            var entry = pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0)
            while unsafe poll(&entry, 1, 0) == 1 {
                let taken = accept(socket.rawValue, nil, nil)
                guard taken >= 0 else { throw WireError("accept: \(systemErrorText(errno))") }
                accepted.append(Wire(adopting: taken, "accepted"))
            }
        }
    }

    static func bindToLoopback(_ fd: CInt) throws -> UInt16 {
        let status = unsafe SocketAddress(v4: 0x7F00_0001, port: 0).withSockaddr {
            unsafe Glibc.bind(fd, $0.assumingMemoryBound(to: sockaddr.self), $1)
        }
        guard status == 0 else { throw WireError("bind: \(systemErrorText(errno))") }
        return try Sockets.localAddress(fd).port
    }
}
