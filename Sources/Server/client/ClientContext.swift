import Forwarding
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
    /// Whether TLS may hold bytes that no event of the socket announces.
    let isSecured: Bool
    /// The client asked for a tunnel with SOCKS, and is answered likewise.
    let isSocks: Bool
    /// The listener by which the client came; in an opened tunnel that of the CONNECT. Nil where this process itself is the client.
    let listener: ListenerTerms?
    /// What few clients have. Nil for all others, whose connections need no room for it.
    private let particulars: Particulars?

    private final class Particulars {
        let proof: ConnectionProof?
        let fixedOrigin: FixedOrigin?
        let serverName: ServerName?
        let program: ProgramLink?
        let tunnel: RequestID?

        init(
            _ proof: ConnectionProof?, _ fixedOrigin: FixedOrigin?, _ serverName: ServerName?, _ program: ProgramLink?,
            _ tunnel: RequestID?
        ) {
            self.proof = proof
            self.fixedOrigin = fixedOrigin
            self.serverName = serverName
            self.program = program
            self.tunnel = tunnel
        }
    }

    init(
        peer: IPAddress?, isAdmitted: Bool, proof: ConnectionProof? = nil, listener: ListenerTerms?,
        isSecured: Bool = false, isSocks: Bool = false, fixedOrigin: FixedOrigin? = nil, serverName: ServerName? = nil,
        program: ProgramLink? = nil, tunnel: RequestID? = nil
    ) {
        self.peer = peer
        self.isAdmitted = isAdmitted
        isOrdinary = isAdmitted && listener?.isForPeers != true
        self.isSecured = isSecured
        self.isSocks = isSocks
        self.listener = listener
        let isParticular = proof != nil || fixedOrigin != nil || serverName != nil || program != nil
        particulars = isParticular ? Particulars(proof, fixedOrigin, serverName, program, tunnel) : nil
    }

    /// Who the client proved to be for the whole connection: with its certificate, with SOCKS, or, in an opened tunnel, with the CONNECT. Nil
    /// if each request carries its own credentials.
    var proof: ConnectionProof? { particulars?.proof }
    /// The origin to which requests in origin-form go. Set in an opened tunnel to that origin, nil otherwise.
    var fixedOrigin: FixedOrigin? { particulars?.fixedOrigin }
    /// What the client named in the first bytes of its tunnel. Nil outside of opened tunnels.
    var serverName: ServerName? { particulars?.serverName }
    /// The ID of the CONNECT that opened the tunnel. Nil outside of opened tunnels.
    var tunnel: RequestID? { particulars?.tunnel }
    /// Where this process itself is the client. Nil for all others.
    var program: ProgramLink? { particulars?.program }
}
