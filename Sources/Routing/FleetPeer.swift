/// Another node of the fleet, as a place where responses are asked for (docs/fleet.md).
package struct FleetPeer: Hashable, Sendable {
    package let endpoint: Endpoint
    /// What its certificate has to name (RFC 9110 §4.3.4).
    package let serverName: String

    package init(_ endpoint: Endpoint, serverName: String) {
        self.endpoint = endpoint
        self.serverName = serverName
    }
}

extension FleetPeer: CustomStringConvertible {
    package var description: String { "\(endpoint)" }
}
