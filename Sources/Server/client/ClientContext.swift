import Framing
import Message
import Rules

/// What is known of a client for the whole life of its connection. It does not change.
struct ClientContext {
    /// The client's address, which may be that in a PROXY header; nil for a client of a Unix socket.
    let peer: IPAddress?
    /// False if this client may not use the proxy at all. Every request of it is refused with 403.
    let isAdmitted: Bool
    /// Whether its plain requests may be answered by the short way: it is admitted, and is no other node of the fleet.
    let isOrdinary: Bool
    /// Who the client proved to be for the whole connection: with its certificate, with SOCKS, or, in an opened tunnel, with the CONNECT. Nil
    /// if each request carries its own credentials.
    let identity: Identity?
    /// The listener by which the client came; in an opened tunnel that of the CONNECT. Nil where this process itself is the client.
    let listener: ListenerTerms?
    /// Whether TLS may hold bytes that no event of the socket announces.
    let isSecured: Bool
    /// The client asked for a tunnel with SOCKS, and is answered likewise.
    let isSocks: Bool
    /// The origin to which requests in origin-form go. Set in an opened tunnel to that origin, nil otherwise.
    let fixedOrigin: FixedOrigin?
    /// What the client named in the first bytes of its tunnel. Nil outside of opened tunnels.
    let serverName: ServerName?
    /// Where this process itself is the client. Nil for all others.
    let program: ProgramLink?

    init(
        peer: IPAddress?, isAdmitted: Bool, identity: Identity? = nil, listener: ListenerTerms?,
        isSecured: Bool = false, isSocks: Bool = false, fixedOrigin: FixedOrigin? = nil, serverName: ServerName? = nil,
        program: ProgramLink? = nil
    ) {
        self.peer = peer
        self.isAdmitted = isAdmitted
        isOrdinary = isAdmitted && listener?.isForPeers != true
        self.identity = identity
        self.listener = listener
        self.isSecured = isSecured
        self.isSocks = isSocks
        self.fixedOrigin = fixedOrigin
        self.serverName = serverName
        self.program = program
    }
}
