/// Names one write of a record: 128 random bits, which the caller draws for each write.
///
/// The parts of a body are sealed together with it. So parts of two writes of the same response cannot be mixed.
package struct SharedRecordID: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// 16 bytes, little endian.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendLittleEndian(low)
        bytes.appendLittleEndian(high)
        return bytes
    }
}
