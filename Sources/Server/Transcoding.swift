import Compression
import Storage

/// Why a stored body can not go out in another coding.
enum TranscodingError: Error, Equatable {
    /// The stored bytes are no gzip, are cut short, or expand beyond what is allowed.
    case inflating(InflateError)
    /// The body broke off.
    case bodyFailed
}

/// The content of a stored body in another coding, made while it goes out to one client.
///
/// Never blocks and never does much at a time: a worker calls `next` when its client has room.
final class Transcoder {
    enum Work {
        case inflate(InflateBounds)
        /// - Parameter level: 1 (fast) to 9 (small).
        case compress(level: Int)
    }

    enum Progress: Equatable {
        /// There is more to do at once.
        case more
        /// All that has come is out; the body still grows.
        case wait
        /// Everything is out.
        case done
    }

    /// Bytes read or written in one step, at most: well under a millisecond of work.
    static let stepBytesMax = 64 << 10

    init(_ work: Work) {}

    /// Appends at most `limit` bytes made of the published bytes from `offset`, which moves on.
    func next(from body: Body, offset: inout Int, limit: Int, into out: inout [UInt8]) throws(TranscodingError)
        -> Progress
    {
        .done
    }
}
