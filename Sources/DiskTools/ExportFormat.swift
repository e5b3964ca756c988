import Disk

/// The members of an export, which is a tar archive (docs/disk.md):
///
///     larder-export            text: version, zone, store, selection
///     objects/ID/URL.record    one record each, with the identity `none`; for large objects see `LargeMember`
///     larder-export.sha256     text: the `ExportDigest` of everything before it
enum ExportFormat {
    static let version = 1
    static let headName = Array("larder-export".utf8)
    static let digestName = Array("larder-export.sha256".utf8)
    static let objectPrefix = Array("objects/".utf8)

    /// The first member. It is the same for the same export, so that an interrupted export is recognised.
    static func head(zone: String, store: String, selection: String) -> [UInt8] {
        Array("larder export \(version)\nzone \(zone)\nstore \(store)\nselection \(selection)\n".utf8)
    }

    /// The version of an export. Returns nil if this is none.
    static func version(of head: [UInt8]) -> Int? {
        let start = Array("larder export ".utf8)
        guard head.starts(with: start), let end = head.firstIndex(of: 0x0A) else { return nil }
        return Int(String(decoding: head[start.count..<end], as: UTF8.self))
    }

    /// The last member.
    static func digest(_ digest: ExportDigest) -> [UInt8] {
        Array(
            "larder export digest 1\npiece \(ExportDigest.pieceBytes)\nbytes \(digest.byteCount)\nsha256 \(digest.value)\n"
                .utf8)
    }

    /// A small member with header, text and padding.
    static func member(_ name: [UInt8], _ text: [UInt8]) -> [UInt8] {
        let bytes = Tar.header(of: Tar.Member(name: name, size: UInt64(text.count), modifiedAt: 0)) + text
        return bytes + [UInt8](repeating: 0, count: Int(Tar.padded(UInt64(bytes.count))) - bytes.count)
    }

    /// A name that people can read, and that is a valid path wherever it is unpacked. The number makes it unique.
    static func name(of id: ObjectID, key: [UInt8]) -> [UInt8] {
        let digits = String(id.rawValue, radix: 16)
        var name = objectPrefix + Array(repeatElement(UInt8(ascii: "0"), count: 16 - digits.utf8.count)) + digits.utf8
        for part in key.prefix(200).split(separator: UInt8(ascii: "/")) {
            name.append(UInt8(ascii: "/"))
            let isDots = part.allSatisfy { $0 == UInt8(ascii: ".") }
            for byte in part { name += isPlain(byte) && !isDots ? [byte] : escaped(byte) }
        }
        return name + Array(".record".utf8)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._~:?&=%+,;@!$()[]".utf8.contains(byte)
        }
    }

    private static func escaped(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}

/// The blocks of a large object in an archive. The head part, a multiple of 4096 bytes, is followed by:
///
///     the blocks that are present, in order: each of 64 KiB, the last one up to the end of the object
///     for each of them: 4 number of the block, with the highest bit set if it could not be read   4 CRC-32C of its bytes
///     4 "LBLK"   4 how many   4 CRC-32C of the entries and of these two numbers   4 zero
///
/// The list comes last because a block may turn out to be damaged after the length of the member was written.
enum LargeMember {
    static let footerBytes = 16
    static let entryBytes = 8
    private static let magic: UInt32 = 0x4B4C_424C  // "LBLK"
    private static let unreadable: UInt32 = 1 << 31

    struct Entry: Equatable {
        var block: Int
        /// Nil if the block could not be read: zeros take its place.
        var checksum: UInt32?
    }

    static func length(of block: Int, in length: Int) -> Int {
        precondition(block >= 0 && block * blockBytes < length, "the object has this block")
        return min(blockBytes, length - block * blockBytes)
    }

    /// The length of the member: head part, blocks, list.
    static func size(headPart: Int, blocks: [Int], length: Int) -> UInt64 {
        let bytes = blocks.reduce(0) { $0 + Self.length(of: $1, in: length) }
        return UInt64(headPart + bytes + blocks.count * entryBytes + footerBytes)
    }

    static func list(_ entries: [Entry]) -> [UInt8] {
        var bytes: [UInt8] = []
        for entry in entries {
            bytes.append(number: UInt32(entry.block) | (entry.checksum == nil ? unreadable : 0))
            bytes.append(number: entry.checksum ?? 0)
        }
        bytes.append(number: magic)
        bytes.append(number: UInt32(entries.count))
        bytes.append(number: Checksum.crc32c(bytes))
        bytes.append(zeros: 4)
        return bytes
    }

    /// The number of entries according to the footer. Returns nil if this is no footer.
    static func count(footer: [UInt8]) -> Int? {
        let bytes = unsafe footer.span.bytes
        guard footer.count == footerBytes, bytes.number(at: 0, as: UInt32.self) == magic else { return nil }
        let count: UInt32 = bytes.number(at: 4)
        return count <= UInt32(1 << 20) ? Int(count) : nil
    }

    /// - Parameter list: entries and footer. Returns nil if they are damaged or do not fit such an object.
    static func entries(_ list: [UInt8], length: Int) -> [Entry]? {
        guard list.count >= footerBytes, let count = count(footer: Array(list.suffix(footerBytes))),
            list.count == count * entryBytes + footerBytes
        else { return nil }
        let bytes = unsafe list.span.bytes
        guard Checksum.crc32c(Array(list.dropLast(8))) == bytes.number(at: list.count - 8, as: UInt32.self) else {
            return nil
        }
        var entries: [Entry] = []
        for index in 0..<count {
            let block: UInt32 = bytes.number(at: index * entryBytes)
            let checksum: UInt32 = bytes.number(at: index * entryBytes + 4)
            let entry = Entry(
                block: Int(block & ~unreadable), checksum: block & unreadable == 0 ? checksum : nil)
            guard entry.block > entries.last?.block ?? -1, entry.block * blockBytes < length else { return nil }
            entries.append(entry)
        }
        return entries
    }
}
