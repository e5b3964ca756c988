import Framing
import Message

/// What is known of a client for the whole life of its connection. It does not change.
struct ClientContext {
    /// The client's address; nil for a client of a Unix socket.
    let peer: IPAddress?
    /// False if this client may not use the proxy at all. Every request of it is refused with 403.
    let isAdmitted: Bool
    /// Whether plain requests may be answered without an exchange (`ClientConnection.answer`).
    let takesShortWay: Bool
    /// The subject of the client's certificate; nil without one.
    let certificateSubject: String?
    /// The user that was authenticated for the whole connection. Nil if each request carries its own credentials.
    let boundUser: String?
    /// The origin to which requests in origin-form go. Set for an intercepted tunnel to that origin, nil otherwise.
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
