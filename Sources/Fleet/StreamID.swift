import Message

/// The id of an entry of a stream: milliseconds since 1970 by the clock of the server, and a number that tells entries of one millisecond apart.
package struct StreamID: Hashable, Comparable, Sendable {
    package let milliseconds: UInt64
    package let sequence: UInt64

    package init(milliseconds: UInt64, sequence: UInt64) {
        self.milliseconds = milliseconds
        self.sequence = sequence
    }

    /// Before every entry: what a stream that never had one says of its last id.
    package static let zero = StreamID(milliseconds: 0, sequence: 0)

    /// Parses `1700000000000-0`. Returns nil for anything that a server does not write, such as an id without its second number, leading zeros and
    /// numbers beyond 64 bits.
    package init?(_ text: [UInt8]) {
        let parts = text.split(separator: 0x2D, omittingEmptySubsequences: false)
        guard parts.count == 2, let milliseconds = parseDecimal(parts[0]), let sequence = parseDecimal(parts[1])
        else { return nil }
        self.init(milliseconds: milliseconds, sequence: sequence)
        guard self.text == text else { return nil }
    }

    package var text: [UInt8] { Array("\(milliseconds)-\(sequence)".utf8) }

    package static func < (a: StreamID, b: StreamID) -> Bool {
        (a.milliseconds, a.sequence) < (b.milliseconds, b.sequence)
    }
}

/// Up to which entry of which server's stream a node has applied the purges. A node with a disk keeps it there.
package struct StreamPosition: Equatable, Sendable {
    package let epoch: StreamEpoch
    package let id: StreamID

    package init(epoch: StreamEpoch, id: StreamID) {
        self.epoch = epoch
        self.id = id
    }

    /// The form in which a position is kept: the id, a space, and the epoch.
    package var bytes: [UInt8] { id.text + [0x20] + epoch.bytes }

    /// Returns nil if the bytes are no position.
    package init?(_ bytes: [UInt8]) {
        guard let space = bytes.firstIndex(of: 0x20), let id = StreamID(Array(bytes[..<space])),
            let epoch = StreamEpoch(Array(bytes[(space + 1)...]))
        else { return nil }
        self.init(epoch: epoch, id: id)
    }
}

/// Names the data of one server. It changes whenever entries may have been lost with the data that had them.
///
/// The caller makes it of two values: `run_id` of INFO, which changes when the server is started again (without persistence it has lost everything
/// then, with it perhaps the last seconds) and when another one takes over; and the random value of `SharedKeys.epoch`, which the first node sets
/// with SET NX, and which FLUSHALL removes.
package struct StreamEpoch: Hashable, Sendable {
    package let bytes: [UInt8]

    package static let bytesMax = 256

    /// Returns nil if there are no bytes, or more than `bytesMax`.
    package init?(_ bytes: [UInt8]) {
        guard (1...StreamEpoch.bytesMax).contains(bytes.count) else { return nil }
        self.bytes = bytes
    }
}
