package import Message

/// An address to listen on: `127.0.0.1:3128`, `[::1]:3128`, `localhost:3128`, `unix:/run/larder/proxy.sock`, or a socket that the service manager has
/// opened: `systemd`, `systemd:NAME`.
package enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    case tcp(IPAddress, port: UInt16)
    case unix(String)
    /// Passed by the service manager (sd_listen_fds(3)): the one with this name, or all that are passed.
    case inherited(name: String?)

    /// Returns nil if the text is none of these. With port 0 the kernel chooses a free port, and the line of readiness shows it. The only
    /// name is localhost: others are not looked up.
    package init?(_ text: String) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            // `sun_path` of `sockaddr_un` has space for 107 bytes and a NUL.
            guard path.hasPrefix("/"), path.utf8.count <= 107, !path.utf8.contains(0) else { return nil }
            self = .unix(path)
            return
        }
        if text == "systemd" || text.hasPrefix("systemd:") {
            let name = String(text.dropFirst(8))
            // FileDescriptorName= of systemd.socket(5).
            guard text == "systemd" || Self.isName(name) else { return nil }
            self = .inherited(name: text == "systemd" ? nil : name)
            return
        }
        let bytes = Array(text.utf8)
        guard let colon = bytes.lastIndex(of: UInt8(ascii: ":")), let port = Self.port(bytes[(colon + 1)...]),
            let address = Self.address(bytes[..<colon])
        else { return nil }
        self = .tcp(address, port: port)
    }

    private static func isName(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x3A }
    }

    private static func port(_ digits: ArraySlice<UInt8>) -> UInt16? {
        guard digits.first != UInt8(ascii: "+"), let port = UInt16(String(decoding: digits, as: UTF8.self))
        else { return nil }
        return port
    }

    private static func address(_ host: ArraySlice<UInt8>) -> IPAddress? {
        if host.elementsEqual("localhost".utf8) { return IPAddress(v4: 0x7F00_0001) }
        guard host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") else {
            return host.contains(UInt8(ascii: ":")) ? nil : IPAddress(strict: host)
        }
        let inside = host.dropFirst().dropLast()
        return inside.contains(UInt8(ascii: ":")) ? IPAddress(strict: inside) : nil
    }

    package var description: String {
        switch self {
        case .tcp(let address, let port): address.isV4 ? "\(address):\(port)" : "[\(address)]:\(port)"
        case .unix(let path): "unix:\(path)"
        case .inherited(let name): name.map { "systemd:\($0)" } ?? "systemd"
        }
    }
}

extension ListenAddress {
    /// The port is 0. Two such listeners are not the same.
    var isAnyPort: Bool {
        if case .tcp(_, port: 0) = self { return true }
        return false
    }
}
