/// Larder's own credentials for origins and next proxies. It is asked before each request is sent, and told of each answer.
///
/// Larder has no such credentials today. The desk answers without a look-up that there is nothing to add, and a response that asks for
/// credentials is passed on to the client, which may have some.
package final class CredentialDesk {
    private var logIns: [Endpoint: LogIn]

    /// - Parameter endpoints: the endpoints for which there are credentials.
    package init(for endpoints: [Endpoint] = []) {
        isEmpty = endpoints.isEmpty
        logIns = Dictionary(uniqueKeysWithValues: Set(endpoints).map { ($0, LogIn()) })
    }

    /// There are no credentials, for any endpoint.
    package let isEmpty: Bool

    /// Passes an event to the log-in of an endpoint.
    package func on(_ event: LogIn.Event, at endpoint: Endpoint) -> LogIn.Action {
        // An endpoint without credentials has no log-in.
        guard !logIns.isEmpty, logIns[endpoint] != nil else { return CredentialDesk.withoutCredentials(event) }
        return logIns[endpoint, default: LogIn()].on(event)
    }

    private static func withoutCredentials(_ event: LogIn.Event) -> LogIn.Action {
        switch event {
        case .sending: .sendAsItIs
        case .challenged, .answered: .passOn
        case .broke: .nothing
        }
    }
}
