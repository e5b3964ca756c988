package import Caching
import Message

/// One stored response as `larder ls` shows it.
package struct ObjectDescription: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        case fresh, stale
        /// It is still arriving.
        case growing
        /// Parts of the body are missing.
        case partial
    }

    package var url: String
    /// The addresses that it was fetched from or served for, if its key is that of a digest: `url` is none of them then. Empty otherwise.
    package var addresses: [String] = []
    package var status: UInt16 = 200
    /// Bytes of the body that are stored.
    package var bytes = 0
    /// The media type without parameters, in lower case; nil if the response has none.
    package var contentType: String?
    /// Seconds since the origin made or confirmed it (RFC 9111 §4.2.3).
    package var ageSeconds: Int64 = 0
    /// Seconds until it becomes stale; negative if it is stale.
    package var ttlSeconds: Int64 = 0
    package var state: State = .fresh
    /// The number of responses that are stored under this URL, including this one.
    package var variants = 1
    /// The request fields that `Vary` names; empty if the response fits any request.
    package var vary: [String] = []
    /// How often it was served.
    package var hits: UInt64 = 0
    package var zone = ""
    package var storage: StoragePolicy = .session

    package init(url: String) { self.url = url }

    /// - Parameter key: of the cache. Its secrets are not shown.
    package init(key: [UInt8], addresses: [[UInt8]] = []) {
        func text(_ uri: [UInt8]) -> String { String(decoding: URIMasking.masked(uri), as: UTF8.self) }
        self.init(url: text(key))
        self.addresses = addresses.map(text)
    }
}
