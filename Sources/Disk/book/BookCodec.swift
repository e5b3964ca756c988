/// The values of the book as bytes (docs/storage-format.md). Decoding arbitrary bytes returns nil unless they are such a value.
/// A change of these bytes needs another `BookMeta.version`, or an older book would be read wrongly.
enum BookCodec {
    private struct Flags: OptionSet {
        let rawValue: UInt8
        static let isLarge = Flags(rawValue: 1)
        static let isPinned = Flags(rawValue: 2)
        static let hasRenewedHead = Flags(rawValue: 4)
        static let isComplete = Flags(rawValue: 8)
        /// The key in the book is cut. The value contains the whole cache key.
        static let isCut = Flags(rawValue: 16)
        /// An entry with any other bit is damaged or of another version: it is not used.
        static let known = Flags(rawValue: 31)
    }

    // MARK: objects

    static func encode(_ entry: BookEntry) -> (key: [UInt8], value: [UInt8]) {
        let (key, isCut) = BookOrder.bookKey(entry.id, entry.key)
        return (key, encode(entry, bookKey: key, isCut: isCut))
    }

    static func encode(_ entry: BookEntry, bookKey: [UInt8], isCut: Bool) -> [UInt8] {
        let place = entry.place
        precondition(place.offset % 16 == 0 && place.offset >> 4 <= UInt32.max, "a record begins at a multiple of 16")
        var flags: Flags = []
        if place.kind == .large { flags.insert(.isLarge) }
        if entry.hasRenewedHead { flags.insert(.hasRenewedHead) }
        if entry.isComplete { flags.insert(.isComplete) }
        if isCut { flags.insert(.isCut) }
        var value: [UInt8] = []
        value.reserveCapacity(64 + entry.attributes.mediaType.count + (isCut ? entry.key.count : 0))
        append(entry.attributes, flags, to: &value)
        value.appendLittleEndian(place.segment)
        value.appendLittleEndian(UInt32(place.offset >> 4))
        value.appendLittleEndian(place.headLength)
        value.appendLittleEndian(place.bodyLength)
        if isCut { value.append(contentsOf: entry.key) }
        BookSeal.append(to: &value, key: bookKey)
        precondition(
            value.count == 48 + attributesLength(entry.attributes) + (isCut ? entry.key.count : 0),
            "a value has the length of its fields")
        return value
    }

    /// The length of media type and tags in a value.
    private static func attributesLength(_ attributes: ObjectAttributes) -> Int {
        attributes.mediaType.count + attributes.tags.reduce(0) { $0 + 1 + $1.count }
    }

    static func entry(
        bookKey: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, sharing shared: inout BookShared
    ) -> BookEntry? {
        // The seal comes first: without it, any bytes might pass for an entry of some object.
        guard bookKey.count > BookOrder.suffixBytes, let content = unsafe BookSeal.open(value, key: bookKey) else {
            return nil
        }
        var fields = unsafe BookFields(content)
        guard let (attributes, flags) = readAttributes(&fields, sharing: &shared), flags.isSubset(of: .known),
            let segment = fields.number(UInt32.self), let offset = fields.number(UInt32.self),
            let headLength = fields.number(UInt32.self), let bodyLength = fields.number(UInt64.self),
            // No file is longer than this. Code that uses the length can add to it without overflow.
            bodyLength <= UInt64(Int64.max) / 2
        else { return nil }
        let orderBytes = bookKey.count - BookOrder.suffixBytes
        let key: [UInt8]?
        if flags.contains(.isCut) {
            key = fields.array(content.count - fields.position)
        } else {
            key = unsafe BookOrder.key(ofOrder: UnsafeRawBufferPointer(rebasing: bookKey[..<orderBytes]))
        }
        guard let key, fields.isAtEnd, unsafe bookKey[orderBytes] == 0 else { return nil }
        let id = unsafe UInt64(bigEndian: bookKey.loadUnaligned(fromByteOffset: orderBytes + 1, as: UInt64.self))
        let place = Place(
            kind: flags.contains(.isLarge) ? .large : .packed, segment: segment, offset: UInt64(offset) << 4,
            headLength: headLength, bodyLength: bodyLength)
        return BookEntry(
            id: ObjectID(rawValue: id), key: key, place: place, attributes: attributes,
            hasRenewedHead: flags.contains(.hasRenewedHead), isComplete: flags.contains(.isComplete))
    }

    // MARK: renewals

    static func renewalKey(_ id: ObjectID) -> [UInt8] {
        var key: [UInt8] = []
        BookOrder.appendBigEndian(id.rawValue, to: &key)
        return key
    }

    static func encode(_ renewal: BookRenewal, bookKey: [UInt8]) -> [UInt8] {
        var value: [UInt8] = []
        value.reserveCapacity(64 + renewal.head.count)
        append(renewal.attributes, [], to: &value)
        value.append(contentsOf: renewal.head)
        BookSeal.append(to: &value, key: bookKey)
        return value
    }

