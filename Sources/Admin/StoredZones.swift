import Caching
import Disk
import Message
import Server
import Storage

extension Proxy {
    /// The disks of the zones that have one.
    var storedDisks: [(zone: String, store: DiskStore)] { [] }

    /// The zones with their tiers; the default one first.
    var storedZones: [(name: String, tier: MemoryTier)] { shared.zones.current.map { ($0.name, $0.tier) } }
}
