package import Authentication
import Message

/// Names one request of this process, from its first byte on: in the access log, in an error response, in the debug log and among the transfers.
///
/// It is a number, which costs a request nothing. `RequestIDText` makes its text, where somebody is going to read it.
@usableFromInline
package struct RequestID: Hashable, Sendable {
    /// The worker in the upper 16 bits, below them the number of the request in that worker, from 1.
    @usableFromInline package let number: UInt64

    @inlinable
    package init(number: UInt64) { self.number = number }

    /// What comes before the first request of a worker.
    package init(before worker: Int) { number = UInt64(truncatingIfNeeded: worker) << 48 }

    /// The next one of the same worker.
    @inlinable
    package var next: RequestID { RequestID(number: number &+ 1) }
}

/// What the IDs of one process look like: 16 hexadecimal digits, which are a keyed hash of the number.
///
/// Clients see IDs. Numbers in a row would tell each of them how much the others do, and since when the process runs; a hash with a key of this process alone
/// tells nothing. Two requests could have the same digits, which is about as likely as to guess 64 bits.
package struct RequestIDText: Sendable {
    package static let length = 16
    private let hash: SipHash

    /// - Parameter hash: its key is random, and nothing else is hashed with it.
    package init(_ hash: SipHash) { self.hash = hash }

    package func text(of id: RequestID) -> String {
        var bytes: [UInt8] = []
        bytes.append(addingCapacity: RequestIDText.length) { append(id, to: &$0) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the digits, for which there must be room.
    func append(_ id: RequestID, to text: inout OutputSpan<UInt8>) {
        var rest = hash.half(of: id.number)
        for _ in 0..<RequestIDText.length {
            rest = rest << 4 | rest >> 60
            text.append(hexadecimalDigit(UInt8(truncatingIfNeeded: rest & 15)))
        }
    }
}
