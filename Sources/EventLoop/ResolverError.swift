import CAres

/// Why a name has no address.
package enum ResolverError: Error, Equatable, Sendable {
    /// The name does not exist, or has no address (NXDOMAIN, NODATA).
    case notFound
    /// Not a name that can be asked for.
    case badName
    case timedOut
    /// The server said that it could not, or would not, answer, or answered nonsense.
    case serverFailure
    /// No server took the question.
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
