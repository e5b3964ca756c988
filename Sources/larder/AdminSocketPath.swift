import Settings

/// The paths of the admin socket: `serve` tries to create it there in this order, and the other commands try to connect in this order.
///
/// The configured path comes first. A user who cannot write there (the default, /run/larder, belongs to root) gets a socket in a directory
/// of their own, so that they can also control a Larder that they started by hand.
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
