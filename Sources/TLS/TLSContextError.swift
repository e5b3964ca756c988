/// Why a context could not be made. The configuration has to be corrected.
package enum TLSContextError: Error, Equatable {
    case authoritiesUnreadable(reason: String)
    case certificateUnusable(reason: String)
    case privateKeyUnusable(reason: String)
    case outOfMemory
}

extension TLSContextError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .authoritiesUnreadable(let reason): "the trusted authorities cannot be read: \(reason)"
        case .certificateUnusable(let reason): "the certificate cannot be used: \(reason)"
        case .privateKeyUnusable(let reason): "the private key cannot be used: \(reason)"
        case .outOfMemory: "there is no memory for TLS"
        }
    }
}
