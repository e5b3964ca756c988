import CAres

/// Why a name has no address.
package enum ResolverError: Error, Equatable, Sendable {
    /// The name does not exist, or has no address (NXDOMAIN, NODATA).
    case notFound
    /// Not a name that can be asked for.
    case badName
    case timedOut
    /// What a server answered made no sense, or said that it would not answer.
    case serverFailure
    /// No server is left to ask: each could not be reached or failed (SERVFAIL, REFUSED). c-ares tells these not apart.
    case serverUnreachable
    /// Larder has as many questions open as it allows itself.
    case tooManyQueries
    /// c-ares gave another status; see ares_getaddrinfo(3).
    case failed(status: CInt)

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
