import Glibc
import Settings

/// Where the admin socket may be, in the order in which `serve` tries to open it there and the other commands ask.
///
/// The configured path comes first. Who may not write there (the default, /run/larder, belongs to root) gets one in a
/// directory of their own, so that a Larder started by hand can be steered by hand.
/// - Returns: empty if the configuration turns the socket off.
func adminSocketPaths(_ settings: AdminSettings, environment: (String) -> String?) -> [String] {
    guard let configured = settings.socket else { return [] }
    if let runtime = environment("XDG_RUNTIME_DIR"), runtime.hasPrefix("/") {
        return [configured, "\(runtime)/larder/admin.sock"]
    }
    if let home = environment("HOME"), home.hasPrefix("/"), home != "/" {
        return [configured, "\(home)/.cache/larder/admin.sock"]
    }
    return [configured]
}

/// A variable of the process' environment; nil if it is not set or empty.
func environmentVariable(_ name: String) -> String? {
    guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
    return unsafe String(cString: value)
}
