/// The 64 bytes at the beginning of every record (docs/storage-format.md, "Record"):
///
///     0 magic "LREC"   4 version   5 kind   6 class   7 flags   8 object id   16 stored at   24 body bytes
///     32 key bytes   36 head bytes   40 bytes of the head part   44 attribute bytes   48 segment   52 store tag
///     56 offset in the segment, in units of 16   60 CRC-32C of the head part, this field left out
///
/// A record says where it is. Bytes found at any other place, or in another store, are no record.
package struct RecordHeader: Equatable, Sendable {
    package static let byteCount = 64
    static let magic: UInt32 = 0x4345_524C  // "LREC"
    static let version: UInt8 = 1
    static let checksumOffset = 60

    /// The limit of a head part: the index has 16 bits for its length, in units of 16.
    package static let headPartBytesMax = 0xFFFF * 16
    /// The limit of a record: the index has 32 bits for its length, in units of 16.
    package static let recordBytesMax: UInt64 = 0xFFFF_FFFF * 16

    package enum Kind: UInt8, Sendable, CaseIterable {
        /// An object, followed by its body.
        case object = 1
        /// A list of objects that were removed.
        case drops = 2
        /// The head of a large object, which has a file of its own.
        case large = 3
    }

    package var kind: Kind
    /// Nil if the record is no object.
    package var storageClass: StorageClass?
    /// Of a large object: the table of its blocks stands behind them (`LargeLayout`). The lowest flag; there is no other.
    package var tableIsBehind: Bool
    package var id: ObjectID
    /// Seconds of the wall clock.
    package var storedAt: Int64
    /// In a drop record: the number of drops.
    package var bodyLength: UInt64
    package var keyLength: Int
    package var headLength: Int
    package var attributesLength: Int
    /// The length of everything before the body: header, key, attributes, head, checksums, padding.
    package var headPartLength: Int
    package var segment: UInt32
    package var storeTag: UInt32
    package var offset: UInt64
    package var checksum: UInt32

    /// The length of the whole record. For a large object, that of the head part alone.
    package var recordLength: UInt64 {
        kind == .object ? UInt64(headPartLength) + padded(bodyLength, to: 16) : UInt64(headPartLength)
    }

    /// The number of checksums behind the head: one for each block.
    var checksumCount: Int { kind == .object ? Int((bodyLength + UInt64(blockBytes) - 1) / UInt64(blockBytes)) : 0 }

    /// The length of a head part is a multiple of this.
    static func unit(_ kind: Kind) -> Int { kind == .large ? 4096 : 16 }

    /// Decodes the header alone. Its checksum covers the bytes that follow and is not compared here.
    package init(_ bytes: borrowing RawSpan) throws(RecordError) {
        guard bytes.byteCount >= RecordHeader.byteCount else { throw .incomplete(needs: RecordHeader.byteCount) }
        guard bytes.number(at: 0, as: UInt32.self) == RecordHeader.magic else { throw .notARecord }
        let version: UInt8 = bytes.number(at: 4)
        guard version == RecordHeader.version else { throw .unknownVersion(version) }
        guard let kind = Kind(rawValue: bytes.number(at: 5)) else { throw .unknownKind(bytes.number(at: 5)) }
        self.kind = kind
        let classCode: UInt8 = bytes.number(at: 6)
        storageClass = StorageClass(rawValue: classCode)
        guard kind == .drops ? classCode == 0 : storageClass != nil else { throw .unknownClass(classCode) }
        let flags: UInt8 = bytes.number(at: 7)
        guard flags == 0 || (flags == 1 && kind == .large) else { throw .unknownFlags(flags) }
        tableIsBehind = flags == 1
        id = ObjectID(rawValue: bytes.number(at: 8))
        storedAt = bytes.number(at: 16)
        bodyLength = bytes.number(at: 24)
        keyLength = Int(bytes.number(at: 32, as: UInt32.self))
        headLength = Int(bytes.number(at: 36, as: UInt32.self))
        headPartLength = Int(bytes.number(at: 40, as: UInt32.self))
        attributesLength = Int(bytes.number(at: 44, as: UInt32.self))
        segment = bytes.number(at: 48)
        storeTag = bytes.number(at: 52)
        offset = UInt64(bytes.number(at: 56, as: UInt32.self)) * 16
        checksum = bytes.number(at: 60)
        try checkLengths()
    }

    /// These sums cannot overflow: they add four lengths of 32 bits, and a body of less than 2³⁶ bytes.
    private func checkLengths() throws(RecordError) {
        guard bodyLength < RecordHeader.recordBytesMax, headPartLength <= RecordHeader.headPartBytesMax,
            recordLength <= RecordHeader.recordBytesMax
        else { throw .lengths }
        let tail = kind == .drops ? Int(bodyLength) * DroppedObject.byteCount : checksumCount * 4
        let sum = RecordHeader.byteCount + keyLength + attributesLength + headLength + tail
        guard headPartLength == padded(sum, to: RecordHeader.unit(kind)) else { throw .lengths }
        guard kind != .drops || (keyLength == 0 && attributesLength == 0 && headLength == 0) else { throw .lengths }
    }
}

/// Why bytes are not the record that should be there.
package enum RecordError: Error, Equatable, Sendable, CustomStringConvertible {
    /// They do not begin like a record.
    case notARecord
    /// They are all zero: the file of a large object that was still growing.
    case unwritten
    case unknownVersion(UInt8)
    case unknownKind(UInt8)
    case unknownClass(UInt8)
    case unknownFlags(UInt8)
    /// The lengths contradict each other or exceed a limit.
    case lengths
    /// There are fewer bytes than the record has.
    case incomplete(needs: Int)
    /// The checksum of the head part is wrong.
    case checksum
    /// The record says that it belongs to another place or another store.
    case wrongPlace
    case attributes
    /// The padding is not zero.
    case padding
    /// The checksum of this block of the body is wrong.
    case body(block: Int)
    /// The record to be written exceeds the limit of a head part.
    case tooLarge

    package var description: String {
        switch self {
        case .notARecord: "it does not begin like a record"
        case .unwritten: "it has not been written"
        case .unknownVersion(let value): "version \(value) is not known"
        case .unknownKind(let value): "kind \(value) is not known"
        case .unknownClass(let value): "class \(value) is not known"
        case .unknownFlags(let value): "the flags \(value) are not known"
        case .lengths: "the lengths contradict each other or exceed a limit"
        case .incomplete(let needs): "it ends before its \(needs) bytes"
        case .checksum: "the checksum of the head is wrong"
        case .wrongPlace: "it belongs to another place or store"
        case .attributes: "the attributes are malformed"
        case .padding: "the padding is not zero"
        case .body(let block): "the checksum of block \(block) of the body is wrong"
        case .tooLarge: "it is too large"
        }
    }
}

/// An object that was removed, and the segment of its record. Once that segment is deleted, the drop is needless.
package struct DroppedObject: Hashable, Sendable {
    package static let byteCount = 16
    package var id: ObjectID
    package var segment: UInt32

    package init(id: ObjectID, segment: UInt32) {
        self.id = id
        self.segment = segment
    }
}
