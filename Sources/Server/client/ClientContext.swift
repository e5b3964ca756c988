import Framing
import Message
import Rules

/// What is known of a client for the whole life of its connection. It does not change.
struct ClientContext {
    /// The client's address; nil for a client of a Unix socket.
    let peer: IPAddress?
    /// False if this client may not use the proxy at all. Every request of it is refused with 403.
    let isAdmitted: Bool
    /// The subject of the client's certificate; nil without one.
    let certificateSubject: String?
    /// Who the client proved to be for the whole connection: in an opened tunnel, with the CONNECT. Nil if each request carries its own
    /// credentials.
    let identity: Identity?
    /// The origin to which requests in origin-form go. Set in an opened tunnel to that origin, nil otherwise.
    let fixedOrigin: FixedOrigin?
    /// Where this process itself is the client. Nil for all others.
    let program: ProgramLink?

    init(
        peer: IPAddress?, isAdmitted: Bool, certificateSubject: String? = nil, identity: Identity? = nil,
        fixedOrigin: FixedOrigin? = nil, program: ProgramLink? = nil
    ) {
        self.peer = peer
        self.isAdmitted = isAdmitted
        self.certificateSubject = certificateSubject
        self.identity = identity
        self.fixedOrigin = fixedOrigin
        self.program = program
    }
}
