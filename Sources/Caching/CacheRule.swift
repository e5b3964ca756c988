package import Rules

/// One line of `cache.rules`: for which requests and responses it holds, and what becomes of them.
package struct CacheRule: Sendable, Equatable {
    package var conditions: RuleConditions
    /// Name of the zone they go to; nil: the default one.
    package var zone: String?
    package var changes: HandlingChanges
    /// How their key is made; nil: it is the URI.
    package var key: KeyRules?
    /// Position in the list, from 1: what logs and `Cache-Status` call the rule.
    package var number: Int
    /// Line in the configuration file; 0 where it came from none.
    package var line: Int

    package init(
        conditions: RuleConditions = .init(), zone: String? = nil, changes: HandlingChanges = .init(),
        key: KeyRules? = nil, number: Int, line: Int = 0
    ) {
        self.conditions = conditions
        self.zone = zone
        self.changes = changes
        self.key = key
        self.number = number
        self.line = line
    }
}

/// A cache of its own: a budget, and what holds for all that goes there unless a rule says otherwise.
package struct CacheZone: Sendable, Equatable {
    /// `[a-z0-9-]`: stands in `Cache-Status` and in counters.
    package var name: String
    /// Bytes in memory, heads and bookkeeping included.
    package var memory: UInt64
    package var changes: HandlingChanges
    /// Directory and bytes of its disk tier, for when there is one; 0 bytes: memory only.
    package var diskPath: String?
    package var diskSize: UInt64
    /// Line in the configuration file; 0 where it came from none.
    package var line: Int

    package init(
        name: String, memory: UInt64, changes: HandlingChanges = .init(), diskPath: String? = nil,
        diskSize: UInt64 = 0, line: Int = 0
    ) {
        self.name = name
        self.memory = memory
        self.changes = changes
        self.diskPath = diskPath
        self.diskSize = diskSize
        self.line = line
    }

    /// The zone that is always there; its budget is `cache.memory`.
    package static let defaultName = "default"

    /// Bytes of the largest body that is stored here: as said, else an eighth of the budget.
    package var objectSizeMax: UInt64 { changes.objectSizeMax ?? memory / 8 }
}
