/// One reply of a Redis server (RESP2).
package indirect enum RedisReply: Equatable, Sendable {
    /// `+OK`: the text without its type and end of line.
    case status([UInt8])
    /// A bulk string.
    case bytes([UInt8])
    case integer(Int64)
    /// The nil bulk string and the nil array: there is no such key, or nothing came in time.
    case nothing
    case list([RedisReply])
    /// `-CODE message`: the server refuses the command.
    case error([UInt8])

    /// The first word of an error, such as NOAUTH, WRONGPASS, NOPERM, OOM, READONLY, LOADING, MOVED and NOGROUP. Returns nil if the reply is no
    /// error.
    package var errorCode: String? {
        guard case .error(let text) = self else { return nil }
        return String(decoding: text.prefix { $0 != 0x20 }, as: UTF8.self)
    }

    /// Returns nil if the reply is no array.
    package var array: [RedisReply]? {
        guard case .list(let elements) = self else { return nil }
        return elements
    }

    /// The bytes of a bulk string or of a status. Returns nil for other replies.
    package var data: [UInt8]? {
        switch self {
        case .status(let bytes), .bytes(let bytes): bytes
        case .integer, .nothing, .list, .error: nil
        }
    }

    /// Returns nil if the reply is no integer.
    package var int: Int64? {
        guard case .integer(let number) = self else { return nil }
        return number
    }

    /// For logs: the text of a status, of a bulk string or of an error. Bytes that are not UTF-8 are replaced. Returns nil for other replies.
    package var text: String? {
        switch self {
        case .status(let bytes), .bytes(let bytes), .error(let bytes): String(decoding: bytes, as: UTF8.self)
        case .integer, .nothing, .list: nil
        }
    }
}
