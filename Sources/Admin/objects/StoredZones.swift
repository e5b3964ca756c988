import Caching
import Message
import Server
import Storage

extension Proxy {
    /// The zones with their tiers. The default zone is the first.
    var storedZones: [(name: String, tier: Tiers)] { shared.zones.current.map { ($0.name, $0.tier) } }
}