    static func renewal(bookKey: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> BookRenewal? {
        guard let content = unsafe BookSeal.open(value, key: bookKey) else { return nil }
        var fields = unsafe BookFields(content)
        var shared = BookShared()
        guard let (attributes, flags) = readAttributes(&fields, sharing: &shared),
            flags.isSubset(of: .isPinned), let head = fields.array(content.count - fields.position)
        else { return nil }
        return BookRenewal(attributes: attributes, head: head)
    }

    // MARK: attributes

    private static func append(_ attributes: ObjectAttributes, _ flags: Flags, to value: inout [UInt8]) {
        precondition(attributes.mediaType.count < 128, "a media type has at most 127 bytes")
        var flags = flags
        if attributes.storageClass == .pinned { flags.insert(.isPinned) }
        value.append(flags.rawValue)
        value.append(UInt8(attributes.mediaType.count))
        value.appendLittleEndian(attributes.status)
        value.appendLittleEndian(attributes.storedAt)
        value.appendLittleEndian(attributes.expiresAt)
        value.appendLittleEndian(UInt32(attributes.tags.count))
        value.append(contentsOf: attributes.mediaType)
        for tag in attributes.tags {
            precondition(tag.count < 256, "a tag has at most 255 bytes")
            value.append(UInt8(tag.count))
            value.append(contentsOf: tag)
        }
    }

    private static func readAttributes(
        _ fields: inout BookFields, sharing shared: inout BookShared
    ) -> (ObjectAttributes, Flags)? {
        guard let flags = fields.number(UInt8.self), let typeBytes = fields.number(UInt8.self), typeBytes < 128,
            let status = fields.number(UInt16.self), let storedAt = fields.number(Int64.self),
            let expiresAt = fields.number(Int64.self), let tagCount = fields.number(UInt32.self),
            let mediaType = fields.array(Int(typeBytes), sharing: &shared)
        else { return nil }
        var tags: [[UInt8]] = []
        // Each tag takes at least one byte, so a wrong count fails where the bytes end.
        for _ in 0..<tagCount {
            guard let count = fields.number(UInt8.self), let tag = fields.array(Int(count), sharing: &shared) else {
                return nil
            }
            tags.append(tag)
        }
        let known = Flags(rawValue: flags)
        let attributes = ObjectAttributes(
            storageClass: known.contains(.isPinned) ? .pinned : .permanent, status: status, storedAt: storedAt,
            expiresAt: expiresAt, mediaType: mediaType, tags: tags)
        return (attributes, known)
    }

    // MARK: tags

    /// The tag, a zero, and the number of the object in big-endian order.
    static func tagKey(_ tag: [UInt8], _ id: ObjectID) -> [UInt8] {
        var key = tag
        BookOrder.appendID(id, to: &key)
        return key
    }

    /// The key of the object in the book, with a seal.
    static func encodeTag(_ tagKey: [UInt8], bookKey: [UInt8]) -> [UInt8] {
        var value = bookKey
        BookSeal.append(to: &value, key: tagKey)
        return value
    }

    // MARK: segments

    static func segmentKey(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * UInt32($0))) }
    }

    static func encode(_ segment: BookSegment, bookKey: [UInt8]) -> [UInt8] {
        precondition(segment.isClosed || segment.coveredEnd % 16 == 0, "an open segment is known up to a whole record")
        var value: [UInt8] = []
        value.appendLittleEndian(segment.coveredEnd)
        value.append((segment.isClosed ? 1 : 0) | (segment.isEmptied ? 2 : 0))
        BookSeal.append(to: &value, key: bookKey)
        return value
    }

    static func segment(
        bookKey: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
    ) -> (number: UInt32, state: BookSegment)? {
        guard bookKey.count == 4, let content = unsafe BookSeal.open(value, key: bookKey) else { return nil }
        var fields = unsafe BookFields(content)
        guard let coveredEnd = fields.number(UInt64.self), let flags = fields.number(UInt8.self), flags < 4,
            fields.isAtEnd, flags & 1 != 0 || coveredEnd % 16 == 0
        else { return nil }
        let number = unsafe UInt32(bigEndian: bookKey.loadUnaligned(as: UInt32.self))
        let state = BookSegment(coveredEnd: coveredEnd, isClosed: flags & 1 != 0, isEmptied: flags & 2 != 0)
        return (number, state)
    }
}

/// The entries of the database `meta`. Their keys are ASCII names.
enum BookMeta {
    static let version: UInt32 = 1
    static let formatKey = Array("format".utf8)
    static let storeKey = Array("store".utf8)
    static let idsKey = Array("ids".utf8)
    /// The number of the LMDB transaction that wrote this entry. A root that says another number is not what it claims to be.
    static let commitKey = Array("commit".utf8)
    /// The key of a note of whoever uses the store.
    static func noteKey(_ name: String) -> [UInt8] { Array("note:\(name)".utf8) }

    static func encode<Number: FixedWidthInteger>(_ number: Number, key: [UInt8]) -> [UInt8] {
        var value: [UInt8] = []
        value.appendLittleEndian(number)
        BookSeal.append(to: &value, key: key)
        return value
    }

    static func encode(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        var value = bytes
        BookSeal.append(to: &value, key: key)
        return value
    }

    static func number<Number: FixedWidthInteger>(_ type: Number.Type, key: [UInt8], value: [UInt8]) -> Number? {
        guard let content = bytes(key: key, value: value), content.count == Number.bitWidth / 8 else { return nil }
        return unsafe content.withUnsafeBytes { unsafe Number(littleEndian: $0.loadUnaligned(as: Number.self)) }
    }

    static func bytes(key: [UInt8], value: [UInt8]) -> [UInt8]? {
        unsafe key.withUnsafeBytes { key in
            unsafe value.withUnsafeBytes { value in unsafe BookSeal.open(value, key: key).map { unsafe [UInt8]($0) } }
        }
    }
}
