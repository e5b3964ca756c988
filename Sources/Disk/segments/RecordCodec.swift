/// Records as bytes (docs/storage-format.md). The bytes that are decoded may be anything: the result is a record or a
/// `RecordError`.
///
/// An object is: header, key, attributes, head, checksums of the body's blocks, and zeros up to a multiple of 16; then the body,
/// and zeros again. Everything before the body is the *head part*. The checksum in the header covers the head part, and with it
/// the checksums of the body.
package enum RecordCodec {
    /// What the head part of a record contains.
    package enum Content: Sendable {
        /// A packed or a large object.
        case object(StoredHead)
        case drops([DroppedObject])
    }

    // MARK: writing

    /// The length of the head part of an object. Returns nil if it exceeds the limit.
    package static func headPartLength(
        kind: Place.Kind, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], bodyLength: Int
    ) -> Int? {
        precondition(bodyLength >= 0, "a body has no negative length")
        let checksums = kind == .packed ? (bodyLength + blockBytes - 1) / blockBytes * 4 : 0
        let sum = RecordHeader.byteCount + key.count + attributesLength(attributes) + head.count + checksums
        let length = padded(sum, to: kind == .packed ? 16 : 4096)
        return length <= RecordHeader.headPartBytesMax ? length : nil
    }

    /// Appends the head part of a packed object.
    /// - Parameters:
    ///   - checksums: one for each block of the body.
    ///   - offset: where the record will be in the segment; a multiple of 16.
    package static func append(
        packed id: ObjectID, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], checksums: [UInt32],
        bodyLength: Int, in segment: SegmentIdentity, at offset: UInt64, to bytes: inout [UInt8]
    ) throws(RecordError) {
        precondition(checksums.count == (bodyLength + blockBytes - 1) / blockBytes, "each block has one checksum")
        try append(
            .object, id, key, attributes, head, checksums, bodyLength: bodyLength, segment, at: offset, to: &bytes)
    }

    /// Appends the head part of a large object. Its file has no other record.
    /// - Parameter tableIsBehind: whether the table of the blocks stands behind them.
    package static func append(
        large id: ObjectID, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], bodyLength: Int,
        tableIsBehind: Bool = false, in segment: SegmentIdentity, to bytes: inout [UInt8]
    ) throws(RecordError) {
        try append(
            .large, flags: tableIsBehind ? 1 : 0, id, key, attributes, head, [], bodyLength: bodyLength, segment, at: 0,
            to: &bytes)
    }

    /// The most drops that one record can hold.
    package static let dropsMax = (RecordHeader.headPartBytesMax - RecordHeader.byteCount) / DroppedObject.byteCount

    package static func append(
        drops: some Collection<DroppedObject>, storedAt: Int64, in segment: SegmentIdentity, at offset: UInt64,
        to bytes: inout [UInt8]
    ) throws(RecordError) {
        guard drops.count <= dropsMax else { throw .tooLarge }
        let start = bytes.count
        let length = RecordHeader.byteCount + drops.count * DroppedObject.byteCount
        appendHeader(
            .drops, classCode: 0, ObjectID(rawValue: 0), storedAt: storedAt, bodyLength: UInt64(drops.count), key: 0,
            head: 0,
            headPart: length, attributes: 0, to: &bytes)
        for drop in drops {
            bytes.append(number: drop.id.rawValue)
            bytes.append(number: drop.segment)
            bytes.append(zeros: 4)
        }
        seal(&bytes, from: start, in: segment, at: offset)
    }

    /// Makes the head part that begins at `start` belong to this place, and computes its checksum.
    package static func seal(_ bytes: inout [UInt8], from start: Int, in segment: SegmentIdentity, at offset: UInt64) {
        precondition(offset % 16 == 0 && offset / 16 <= UInt64(UInt32.max), "a record begins at a multiple of 16")
        precondition(start >= 0 && start + RecordHeader.byteCount <= bytes.count, "the head part is in the bytes")
        bytes.put(number: segment.number, at: start + 48)
        bytes.put(number: segment.tag, at: start + 52)
        bytes.put(number: UInt32(offset / 16), at: start + 56)
        let length = Int(unsafe bytes.span.bytes.number(at: start + 40, as: UInt32.self))
        precondition(
            length >= RecordHeader.byteCount && start + length <= bytes.count, "the whole head part is in the bytes")
        let checksum = unsafe bytes.withUnsafeBytes {
            unsafe headChecksum(.init(rebasing: $0[start..<start + length]), segment)
        }
        bytes.put(number: checksum, at: start + RecordHeader.checksumOffset)
    }

    // MARK: reading

    /// Decodes the head part of a record.
    /// - Parameters:
    ///   - bytes: they begin with the record; more may follow.
    ///   - segment: where the bytes were found. The record must say the same.
    package static func decode(
        _ bytes: borrowing RawSpan, in segment: SegmentIdentity, at offset: UInt64
    ) throws(RecordError) -> (header: RecordHeader, content: Content) {
        let header = try RecordHeader(bytes)
        guard bytes.byteCount >= header.headPartLength else { throw .incomplete(needs: header.headPartLength) }
        let part = bytes.extracting(0..<header.headPartLength)
        // Compare the place first, which costs nothing: a search meets many bytes that are no record.
        guard header.segment == segment.number, header.storeTag == segment.tag, header.offset == offset else {
            throw .wrongPlace
        }
        guard unsafe part.withUnsafeBytes({ unsafe headChecksum($0, segment) }) == header.checksum else {
            throw .checksum
        }
        return (header, try header.kind == .drops ? .drops(drops(part, header)) : .object(object(part, header)))
    }

    /// Compares a whole body, and the padding behind it, with the checksums.
    /// - Parameter bytes: the body and its padding.
    package static func verify(
        body bytes: UnsafeRawBufferPointer, length: Int, checksums: [UInt32]
    ) throws(RecordError) {
        precondition(length >= 0 && length <= bytes.count, "the body is in the bytes")
        precondition(checksums.count == (length + blockBytes - 1) / blockBytes, "each block has one checksum")
        for block in 0..<checksums.count {
            let range = block * blockBytes..<min((block + 1) * blockBytes, length)
            guard unsafe Checksum.crc32c(.init(rebasing: bytes[range])) == checksums[block] else {
                throw .body(block: block)
            }
        }
        guard unsafe bytes[length...].allSatisfy({ $0 == 0 }) else { throw .padding }
    }
}

