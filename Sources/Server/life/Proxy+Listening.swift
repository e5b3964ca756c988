import EventLoop
import Settings

/// Where a proxy listens: the sockets that one entry of `listen` stands for.
struct ListeningPlace {
    enum Source {
        case address(SocketAddress, unixMode: UInt32?)
        case inherited(InheritedSockets.Socket)
    }
    /// Of the entry in `Configuration.listen`. Nil: that of `fleet.node.peer`.
    let index: Int?
    let source: Source
    var address: SocketAddress
    let terms: ListenerTerms

    /// A Unix socket of our own cannot be shared, so the first worker alone accepts its connections.
    var isShared: Bool {
        switch source {
        case .address(let address, _): address.family != .unix
        case .inherited: true
        }
    }

    private var kind: Listener.Kind { address.family == .unix ? .unix : .tcp }

    /// The places of a configuration.
    ///
    /// - Parameter peers: for other nodes of the fleet, which have a place of their own.
    static func all(_ snapshot: Snapshot, _ peers: PeerTerms?) throws(Proxy.StartError) -> [ListeningPlace] {
        var result: [ListeningPlace] = []
        for (index, listener) in snapshot.configuration.listen.enumerated() {
            let tls = listener.tls.map { settings in
                guard let tls = snapshot.listenerTLS[settings] else {
                    preconditionFailure("the files of every listener are read")
                }
                return tls
            }
            let terms = ListenerTerms(listener, tls: tls)
            func add(_ source: Source, _ address: SocketAddress) {
                result.append(ListeningPlace(index: index, source: source, address: address, terms: terms))
            }
            switch listener.address {
            case .tcp(let address, let port):
                let address = SocketAddress(address, port: port)
                add(.address(address, unixMode: nil), address)
            case .unix(let path):
                do throws(SocketError) {
                    let address = try SocketAddress(unixPath: path)
                    add(.address(address, unixMode: listener.mode), address)
                } catch { throw .listen(index: index, address: path, error) }
            case .inherited(let name):
                let sockets = InheritedSockets.named(name)
                guard !sockets.isEmpty else { throw .notInherited(index: index, address: "\(listener)") }
                for socket in sockets { add(.inherited(socket), try address(of: socket, snapshot, index)) }
            }
        }
        if let place = peers.flatMap({ place(for: $0) }) { result.append(place) }
        return result
    }

    private static func place(for peers: PeerTerms) -> ListeningPlace? {
        let settings = peers.listenerSettings
        guard case .tcp(let address, let port) = settings.address else { return nil }
        let socket = SocketAddress(address, port: port)
        return ListeningPlace(
            index: nil, source: .address(socket, unixMode: nil), address: socket,
            terms: ListenerTerms(settings, tls: peers.tls.server, isForPeers: true))
    }

    private static func address(
        of socket: InheritedSockets.Socket, _ snapshot: Snapshot, _ index: Int
    ) throws(Proxy.StartError) -> SocketAddress {
        let found: SocketAddress
        do throws(SocketError) { found = try Sockets.localAddress(socket.descriptor) } catch {
            throw .listen(index: index, address: "systemd:\(socket.name)", error)
        }
        let access = snapshot.configuration.access
        guard
            found.family == .unix || found.isLoopback || access.namedClients != nil || access.authentication.isRequired
        else { throw .unguarded(index: index, address: "\(found)") }
        return found
    }

    /// Makes a socket for one worker.
    func open() throws(Proxy.StartError) -> ListeningSocket {
        let descriptor: Descriptor
        switch source {
        case .inherited(let socket):
            guard let own = InheritedSockets.duplicate(socket) else {
                throw .notInherited(index: index, address: "systemd:\(socket.name)")
            }
            // A client that has sent nothing is the next process's client, if this one ends.
            if kind == .tcp { Sockets.deferAccept(own.rawValue) }
            descriptor = own
        case .address(_, let mode):
            do throws(SocketError) {
                descriptor = try Sockets.listen(address, reusePort: address.family != .unix, unixMode: mode)
            } catch { throw .listen(index: index, address: "\(address)", error) }
        }
        return ListeningSocket(descriptor.release(), kind, isInherited: isInherited, terms)
    }

    private var isInherited: Bool { if case .inherited = source { true } else { false } }

    /// Fails if another process listens on the address. With `SO_REUSEPORT` alone two processes would share the clients without notice, so
    /// this tries a socket that does not share.
    func checkFree() throws(Proxy.StartError) {
        guard case .address = source, address.family != .unix, address.port != 0 else { return }
        do throws(SocketError) {
            _ = try Sockets.listen(address, reusePort: false, backlog: 1)
        } catch { throw .listen(index: index, address: "\(address)", error) }
    }
}

/// A socket that listens, on its way to its worker. Whoever takes it owns the descriptor.
struct ListeningSocket: Sendable {
    let descriptor: CInt
    let kind: Listener.Kind
    /// Whether the service manager has it as well.
    let isInherited: Bool
    let terms: ListenerTerms

    init(_ descriptor: CInt, _ kind: Listener.Kind, isInherited: Bool, _ terms: ListenerTerms) {
        self.descriptor = descriptor
        self.kind = kind
        self.isInherited = isInherited
        self.terms = terms
    }
}
