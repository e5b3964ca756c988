package import Caching
package import Message

/// Which stored responses a purge or a listing selects. Every condition that is set must hold.
package struct Selection: Sendable, Equatable {
    /// Every variant of one absolute http or https URL; compared in normalised form (RFC 9110 §4.2.3).
    package var url: String?
    /// Selects every URL that begins with this text, in normalised form.
    package var prefix: String?
    /// One host with any scheme and port; `*.example.org` stands for all hosts below. In lower case.
    package var host: String?
    /// A member of `Surrogate-Key` or `Cache-Tag` of the stored response, compared byte by byte.
    package var tag: String?
    /// A media type without parameters, or all of one kind: `text/html`, `image/*`. In lower case.
    package var type: String?
    package var zone: String?
    package var storage: StoragePolicy?
    /// Selects responses that arrived, or were validated, at least this long ago.
    package var olderThan: Seconds?

    package init() {}

    /// Whether no condition is set, so that everything is selected.
    package var isEverything: Bool { self == Selection() }
}
