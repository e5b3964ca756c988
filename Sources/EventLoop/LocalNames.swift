/// The names that no server is asked for: static entries, then the hosts file, then localhost.
struct LocalNames {
    private var exact: [String: [SocketAddress]] = [:]
    /// By the name behind `*.`.
    private var below: [String: [SocketAddress]] = [:]
    private var watched: WatchedFile?
    private var file = HostsFile()

    init(_ options: Resolver.Options, now: MonotonicTime) {
        for host in options.staticHosts {
            if host.pattern.hasPrefix("*.") {
                below[String(host.pattern.dropFirst(2))] = host.addresses
            } else {
                exact[host.pattern] = host.addresses
            }
        }
        guard let path = options.hostsFile else { return }
        // The version is taken before the file is read: a change meanwhile is seen later.
        watched = WatchedFile(path, pause: options.fileCheckPause, now: now)
        file = HostsFile(path: path)
    }

    /// Returns nil if the name is not local.
    mutating func addresses(of host: String, at now: MonotonicTime) -> [SocketAddress]? {
        if let found = exact[host] ?? wildcard(host) { return found }
        if let path = watched?.path, watched?.hasChanged(at: now) == true { file = HostsFile(path: path) }
        if let found = file.addresses[host] { return found }
        // RFC 6761 §6.3: no server may be asked for these.
        guard host == "localhost" || host.hasSuffix(".localhost") else { return nil }
        return [SocketAddress(v4: 0x7F00_0001, port: 0), SocketAddress(v6: 0, low: 1, port: 0)]
    }

    private func wildcard(_ host: String) -> [SocketAddress]? {
        below.isEmpty ? nil : longestParent(of: host) { below[$0] }
    }
}

/// What `find` returns for the first parent domain of `host` for which it returns something. The longest parent is tried first.
func longestParent<Found>(of host: String, _ find: (String) -> Found?) -> Found? {
    var rest = host[...]
    while let dot = rest.firstIndex(of: ".") {
        rest = rest[rest.index(after: dot)...]
        if let found = find(String(rest)) { return found }
    }
    return nil
}
