package import Caching

/// One stored response as `larder ls` tells of it.
package struct ObjectDescription: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        case fresh, stale
        /// It is still arriving.
        case growing
        /// Some of its bytes are there.
        case partial
    }

    package var url: String
    package var status: UInt16 = 200
    /// Of the body, as far as it is there.
    package var bytes = 0
    /// Media type without parameters, lower case; nil where it has none.
    package var contentType: String?
    /// Seconds since the origin made or confirmed it (RFC 9111 §4.2.3).
    package var ageSeconds: Int64 = 0
    /// What is left of its lifetime in seconds; negative where it is stale.
    package var ttlSeconds: Int64 = 0
    package var state: State = .fresh
    /// How many are stored under this URL, this one included.
    package var variants = 1
    /// Names of the request fields it was selected by; empty where any request will do.
    package var vary: [String] = []
    /// How often it was served.
    package var hits: UInt64 = 0
    package var zone = ""
    package var storage: StoragePolicy = .session

    package init(url: String) { self.url = url }
}
