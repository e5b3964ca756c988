import Glibc

/// Tells the service manager what this process is doing: sd_notify(3). Says nothing where there is no service manager.
///
/// The protocol is one datagram of lines for each message. One that cannot be sent is dropped: nothing depends on it.
final class ServiceManager {
    /// `sun_path`: a path, or a name in the abstract namespace with a NUL in front.
    private let path: [UInt8]?
    private let socket: CInt
    /// How often a sign of life has to come at the latest. Nil: none is expected.
    let watchdog: Duration?

    /// Takes the variables out of the environment, so that no child speaks in the name of this process.
    init() {
        func take(_ name: String) -> String? {
            defer { _ = unsafe unsetenv(name) }
            return unsafe getenv(name).map { unsafe String(cString: $0) }
        }
        path = take("NOTIFY_SOCKET").flatMap { ServiceManager.path($0) }
        watchdog = ServiceManager.watchdog(
            microseconds: take("WATCHDOG_USEC"), pid: take("WATCHDOG_PID"), ownPID: getpid())
        socket = path == nil ? -1 : Glibc.socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    }

    deinit { if socket >= 0 { _ = close(socket) } }

    /// Nil for what is no address of a Unix socket. `@` stands for the NUL of the abstract namespace.
    static func path(_ text: String) -> [UInt8]? {
        var path = Array(text.utf8)
        guard (2...107).contains(path.count), path[0] == UInt8(ascii: "/") || path[0] == UInt8(ascii: "@") else {
            return nil
        }
        if path[0] == UInt8(ascii: "@") { path[0] = 0 }
        return path
    }

    /// sd_watchdog_enabled(3).
    static func watchdog(microseconds: String?, pid: String?, ownPID: CInt) -> Duration? {
        guard let count = microseconds.flatMap({ Int64($0) }), count > 0 else { return nil }
        guard pid == nil || pid.flatMap({ CInt($0) }) == ownPID else { return nil }
        return .microseconds(count)
    }

    /// Larder serves, or serves again with a new configuration.
    func ready(_ status: String) { send("READY=1\nSTATUS=\(status)") }

    /// The configuration is being read again. `ready` has to follow, whatever comes of it.
    func reloading() {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        send("RELOADING=1\nMONOTONIC_USEC=\(Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)")
    }

    func stopping() { send("STOPPING=1\nSTATUS=waiting for running requests") }

    func signOfLife() { send("WATCHDOG=1") }

    private func send(_ message: String) {
        guard let path, socket >= 0 else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path) }
        let bytes = Array(message.utf8)
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        unsafe withUnsafeBytes(of: &address) { raw in
            let pointer = unsafe raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            _ = unsafe sendto(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL | MSG_DONTWAIT), pointer, length)
        }
    }
}
