/// The layout of the head part, version 2. Numbers are little endian.
///
/// | offset | bytes | what |
/// |---|---|---|
/// | 0 | 4 | `LSHR` |
/// | 4 | 1 | version |
/// | 5 | 1 | 0 |
/// | 6 | 2 | status |
/// | 8 | 4 | bytes of the head part, its code included |
/// | 12 | 16 | id |
/// | 28 | 8 | stored at |
/// | 36 | 8 | expires at |
/// | 44 | 8 | written, by the server |
/// | 52 | 8 | written, by the node |
/// | 60 | 4 | bytes of the body |
/// | 64 | 4 | bytes of the key |
/// | 68 | 4 | bytes of the head |
/// | 72 | 1 | bytes of the name of the zone |
/// | 73 | 1 | bytes of the media type |
/// | 74 | 1 | tags |
/// | 75 | 1 | bytes of the position |
/// | 76 | | zone, position, media type, tags (one byte with the length, then the tag), key, head, short body |
/// | end − 32 | 32 | code over all bytes before it |
extension SharedRecord {
    package static let magic = Array("LSHR".utf8)
    package static let version: UInt8 = 2
    static let fixedByteCount = 76

    /// - Returns: the value of the head part, and which parts of the body belong to it. The caller seals each with `sealPart`, and writes the head
    ///   part last, so that whoever finds it finds the parts too.
    package func encode(hash: some FleetHash) -> (head: [UInt8], parts: [SharedPart]) {
        let tagBytes = tags.reduce(0) { $0 + 1 + $1.count }
        let length =
            SharedRecord.fixedByteCount + zone.utf8.count + position.bytes.count + mediaType.count + tagBytes
            + key.count + head.count
            + shortBody.count + codeByteCount
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        bytes += SharedRecord.magic + [SharedRecord.version, 0]
        bytes.appendLittleEndian(status)
        bytes.appendLittleEndian(UInt32(length))
        bytes += id.bytes
        bytes.appendLittleEndian(storedAt)
        bytes.appendLittleEndian(expiresAt)
        bytes.appendLittleEndian(written.byServer)
        bytes.appendLittleEndian(written.byNode)
        for count in [bodyLength, key.count, head.count] { bytes.appendLittleEndian(UInt32(count)) }
        bytes += [UInt8(zone.utf8.count), UInt8(mediaType.count), UInt8(tags.count)]
        bytes.append(UInt8(position.bytes.count))
        bytes += zone.utf8
        bytes += position.bytes
        bytes += mediaType
        for tag in tags { bytes += [UInt8(tag.count)] + tag }
        bytes += key
        bytes += head
        bytes += shortBody
        bytes += hash.code(for: .record, bytes)
        precondition(bytes.count == length, "the length counts every field")
        return (bytes, parts)
    }

    /// - Parameters:
    ///   - zone: the zone that was asked for.
    ///   - key: the cache key that was asked for.
    package static func decode(
        _ bytes: [UInt8], zone: String, key: [UInt8], hash: some FleetHash
    ) throws(SharedRecordError) -> SharedRecord {
        let record = try read(try verified(bytes, hash))
        guard record.zone == zone, record.key == key else { throw .wrongKey }
        return record
    }

    /// - Returns: the bytes before the code, which is right.
    private static func verified(
        _ bytes: [UInt8], _ hash: some FleetHash
    ) throws(SharedRecordError) -> ArraySlice<UInt8> {
        let start = bytes.prefix(magic.count)
        guard start == magic.prefix(start.count), !bytes.isEmpty else { throw .notARecord }
        guard bytes.count > magic.count else { throw .truncated }
        guard bytes[magic.count] == version else { throw .unknownVersion }
        var scanner = RecordScanner(bytes.dropFirst(8))
        guard let length = scanner.number(UInt32.self) else { throw .truncated }
        guard bytes.count >= length else { throw .truncated }
        guard bytes.count == length else { throw .trailingBytes }
        guard bytes.count >= fixedByteCount + codeByteCount else { throw .malformed }
        let content = bytes.dropLast(codeByteCount)
        guard areEqualCodes(hash.code(for: .record, content), bytes.suffix(codeByteCount)) else { throw .wrongCode }
        return content
    }

