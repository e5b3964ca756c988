package import Authentication
import Framing
import Message

extension AuthenticationReply {
    /// The field line that carries it, with its line end.
    package var fieldLine: [UInt8] {
        var line: [UInt8] = []
        switch self {
        case .information(let value): appendFieldLine(.proxyAuthenticationInfo, value, to: &line)
        case .challenge(let value): appendFieldLine(.proxyAuthenticate, value, to: &line)
        }
        return line
    }

    /// Puts the field line behind the status line of a final head. Every kind of answer gets it this way: those from the store, those
    /// passed on, those of Larder itself, and the one that opens a tunnel.
    ///
    /// - Parameter start: where the head begins in `bytes`. It is complete.
    package func insert(intoHeadAt start: Int, of bytes: inout [UInt8]) {
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) else {
            preconditionFailure("a head begins with a status line")
        }
        bytes.insert(contentsOf: fieldLine, at: end + 1)
    }
}
