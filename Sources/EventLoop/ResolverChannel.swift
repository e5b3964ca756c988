// Import all of these: which module a C type belongs to depends on which one is loaded first.
import CAres
import CLarder
import CLibevent
import Glibc

/// A channel of c-ares: one set of name servers, and the queries sent to them.
@safe final class ResolverChannel {
    let raw: ares_channel
    let sockets: ResolverSockets
    /// The servers as text: `192.0.2.53:53, [2001:db8::53]:53`.
    let servers: String
    /// The queries under way.
    var openCount = 0

    /// - Parameter servers: nil stands for those of resolv.conf.
    init(_ loop: EventLoop, _ options: Resolver.Options, servers: [String]?) throws(ResolverError) {
        sockets = ResolverSockets(loop)
        unsafe raw = try ResolverChannel.make(options, servers, sockets)
        unsafe self.servers = ResolverChannel.servers(of: raw)
        unsafe sockets.attach(raw)
    }

    deinit {
        unsafe ares_destroy(raw)  // ends open queries; their callbacks find no resolver any more
        sockets.detach()
    }

    /// Process-wide set-up of c-ares, once.
    private static let libraryStatus: CInt = ares_library_init(1 /* ARES_LIB_INIT_ALL */)

    private static func servers(of channel: ares_channel) -> String {
        var list: UnsafeMutablePointer<ares_addr_port_node>?
        guard unsafe ares_get_servers_ports(channel, &list) == CInt(ARES_SUCCESS) else { return "" }
        defer { if let list = unsafe list { unsafe ares_free_data(list) } }
        var names: [String] = []
        var node = unsafe list
        while let current = unsafe node {
            let port = unsafe current.pointee.udp_port
            let address = unsafe address(of: current.pointee)
            names.append("\(address.with(port: port > 0 ? UInt16(clamping: port) : 53))")
            unsafe node = unsafe current.pointee.next
        }
        return names.joined(separator: ", ")
    }

    private static func address(of node: ares_addr_port_node) -> SocketAddress {
        guard unsafe node.family == AF_INET6 else {
            return SocketAddress(v4: unsafe UInt32(bigEndian: node.addr.addr4.s_addr), port: 0)
        }
        let bytes = unsafe withUnsafeBytes(of: node.addr.addr6) { unsafe Array($0.prefix(16)) }
        func half(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        return SocketAddress(v6: half(bytes[..<8]), low: half(bytes[8...]), port: 0)
    }

    private static func make(
        _ options: Resolver.Options, _ servers: [String]?, _ sockets: ResolverSockets
    ) throws(ResolverError) -> ares_channel {
        guard libraryStatus == 0 else { throw .failed(status: libraryStatus) }
        var settings = unsafe ares_options()
        unsafe settings.timeout = CInt(clamping: max(1, options.timeout.nanosecondsClamped / 1_000_000))
        unsafe settings.tries = CInt(clamping: options.tries)
        unsafe settings.sock_state_cb = unsafe ResolverSockets.stateChanged
        unsafe settings.sock_state_cb_data = unsafe Unmanaged.passUnretained(sockets).toOpaque()
        // No search list: rules have judged the host of the URL, and must not be led to another one.
        unsafe settings.ndomains = 0
        let mask =
            ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS
            | ARES_OPT_RESOLVCONF
        var channel: ares_channel?
        // c-ares copies both texts. "b" is DNS alone: the hosts file is read by `LocalNames`.
        let status = unsafe options.resolvConf.withCString { path in
            unsafe "b".withCString { lookups in
                unsafe settings.resolvconf_path = unsafe UnsafeMutablePointer(mutating: path)
                unsafe settings.lookups = unsafe UnsafeMutablePointer(mutating: lookups)
                return unsafe ares_init_options(&channel, &settings, CInt(mask))
            }
        }
        guard status == 0, let channel = unsafe channel else { throw .failed(status: status) }
        if let servers {
            let status = unsafe ares_set_servers_ports_csv(channel, servers.joined(separator: ","))
            guard status == 0 else {
                unsafe ares_destroy(channel)
                throw .failed(status: status)
            }
        }
        return unsafe channel
    }
}

/// The channels of a resolver: one for the usual servers, and one for each suffix with servers of its own, made on first use.
struct ResolverChannels {
    private let loop: EventLoop
    private let options: Resolver.Options
    private var usual: ResolverChannel
    private var resolvConf: WatchedFile?
    private let servers: [String: [String]]
    private var bySuffix: [String: ResolverChannel] = [:]
    /// Channels for a former resolv.conf whose queries have not ended.
    private var retired: [ResolverChannel] = []

    init(_ loop: EventLoop, _ options: Resolver.Options) throws(ResolverError) {
        self.loop = loop
        self.options = options
        // The version is taken before the file is read: a change meanwhile is seen later.
        if options.servers == nil {
            resolvConf = WatchedFile(options.resolvConf, pause: options.fileCheckPause, now: loop.now)
        }
        usual = try ResolverChannel(loop, options, servers: options.servers)
        servers = Dictionary(options.suffixes.map { ($0.suffix, $0.servers) }, uniquingKeysWith: { $1 })
    }

    mutating func channel(for host: String) throws(ResolverError) -> ResolverChannel {
        if !servers.isEmpty, let suffix = suffix(of: host) {
            if let channel = bySuffix[suffix] { return channel }
            let channel = try ResolverChannel(loop, options, servers: servers[suffix])
            bySuffix[suffix] = channel
            return channel
        }
        if resolvConf?.hasChanged(at: loop.now) == true { renewUsual() }
        return usual
    }

    /// Releases what nobody needs any more. Not from within a callback of c-ares.
    mutating func clean() { retired.removeAll { $0.openCount == 0 } }

    private func suffix(of host: String) -> String? {
        servers[host] != nil ? host : longestParent(of: host) { servers[$0] == nil ? nil : $0 }
    }

    /// Version 1.18 of c-ares cannot read resolv.conf again, so a new channel does. Queries under way finish on the old one. A file
    /// that cannot be used leaves everything as it is.
    private mutating func renewUsual() {
        guard let renewed = try? ResolverChannel(loop, options, servers: nil) else { return }
        retired.append(usual)
        usual = renewed
        clean()
    }
}
