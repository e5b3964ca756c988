import CAres

/// Why a name could not be resolved.
package enum ResolverError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The name does not exist, or has no address (NXDOMAIN, NODATA).
    case notFound
    /// The text is not a valid name.
    case badName
    case timedOut
    /// No server was asked, because none has answered lately (`NameServerJudge`).
    case unasked
    /// The answer of a server was malformed, or was a refusal.
    case serverFailure
    /// Every server was unreachable or failed (SERVFAIL, REFUSED). c-ares does not distinguish these.
    case serverUnreachable
    /// The most queries at a time (`Resolver.Options`) are under way.
    case tooManyQueries
    /// c-ares gave another status; see ares_getaddrinfo(3).
    case failed(status: CInt)

    /// No server has said anything about the name. Then expired addresses are used (RFC 8767 §4); an answer that the name does not exist
    /// replaces them.
    var isOfServers: Bool {
        switch self {
        case .timedOut, .unasked, .serverFailure, .serverUnreachable, .tooManyQueries, .failed: true
        case .notFound, .badName: false
        }
    }

    package var description: String {
        switch self {
        case .notFound: "the name does not exist, or has no address"
        case .badName: "it is not a valid name"
        case .timedOut: "no name server has answered in time"
        case .unasked: "no name server has answered lately, and none was asked"
        case .serverFailure: "the name server has failed or refused"
        case .serverUnreachable: "no name server can be reached"
        case .tooManyQueries: "too many names are being looked up"
        case .failed(let status): unsafe String(cString: ares_strerror(status))
        }
    }

    init(status: CInt) {
        self =
            switch status {
            case CInt(ARES_ENOTFOUND), CInt(ARES_ENODATA): .notFound
            case CInt(ARES_EBADNAME), CInt(ARES_EBADQUERY): .badName
            case CInt(ARES_ETIMEOUT): .timedOut
            case CInt(ARES_ESERVFAIL), CInt(ARES_EREFUSED), CInt(ARES_ENOTIMP), CInt(ARES_EFORMERR),
                CInt(ARES_EBADRESP):
                .serverFailure
            case CInt(ARES_ECONNREFUSED): .serverUnreachable
            default: .failed(status: status)
            }
    }
}
