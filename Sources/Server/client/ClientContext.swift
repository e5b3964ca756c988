import Framing
import Message

/// What is known of a client for as long as its connection lasts, whatever requests it sends.
struct ClientContext {
    /// Nil for a client of a Unix socket.
    let peer: IPAddress?
    /// False: the client is not among those who may use the proxy at all. It is told so, and gets nothing else.
    let isAdmitted: Bool
    /// Plain hits need no further look at who asks and for what.
    let takesShortWay: Bool
    /// Who the client's certificate says it is; nil without one.
    let certificateSubject: String?
    /// Who the client proved to be once for all requests of its connection; nil where each request says so itself.
    let boundUser: String?
    /// Where requests in origin-form go: set for a connection that was a tunnel to that origin and was opened up.
    let fixedOrigin: FixedOrigin?

    init(
        peer: IPAddress?, isAdmitted: Bool, certificateSubject: String? = nil, boundUser: String? = nil,
        fixedOrigin: FixedOrigin? = nil
    ) {
        self.peer = peer
        self.isAdmitted = isAdmitted
        self.certificateSubject = certificateSubject
        self.boundUser = boundUser
        self.fixedOrigin = fixedOrigin
        takesShortWay = isAdmitted && fixedOrigin == nil
    }
}
