/// The field REP of a reply (RFC 1928 §6).
package enum SocksReply: UInt8, CaseIterable, Sendable {
    case succeeded = 0
    case generalFailure = 1
    case notAllowed = 2
    case networkUnreachable = 3
    case hostUnreachable = 4
    case connectionRefused = 5
    case timeToLiveExpired = 6
    case commandNotSupported = 7
    case addressTypeNotSupported = 8

    /// The reply as it is sent. It names no bound address: nothing that a client does with CONNECT depends on it.
    package var bytes: [UInt8] { [5, rawValue, 0, 1, 0, 0, 0, 0, 0, 0] }
}
