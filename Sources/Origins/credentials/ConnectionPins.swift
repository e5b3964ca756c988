package import Routing
import Message

/// The origins at which one client connection has begun to log in with NTLM or Negotiate, which authenticate a connection and not a
/// request (RFC 4559 §6). Requests of that client connection to such an origin use a connection that nobody else uses.
package struct ConnectionPins {
    /// How many origins one client connection may be pinned to.
    package static let countMax = 4

    private var pins: [(origin: Origin, identity: BoundIdentity)] = []

    package init() {}

    package var identities: [BoundIdentity] { pins.map(\.identity) }

    /// Nil if the client connection is not pinned to the origin.
    package func identity(at origin: Origin) -> BoundIdentity? { pins.first { $0.origin == origin }?.identity }

    /// Pins the origin, which is not pinned yet.
    ///
    /// - Returns: the pin that has no place any more: the oldest one.
    package mutating func pin(_ origin: Origin, to identity: BoundIdentity) -> BoundIdentity? {
        precondition(self.identity(at: origin) == nil, "an origin is pinned once")
        let dropped = pins.count < ConnectionPins.countMax ? nil : pins.removeFirst().identity
        pins.append((origin, identity))
        return dropped
    }
}
