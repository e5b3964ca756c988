package import Caching
package import Message

/// Which stored responses are meant, by a purge or a listing: every condition that is set must hold.
package struct Selection: Sendable, Equatable {
    /// Every variant of one absolute http or https URL; compared in normalised form (RFC 9110 §4.2.3).
    package var url: String?
    /// Every URL that begins with this text, in normalised form.
    package var prefix: String?
    /// One host, whatever scheme and port; `*.example.org` for all below. Lower case.
    package var host: String?
    /// A member of `Surrogate-Key` or `Cache-Tag` of the stored response; compared to the byte.
    package var tag: String?
    /// A media type without parameters, or all of a kind: `text/html`, `image/*`. Lower case.
    package var type: String?
    package var zone: String?
    package var storage: StoragePolicy?
    /// Arrived, or was validated last, at least this long ago.
    package var olderThan: Seconds?

    package init() {}

    /// No condition is set: everything is meant.
    package var isEverything: Bool { self == Selection() }
}