extension RecordCodec {
    private static func append(
        _ kind: RecordHeader.Kind, flags: UInt8 = 0, _ id: ObjectID, _ key: [UInt8], _ attributes: ObjectAttributes,
        _ head: [UInt8],
        _ checksums: [UInt32], bodyLength: Int, _ segment: SegmentIdentity, at offset: UInt64, to bytes: inout [UInt8]
    ) throws(RecordError) {
        guard attributes.mediaType.count <= 127, attributes.tags.allSatisfy({ $0.count <= 255 }) else {
            throw .attributes
        }
        let place: Place.Kind = kind == .large ? .large : .packed
        let length = headPartLength(kind: place, key: key, attributes: attributes, head: head, bodyLength: bodyLength)
        guard let length, UInt64(bodyLength) + UInt64(length) + 16 <= RecordHeader.recordBytesMax else {
            throw .tooLarge
        }
        let start = bytes.count
        appendHeader(
            kind, classCode: attributes.storageClass.rawValue, flags: flags, id, storedAt: attributes.storedAt,
            bodyLength: UInt64(bodyLength),
            key: key.count, head: head.count, headPart: length, attributes: attributesLength(attributes), to: &bytes)
        bytes += key
        append(attributes, to: &bytes)
        bytes += head
        for checksum in checksums { bytes.append(number: checksum) }
        precondition(bytes.count <= start + length, "a head part takes the length that was computed for it")
        bytes.append(zeros: start + length - bytes.count)
        seal(&bytes, from: start, in: segment, at: offset)
    }

    private static func appendHeader(
        _ kind: RecordHeader.Kind, classCode: UInt8, flags: UInt8 = 0, _ id: ObjectID, storedAt: Int64,
        bodyLength: UInt64, key: Int,
        head: Int,
        headPart: Int, attributes: Int, to bytes: inout [UInt8]
    ) {
        bytes.append(number: RecordHeader.magic)
        bytes += [RecordHeader.version, kind.rawValue, classCode, flags]
        bytes.append(number: id.rawValue)
        bytes.append(number: storedAt)
        bytes.append(number: bodyLength)
        for length in [key, head, headPart, attributes] { bytes.append(number: UInt32(length)) }
        precondition(headPart % RecordHeader.unit(kind) == 0, "the length of a head part is padded")
        bytes.append(zeros: 16)  // `seal` fills in place and checksum
    }

