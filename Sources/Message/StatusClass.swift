/// The class of a status code (RFC 9110 §15), by which a recipient handles a code that it does not know.
package enum StatusClass: UInt8, Sendable, Comparable {
    case informational = 1
    case successful, redirection, clientError, serverError

    /// A code outside of 100 to 599 is invalid, and counts as a server error (§15).
    @inlinable
    package init(_ status: UInt16) {
        switch status {
        case 100..<200: self = .informational
        case 200..<300: self = .successful
        case 300..<400: self = .redirection
        case 400..<500: self = .clientError
        default: self = .serverError
        }
    }

    @inlinable
    package static func < (a: StatusClass, b: StatusClass) -> Bool { a.rawValue < b.rawValue }

    package var isError: Bool { self >= .clientError }
}
