/// Larder's own credentials for origins and next proxies: asked before each request is sent, told of each answer.
///
/// There are none today. The desk then answers that there is nothing to add, without a look-up, and a response that asks
/// for credentials is passed on to the client, who may have some.
package struct CredentialDesk: Sendable {
    private var logIns: [Endpoint: LogIn]

    /// - Parameter endpoints: those for which there are credentials.
    package init(for endpoints: [Endpoint] = []) {
        logIns = Dictionary(uniqueKeysWithValues: Set(endpoints).map { ($0, LogIn()) })
    }

    package var isEmpty: Bool { logIns.isEmpty }

    package mutating func on(_ event: LogIn.Event, at endpoint: Endpoint) -> LogIn.Action {
        // For an endpoint without credentials nothing is learnt.
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
