import CLarder
import Glibc

/// Listening sockets that the service manager has opened for this process (sd_listen_fds(3)).
package enum InheritedSockets {
    package struct Socket: Sendable, Equatable {
        package let descriptor: CInt
        /// `FileDescriptorName=` of the socket unit. Without one it is the name of the unit.
        package let name: String

        package init(descriptor: CInt, name: String) {
            self.descriptor = descriptor
            self.name = name
        }
    }

    /// The sockets that were passed, in their order. The environment is read once: later it is gone, so that no child takes them for its own.
    package static let all: [Socket] = {
        func variable(_ name: String) -> String? { unsafe getenv(name).map { unsafe String(cString: $0) } }
        let found = read(
            pid: variable("LISTEN_PID"), count: variable("LISTEN_FDS"), names: variable("LISTEN_FDNAMES"),
            ownPID: getpid())
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { _ = unsafe unsetenv(name) }
        for socket in found { clarder_close_on_exec(socket.descriptor) }
        return found
    }()

    /// What the variables say. Nothing if they are meant for another process.
    package static func read(pid: String?, count: String?, names: String?, ownPID: CInt) -> [Socket] {
        guard let pid, CInt(pid) == ownPID, let count = count.flatMap({ Int($0) }), (1...1024).contains(count) else {
            return []
        }
        let names = names?.split(separator: ":", omittingEmptySubsequences: false).map(String.init) ?? []
        // SD_LISTEN_FDS_START is 3.
        return (0..<count).map { index in
            Socket(descriptor: CInt(3 + index), name: index < names.count ? names[index] : "unknown")
        }
    }

    /// Those with a name, or all.
    package static func named(_ name: String?) -> [Socket] { all.filter { name == nil || $0.name == name } }

    /// A descriptor of its own for the same socket, which does not block. Nil if it is no stream socket that listens.
    package static func duplicate(_ socket: Socket) -> Descriptor? {
        let duplicate = clarder_duplicate_listening(socket.descriptor)
        return duplicate >= 0 ? Descriptor(adopting: duplicate) : nil
    }
}
