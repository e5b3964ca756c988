import Disk

/// An object of an archive.
struct ArchivedObject {
    enum Body {
        case packed([UInt8])
        /// A large object: where the first listed block begins in the member. An entry without a checksum has no block.
        case large(start: UInt64, [LargeMember.Entry])
    }

    let head: StoredHead
    let body: Body

    /// The length of the body.
    var length: Int { Int(head.place.bodyLength) }

    /// The limit for a packed object with its head part.
    private static let packedBytesMax: UInt64 = 8 << 20

    /// Reads the record in a member. Returns nil if it is damaged or incomplete.
    /// - Parameter verifiesBlocks: whether the blocks of a large object are read and compared too. If not, the caller does that.
    static func read(
        _ entry: TarEntry, _ reader: TarReader, verifiesBlocks: Bool
    ) throws(TarReader.Failure) -> ArchivedObject? {
        guard entry.size >= UInt64(RecordHeader.byteCount) else { return nil }
        let start = try reader.bytes(of: entry, count: RecordHeader.byteCount)
        let header: RecordHeader
        do throws(RecordError) { header = unsafe try RecordHeader(start.span.bytes) } catch { return nil }
        switch header.kind {
        case .object:
            guard entry.size == header.recordLength, entry.size <= packedBytesMax else { return nil }
            return packed(try reader.bytes(of: entry, count: Int(entry.size)), header)
        case .large: return try large(entry, reader, header, verifiesBlocks: verifiesBlocks)
        case .drops: return nil
        }
    }

    private static func packed(_ bytes: [UInt8], _ header: RecordHeader) -> ArchivedObject? {
        guard let head = decode(bytes) else { return nil }
        let length = Int(header.bodyLength)
        do throws(RecordError) {
            let result = unsafe bytes.withUnsafeBytes { bytes in
                Result { () throws(RecordError) in
                    unsafe try RecordCodec.verify(
                        body: UnsafeRawBufferPointer(rebasing: bytes[header.headPartLength...]), length: length,
                        checksums: head.checksums)
                }
            }
            try result.get()
        } catch {
            return nil
        }
        return ArchivedObject(
            head: head, body: .packed(Array(bytes[header.headPartLength..<header.headPartLength + length])))
    }

    private static func large(
        _ entry: TarEntry, _ reader: TarReader, _ header: RecordHeader, verifiesBlocks: Bool
    ) throws(TarReader.Failure) -> ArchivedObject? {
        let part = UInt64(header.headPartLength)
        guard entry.size >= part + UInt64(LargeMember.footerBytes),
            let head = decode(try reader.bytes(of: entry, count: header.headPartLength))
        else { return nil }
        let footer = try reader.bytes(
            of: entry, from: entry.size - UInt64(LargeMember.footerBytes), count: LargeMember.footerBytes)
        guard let count = LargeMember.count(footer: footer) else { return nil }
        let listBytes = UInt64(count * LargeMember.entryBytes + LargeMember.footerBytes)
        guard entry.size >= part + listBytes else { return nil }
        let list = try reader.bytes(of: entry, from: entry.size - listBytes, count: Int(listBytes))
        let length = Int(header.bodyLength)
        guard let entries = LargeMember.entries(list, length: length),
            entry.size == LargeMember.size(headPart: Int(part), blocks: entries.map(\.block), length: length)
        else { return nil }
        let object = ArchivedObject(head: head, body: .large(start: part, entries))
        guard verifiesBlocks else { return object }
        var isWhole = true
        try object.forEachBlock(entry, reader) { _, bytes in
            if bytes == nil { isWhole = false }
            return isWhole
        }
        return isWhole ? object : nil
    }

    /// Visits the blocks of a large object in order, with nil for a damaged one. Blocks that the object lacks are skipped. Stops when
    /// the visitor returns false.
    func forEachBlock(
        _ entry: TarEntry, _ reader: TarReader, _ visit: (_ block: Int, _ bytes: [UInt8]?) -> Bool
    ) throws(TarReader.Failure) {
        guard case .large(let start, let entries) = body else { return }
        var offset = start
        for listed in entries {
            let count = LargeMember.length(of: listed.block, in: length)
            if let checksum = listed.checksum {
                let bytes = try reader.bytes(of: entry, from: offset, count: count)
                guard visit(listed.block, Checksum.crc32c(bytes) == checksum ? bytes : nil) else { return }
            }
            offset += UInt64(count)
        }
    }

    private static func decode(_ bytes: [UInt8]) -> StoredHead? {
        do throws(RecordError) {
            guard case .object(let head) = unsafe try RecordCodec.decode(bytes.span.bytes, in: .none, at: 0).content
            else {
                return nil
            }
            return head
        } catch {
            return nil
        }
    }
}
