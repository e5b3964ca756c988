/// Why the bytes of a connection are no replies that Larder accepts. The connection cannot be used any more.
package enum RedisProtocolError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The bytes are not of the protocol. The text is what hiredis says, in printable ASCII.
    case malformed(String)
    /// One reply is longer than `RedisReader.replyBytesMax`.
    case replyTooLong
    /// A status, an error, an integer or a length is longer than `RedisReader.lineBytesMax`.
    case lineTooLong
    /// The arrays of one reply announce more elements than `RedisReader.elementCountMax`.
    case tooManyElements
    case outOfMemory

    package var description: String {
        switch self {
        case .malformed(let detail): "the server sent bytes that are not of the protocol of Redis (\(detail))"
        case .replyTooLong: "the server sent a reply that is longer than Larder accepts"
        case .lineTooLong: "the server sent a line that is longer than Larder accepts"
        case .tooManyElements: "the server announced an array with more elements than Larder accepts"
        case .outOfMemory: "there is no memory for a reply of the server"
        }
    }
}
