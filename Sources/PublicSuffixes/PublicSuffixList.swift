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

    /// The two parts of the list.
    package enum Section: Sendable {
        /// Suffixes of registries, such as `com` and `co.uk`.
        case registries
        /// Suffixes of companies that give names to their customers, such as `github.io`.
        case companies
    }

    /// The section that lists the domain. Nil: none does; a single label that is in no section does not count as a suffix here.
    ///
    /// - Parameter domain: a name in lower case.
    package func section(of domain: String) -> Section? {
        let listed = PSL_TYPE_NO_STAR_RULE
        if unsafe psl_is_public_suffix2(list, domain, PSL_TYPE_ICANN | listed) != 0 { return .registries }
        return unsafe psl_is_public_suffix2(list, domain, PSL_TYPE_PRIVATE | listed) != 0 ? .companies : nil
    }

    /// - Parameter domain: a name in lower case; international ones as they are in DNS. A name of a single label is a suffix even if the list
    ///   does not have it.
    package func contains(_ domain: String) -> Bool { unsafe psl_is_public_suffix(list, domain) != 0 }
}
