import Forwarding
import Message
import Routing

/// Where Larder's own credentials for origins would be used: the desk is asked before a request is sent, and told of each final head.
/// Larder has no such credentials today, so the desk is empty.
extension Fetch {
    /// Asks the desk before the request is sent.
    func askCredentialDesk() {
        guard !worker.credentialDesk.isEmpty else { return }
        let answer = worker.credentialDesk.on(.sending, at: request.origin.endpoint)
        precondition(answer == .sendAsItIs, "there are no credentials to send")
    }

    /// Tells the desk of a final head from the origin or from a next proxy.
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
