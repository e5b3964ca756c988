/// The 4096 bytes at the beginning of a segment (docs/storage-format.md, "Segment"):
///
///     0 magic "LARDERSG"   8 version   12 number   16 store, high   24 store, low   32 created   4092 CRC-32C of all before
///
/// Everything else is zero.
package struct SegmentHeader: Equatable, Sendable {
    package static let byteCount = 4096
    static let magic: UInt64 = 0x4753_5245_4452_414C  // "LARDERSG"
    static let version: UInt8 = 1

    package var identity: SegmentIdentity
    /// Seconds of the wall clock.
    package var created: Int64

    package init(identity: SegmentIdentity, created: Int64) {
        self.identity = identity
        self.created = created
    }

    package init(_ bytes: borrowing RawSpan) throws(RecordError) {
        guard bytes.byteCount >= SegmentHeader.byteCount else { throw .incomplete(needs: SegmentHeader.byteCount) }
        guard bytes.number(at: 0, as: UInt64.self) == SegmentHeader.magic else { throw .notARecord }
        let version: UInt8 = bytes.number(at: 8)
        guard version == SegmentHeader.version else { throw .unknownVersion(version) }
        let covered = bytes.extracting(0..<4092)
        guard unsafe covered.withUnsafeBytes({ unsafe Checksum.crc32c($0) }) == bytes.number(at: 4092) else {
            throw .checksum
        }
        guard bytes.isZero(9..<12), bytes.isZero(40..<4092) else { throw .padding }
        identity = SegmentIdentity(
            store: StoreID(high: bytes.number(at: 16), low: bytes.number(at: 24)), number: bytes.number(at: 12))
        created = bytes.number(at: 32)
    }

    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(SegmentHeader.byteCount)
        bytes.append(number: SegmentHeader.magic)
        bytes += [SegmentHeader.version, 0, 0, 0]
        bytes.append(number: identity.number)
        bytes.append(number: identity.store.high)
        bytes.append(number: identity.store.low)
        bytes.append(number: created)
        bytes.append(zeros: 4092 - bytes.count)
        bytes.append(number: Checksum.crc32c(bytes))
        return bytes
    }
}
