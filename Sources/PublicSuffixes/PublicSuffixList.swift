import CPSL

/// The domains below which anybody can have a name, such as `co.uk` and `github.io` (publicsuffix.org).
///
/// Any thread may ask.
@safe package final class PublicSuffixList: @unchecked Sendable {  // libpsl only reads a list that has been loaded
    private let list: OpaquePointer

    /// The newer one of the system's list, which Debian keeps up to date, and the one that is part of libpsl.
    package static let system = PublicSuffixList()

    private init() {
        guard let list = unsafe psl_latest(nil) ?? psl_builtin() else {
            preconditionFailure("libpsl was built without a list")
        }
        unsafe self.list = list
    }

    // Nothing is done for a list that is part of libpsl.
    deinit { unsafe psl_free(list) }

    /// - Parameter domain: a name in lower case; international ones as they are in DNS. A name of a single label is a suffix even if the list
    ///   does not have it.
    package func contains(_ domain: String) -> Bool { unsafe psl_is_public_suffix(list, domain) != 0 }
}