    /// The checksum of the head part. The field for the checksum itself is left out.
    private static func headChecksum(_ part: UnsafeRawBufferPointer, _ segment: SegmentIdentity) -> UInt32 {
        var checksum = Checksum(seed: segment.seed)
        unsafe checksum.add(.init(rebasing: part[..<RecordHeader.checksumOffset]))
        unsafe checksum.add(.init(rebasing: part[RecordHeader.byteCount...]))
        return checksum.value
    }

    private static func drops(
        _ part: borrowing RawSpan, _ header: RecordHeader
    ) throws(RecordError) -> [DroppedObject] {
        var drops: [DroppedObject] = []
        drops.reserveCapacity(Int(header.bodyLength))
        var at = RecordHeader.byteCount
        for _ in 0..<Int(header.bodyLength) {
            drops.append(DroppedObject(id: ObjectID(rawValue: part.number(at: at)), segment: part.number(at: at + 8)))
            guard part.isZero(at + 12..<at + 16) else { throw .padding }
            at += DroppedObject.byteCount
        }
        return drops
    }

    private static func object(_ part: borrowing RawSpan, _ header: RecordHeader) throws(RecordError) -> StoredHead {
        let keyEnd = RecordHeader.byteCount + header.keyLength
        let headStart = keyEnd + header.attributesLength
        let headEnd = headStart + header.headLength
        let checksumsEnd = headEnd + header.checksumCount * 4
        // `RecordHeader` refuses lengths that contradict each other, so damaged bytes do not reach this line.
        precondition(checksumsEnd <= header.headPartLength, "the parts of a head part lie within it")
        guard part.isZero(checksumsEnd..<header.headPartLength) else { throw .padding }
        guard let storageClass = header.storageClass else { throw .unknownClass(0) }
        let attributes = try RecordCodec.attributes(
            part.extracting(keyEnd..<headStart), storageClass: storageClass, storedAt: header.storedAt)
        let place = Place(
            kind: header.kind == .large ? .large : .packed, segment: header.segment, offset: header.offset,
            headLength: UInt32(header.headPartLength), bodyLength: header.bodyLength)
        return StoredHead(
            id: header.id, place: place, key: part.bytes(RecordHeader.byteCount..<keyEnd), attributes: attributes,
            head: part.bytes(headStart..<headEnd),
            checksums: (0..<header.checksumCount).map { part.number(at: headEnd + $0 * 4) })
    }
}

// MARK: attributes

extension RecordCodec {
    /// Appends the attributes that are not in the header: expires at (8), status (2), media type (1, then its bytes), number of
    /// tags (4), each tag (1, then its bytes).
    private static func append(_ attributes: ObjectAttributes, to bytes: inout [UInt8]) {
        bytes.append(number: attributes.expiresAt)
        bytes.append(number: attributes.status)
        bytes.append(UInt8(attributes.mediaType.count))
        bytes += attributes.mediaType
        bytes.append(number: UInt32(attributes.tags.count))
        for tag in attributes.tags {
            bytes.append(UInt8(tag.count))
            bytes += tag
        }
    }

    private static func attributesLength(_ attributes: ObjectAttributes) -> Int {
        15 + attributes.mediaType.count + attributes.tags.reduce(0) { $0 + 1 + $1.count }
    }

    private static func attributes(
        _ bytes: borrowing RawSpan, storageClass: StorageClass, storedAt: Int64
    ) throws(RecordError) -> ObjectAttributes {
        guard bytes.byteCount >= 15 else { throw .attributes }
        var result = ObjectAttributes(
            storageClass: storageClass, status: bytes.number(at: 8), storedAt: storedAt, expiresAt: bytes.number(at: 0))
        let typeEnd = 11 + Int(bytes.number(at: 10, as: UInt8.self))
        guard typeEnd <= 11 + 127, typeEnd + 4 <= bytes.byteCount else { throw .attributes }
        result.mediaType = bytes.bytes(11..<typeEnd)
        let count = Int(bytes.number(at: typeEnd, as: UInt32.self))
        var at = typeEnd + 4
        // Before memory is reserved: each tag takes at least one byte.
        guard count <= bytes.byteCount - at else { throw .attributes }
        result.tags.reserveCapacity(count)
        for _ in 0..<count {
            guard at < bytes.byteCount else { throw .attributes }
            let end = at + 1 + Int(bytes.number(at: at, as: UInt8.self))
            guard end <= bytes.byteCount else { throw .attributes }
            result.tags.append(bytes.bytes(at + 1..<end))
            at = end
        }
        guard at == bytes.byteCount else { throw .attributes }
        return result
    }
}