    private static func read(_ content: ArraySlice<UInt8>) throws(SharedRecordError) -> SharedRecord {
        var scanner = RecordScanner(content.dropFirst(magic.count + 1))
        guard scanner.number(UInt8.self) == 0, let status = scanner.number(UInt16.self),
            scanner.number(UInt32.self) != nil, let low = scanner.number(UInt64.self),
            let high = scanner.number(UInt64.self), let storedAt = scanner.number(Int64.self),
            let expiresAt = scanner.number(Int64.self), let byServer = scanner.number(Int64.self),
            let byNode = scanner.number(Int64.self), let bodyLength = scanner.number(UInt32.self),
            let keyLength = scanner.number(UInt32.self), let headLength = scanner.number(UInt32.self),
            let zoneLength = scanner.number(UInt8.self), let mediaTypeLength = scanner.number(UInt8.self),
            let tagCount = scanner.number(UInt8.self), let positionLength = scanner.number(UInt8.self),
            let zoneBytes = scanner.bytes(Int(zoneLength)), let zone = String(validating: zoneBytes, as: UTF8.self),
            let position = scanner.bytes(Int(positionLength)).flatMap({ StreamPosition($0) }),
            let mediaType = scanner.bytes(Int(mediaTypeLength))
        else { throw .malformed }
        var tags: [[UInt8]] = []
        for _ in 0..<tagCount {
            guard let length = scanner.number(UInt8.self), let tag = scanner.bytes(Int(length)) else {
                throw .malformed
            }
            tags.append(tag)
        }
        let shortLength = bodyLength <= shortBodyBytesMax ? Int(bodyLength) : 0
        guard let key = scanner.bytes(Int(keyLength)), let head = scanner.bytes(Int(headLength)),
            let shortBody = scanner.bytes(shortLength), scanner.rest.isEmpty,
            let record = SharedRecord(
                id: SharedRecordID(high: high, low: low), zone: zone, key: key, status: status, storedAt: storedAt,
                expiresAt: expiresAt, written: Moment(byServer: byServer, byNode: byNode), position: position,
                mediaType: mediaType, tags: tags, head: head,
                bodyLength: Int(bodyLength),
                shortBody: shortBody)
        else { throw .malformed }
        return record
    }

    // MARK: parts of the body

    /// - Parameter bytes: those of the part.
    /// - Returns: the value of the part: a code, and the bytes.
    package func sealPart(_ part: SharedPart, _ bytes: [UInt8], hash: some FleetHash) -> [UInt8] {
        precondition(bytes.count == part.range.count, "a part has the bytes of its range")
        return code(of: part, bytes[...], hash) + bytes
    }

    /// - Parameter value: what Redis has under the name of the part.
    /// - Returns: the bytes of the part, a slice of the value.
    package func openPart(
        _ part: SharedPart, _ value: [UInt8], hash: some FleetHash
    ) throws(SharedRecordError) -> ArraySlice<UInt8> {
        guard value.count >= codeByteCount + part.range.count else { throw .truncated }
        guard value.count == codeByteCount + part.range.count else { throw .trailingBytes }
        let bytes = value.dropFirst(codeByteCount)
        guard areEqualCodes(code(of: part, bytes, hash), value.prefix(codeByteCount)) else { throw .wrongCode }
        return bytes
    }

    private func code(of part: SharedPart, _ bytes: ArraySlice<UInt8>, _ hash: some FleetHash) -> [UInt8] {
        var name = id.bytes
        name.appendLittleEndian(UInt32(part.number))
        return hash.code(for: .part, behind: name, bytes)
    }
}
