/// Everything `/stats`, `/metrics`, the dashboard and `larder stats` tell: one snapshot, summed over all workers.
///
/// Counters count from the start of the process and never fall; gauges say what is now. Sizes in bytes.
package struct Statistics: Sendable, Equatable {
    package var version = ""
    /// Seconds since 1970-01-01T00:00:00Z.
    package var startedAt: Int64 = 0
    package var uptimeSeconds: UInt64 = 0
    package var isDraining = false

    package var requests = OutcomeCounts()
    package var bytes = ByteCounts()
    package var bandwidth = Bandwidth()
    package var clients = ClientConnections()
    package var origins = OriginConnections()
    package var tunnels = Tunnels()
    /// Of all zones together.
    package var memory = MemoryUse()
    /// Of each zone; the default one first.
    package var zones: [ZoneRow] = []
    /// What happened to stored responses and transfers, by event.
    package var store: [NamedCount] = []
    package var names = NameResolution()
    /// By error type of RFC 9209 §2.3.
    package var errors: [NamedCount] = []
    /// By reason, such as `te-with-cl` or `private-destination`.
    package var refusals: [NamedCount] = []
    /// Client connections that closed, by reason.
    package var closes: [NamedCount] = []
    package var workers: [WorkerRow] = []

    package init() {}
}

/// A counter whose name is only known while running: an error type, a reason.
package struct NamedCount: Sendable, Equatable {
    package var name: String
    package var count: UInt64
    package init(_ name: String, _ count: UInt64) {
        self.name = name
        self.count = count
    }
}

extension Statistics {
    /// Bytes of responses, heads included; tunnels are counted on their own.
    package struct ByteCounts: Sendable, Equatable {
        package var toClients: UInt64 = 0
        /// The part of `toClients` that was stored, or came from a transfer that another request had begun.
        package var fromCache: UInt64 = 0
        package var fromOrigins: UInt64 = 0
        package init() {}

        /// What did not have to be fetched.
        package var saved: UInt64 { min(fromCache, toClients > fromOrigins ? toClients - fromOrigins : 0) }
        /// Hits by bytes, 0...1; nil before the first byte.
        package var hitRatio: Double? {
            toClients == 0 ? nil : min(1, Double(fromCache) / Double(toClients))
        }
    }

    /// Bytes per second, the mean of the last five seconds.
    package struct Bandwidth: Sendable, Equatable {
        package var toClients: UInt64 = 0
        package var fromOrigins: UInt64 = 0
        package init() {}
    }

    package struct ClientConnections: Sendable, Equatable {
        package var open: UInt64 = 0
        package var accepted: UInt64 = 0
        package init() {}
    }

    package struct OriginConnections: Sendable, Equatable {
        package var open: UInt64 = 0
        /// The part of `open` that waits in a pool.
        package var idle: UInt64 = 0
        package var opened: UInt64 = 0
        /// Requests that found a connection in a pool.
        package var reused: UInt64 = 0
        package init() {}
    }

    package struct Tunnels: Sendable, Equatable {
        package var open: UInt64 = 0
        package var opened: UInt64 = 0
        package var bytesFromClients: UInt64 = 0
        package var bytesToClients: UInt64 = 0
        package init() {}
    }

    package struct MemoryUse: Sendable, Equatable {
        package var budget: UInt64 = 0
        package var used: UInt64 = 0
        package var records: UInt64 = 0
        package var evictions: UInt64 = 0
        package init() {}
    }

    package struct ZoneRow: Sendable, Equatable {
        package var name: String
        package var memory: MemoryUse
        /// Nil where it has none.
        package var disk: DiskUse?
        package init(name: String, memory: MemoryUse, disk: DiskUse? = nil) {
            self.name = name
            self.memory = memory
            self.disk = disk
        }
    }

    package struct NameResolution: Sendable, Equatable {
        package var queries: UInt64 = 0
        /// Answered by the cache of names.
        package var cached: UInt64 = 0
        package var failures: UInt64 = 0
        package var entries: UInt64 = 0
        package init() {}
    }

    package struct WorkerRow: Sendable, Equatable {
        package var number: Int
        package var requests: UInt64 = 0
        package var clientsOpen: UInt64 = 0
        package var originsOpen: UInt64 = 0
        package var tunnelsOpen: UInt64 = 0
        package init(number: Int) { self.number = number }
    }
}
