import EventLoop
import Glibc

/// Servers on loopback that do nothing for those who ask them.
package enum Unanswering {
    /// Connections are accepted by the kernel; nobody reads from them, and nobody answers.
    package final class Listener {
        private let socket: Descriptor
        package let port: UInt16

        package init() throws {
            socket = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: 0), reusePort: false, backlog: 16)
            port = try Sockets.localAddress(socket.rawValue).port
        }
    }

    /// A port that nobody listens on, and that nobody else can get meanwhile: connections are refused.
    package final class ClosedPort {
        private let socket: Descriptor
        package let port: UInt16

        package init() throws {
            socket = try Unanswering.socket()
            port = try bindToLoopback(socket.rawValue)
        }
    }

    /// A listener whose queue is full: the kernel drops the first packet of each further connection.
    package final class FullListener {
        private let socket: Descriptor
        // Those who wait: one has room in the queue; the second is there in case the kernel is generous.
        private let waiting: Descriptor
        private let more: Descriptor
        private var accepted: [CInt] = []
        package let port: UInt16

        package init() throws {
            socket = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: 0), reusePort: false, backlog: 0)
            port = try Sockets.localAddress(socket.rawValue).port
            let address = SocketAddress(v4: 0x7F00_0001, port: port)
            waiting = try Unanswering.connecting(to: address)
            more = try Unanswering.connecting(to: address)
        }

        deinit { for descriptor in accepted { close(descriptor) } }

        /// Makes room in the queue: connections are accepted again, and nobody answers.
        package func makeRoom() throws {
            var entry = pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0)
            while unsafe poll(&entry, 1, 0) == 1 {
                let taken = accept(socket.rawValue, nil, nil)
                guard taken >= 0 else { throw failure("accept") }
                accepted.append(taken)
            }
        }
    }

    package static func bindToLoopback(_ fd: CInt) throws -> UInt16 {
        guard bindLoopback(fd, port: 0) else { throw failure("bind") }
        return try Sockets.localAddress(fd).port
    }

    private static func failure(_ call: String) -> Failure {
        Failure(description: "\(call): \(systemErrorText(errno))")
    }

    private static func socket() throws -> Descriptor {
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        let raw = Glibc.socket(AF_INET, type, 0)
        guard raw >= 0 else { throw failure("socket") }
        return Descriptor(adopting: raw)
    }

    private static func connecting(to address: SocketAddress) throws -> Descriptor {
        let client = try socket()
        _ = unsafe address.withSockaddr {
            unsafe connect(client.rawValue, $0.assumingMemoryBound(to: sockaddr.self), $1)
        }
        return client
    }
}
