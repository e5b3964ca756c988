package import Rules

/// One rule of `cache.rules`: which requests and responses it matches, and how they are handled.
package struct CacheRule: Sendable, Equatable {
    package var conditions: RuleConditions
    /// The name of the zone for these requests. Nil stands for the default zone.
    package var zone: String?
    package var changes: HandlingChanges
    /// How the key of these requests is made. Nil if it is the URI.
    package var key: KeyRules?
    /// What the rule is about, for readers. Nil if nobody said.
    package var note: String?
    /// The name of the recipe that the rule comes from. Nil for a rule of `cache.rules`.
    package var recipe: String?
    /// The position in the list, from 1. Rules of recipes follow those of `cache.rules`. Logs and `larder explain` use it.
    package var number: Int
    /// The line in the configuration file. Zero if the rule does not come from a file.
    package var line: Int

    package init(
        conditions: RuleConditions = .init(), zone: String? = nil, changes: HandlingChanges = .init(),
        key: KeyRules? = nil, note: String? = nil, recipe: String? = nil, number: Int, line: Int = 0
    ) {
        self.conditions = conditions
        self.zone = zone
        self.changes = changes
        self.key = key
        self.note = note
        self.recipe = recipe
        self.number = number
        self.line = line
    }
}

/// A separate cache: its memory and disk, and the settings for all of its requests unless a rule overrides them.
package struct CacheZone: Sendable, Equatable {
    /// Matches `[a-z0-9-]`. It is shown in `Cache-Status` and in counters.
    package var name: String
    /// The bytes in memory, including heads and bookkeeping.
    package var memory: UInt64
    package var changes: HandlingChanges
    /// The directory of the disk tier, and the most bytes that it may take. With zero bytes there is memory only.
    package var diskPath: String?
    package var diskSize: UInt64
    /// The line in the configuration file. Zero if the zone does not come from a file.
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

    /// The name of the zone that always exists. Its memory is `cache.memory`.
    package static let defaultName = "default"

    /// The largest body that is stored in the zone, in bytes. If no setting says otherwise, an eighth of memory.
    package var objectSizeMax: UInt64 { changes.objectSizeMax ?? memory / 8 }
}
