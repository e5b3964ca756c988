import Forwarding
import Message
import Routing

/// Larder's own credentials in the way of a fetch: the desk is asked before a request is sent and told of each final
/// head. There are no credentials today, and nothing but an empty desk.
extension Fetch {
    /// Before the request is sent.
    func askCredentialDesk() {
        guard !worker.credentialDesk.isEmpty else { return }
        let answer = worker.credentialDesk.on(.sending, at: request.origin.endpoint)
        precondition(answer == .sendAsItIs, "there are no credentials to send")
    }

    /// The origin, or a proxy on the way to it, has answered.
    func tellCredentialDesk(of response: ReceivedResponse) {
        guard !worker.credentialDesk.isEmpty else { return }
        let challenge =
            switch response.status {
            case 401: response.fields.first(.wwwAuthenticate)
            case 407: response.fields.first(.proxyAuthenticate)
            default: nil as ArraySlice<UInt8>?
            }
        let event = challenge.map { LogIn.Event.challenged(Array($0), proves: false) } ?? .answered(proves: false)
        let answer = worker.credentialDesk.on(event, at: request.origin.endpoint)
        precondition(answer == .passOn, "there are no credentials to ask again with")
    }
}
