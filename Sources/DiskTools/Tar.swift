/// The headers of a tar archive: ustar (POSIX.1-1988), with pax records (POSIX.1-2001) for fields that are too small. Handles plain files
/// only; other members are skipped.
package enum Tar {
    package static let blockBytes = 512
    /// The end mark of an archive: two blocks of zeros.
    package static let end = [UInt8](repeating: 0, count: 2 * blockBytes)

    /// A file in the archive.
    package struct Member: Equatable, Sendable {
        package var name: [UInt8]
        package var size: UInt64
        /// Seconds of the wall clock.
        package var modifiedAt: Int64

        package init(name: [UInt8], size: UInt64, modifiedAt: Int64) {
            self.name = name
            self.size = size
            self.modifiedAt = modifiedAt
        }
    }

    /// The length of a file with its padding.
    package static func padded(_ size: UInt64) -> UInt64 { (size + 511) & ~511 }

    // MARK: writing

    /// Everything before the content of a member; a multiple of 512.
    package static func header(of member: Member) -> [UInt8] {
        var records: [UInt8] = []
        if member.name.count > 100 { records += record("path", member.name) }
        if member.size > octalMax { records += record("size", Array("\(member.size)".utf8)) }
        let plain = block(
            name: Array(member.name.prefix(100)), size: min(member.size, octalMax), modifiedAt: member.modifiedAt,
            type: "0")
        guard !records.isEmpty else { return plain }
        let extended = block(
            name: Array("larder-pax".utf8), size: UInt64(records.count), modifiedAt: member.modifiedAt, type: "x")
        let filling = Int(padded(UInt64(records.count))) - records.count
        return extended + records + [UInt8](repeating: 0, count: filling) + plain
    }

    /// The largest number in eleven octal digits.
    private static let octalMax: UInt64 = (1 << 33) - 1

    private static func block(name: [UInt8], size: UInt64, modifiedAt: Int64, type: Unicode.Scalar) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: blockBytes)
        func put(_ value: some Sequence<UInt8>, at offset: Int) {
            for (index, byte) in value.enumerated() { bytes[offset + index] = byte }
        }
        put(name, at: 0)
        put("0000600".utf8, at: 100)
        put("0000000".utf8, at: 108)
        put("0000000".utf8, at: 116)
        put(octal(size, digits: 11), at: 124)
        put(octal(UInt64(clamping: modifiedAt), digits: 11), at: 136)
        put(repeatElement(UInt8(ascii: " "), count: 8), at: 148)
        bytes[156] = UInt8(ascii: type)
        put("ustar\u{0}00".utf8, at: 257)
        put("0000000".utf8, at: 329)
        put("0000000".utf8, at: 337)
        put(octal(UInt64(checksum(of: bytes)), digits: 6) + [0], at: 148)
        return bytes
    }

    private static func octal(_ value: UInt64, digits: Int) -> [UInt8] {
        let text = Array(String(min(value, (1 << (3 * UInt64(digits))) - 1), radix: 8).utf8)
        return [UInt8](repeating: UInt8(ascii: "0"), count: digits - text.count) + text
    }

    /// `LENGTH key=value\n`, where the length counts the whole record.
    private static func record(_ key: String, _ value: [UInt8]) -> [UInt8] {
        let rest = key.utf8.count + value.count + 3
        var length = rest + 1
        while String(length).utf8.count + rest != length { length = String(length).utf8.count + rest }
        return Array("\(length) \(key)=".utf8) + value + [0x0A]
    }

    /// The sum of the bytes of a header, with spaces in place of the sum itself.
    fileprivate static func checksum(of block: some Collection<UInt8>) -> Int {
        block.enumerated().reduce(0) { $0 + ((148..<156).contains($1.offset) ? 32 : Int($1.element)) }
    }

    // MARK: reading

    package enum Failure: Error, Equatable, Sendable {
        /// These bytes are not the header of a member.
        case noHeader
        /// The header contradicts itself.
        case contradiction
    }

    package enum Header: Equatable, Sendable {
        case file(name: [UInt8], size: UInt64, modifiedAt: Int64)
        /// Records of this length, which describe the next member.
        case extended(size: UInt64)
        /// Neither a file nor a description of one: to be skipped.
        case other(size: UInt64)
        /// A block of zeros.
        case end
    }

    /// - Parameter block: 512 bytes.
    package static func readHeader(_ block: [UInt8]) throws(Failure) -> Header {
        precondition(block.count == blockBytes, "a header is one block")
        if block.allSatisfy({ $0 == 0 }) { return .end }
        guard number(block[148..<156]) == UInt64(checksum(of: block)), block[257..<262].elementsEqual("ustar".utf8)
        else { throw .noHeader }
        guard let size = number(block[124..<136]), size <= UInt64(Int64.max) else { throw .contradiction }
        switch block[156] {
        case 0, UInt8(ascii: "0"):
            let name = text(block[0..<100])
            let isPlain = block[262] == 0
            let prefix = isPlain ? text(block[345..<500]) : []
            return .file(
                name: prefix.isEmpty ? name : prefix + [UInt8(ascii: "/")] + name, size: size,
                modifiedAt: Int64(clamping: number(block[136..<148]) ?? 0))
        case UInt8(ascii: "x"): return .extended(size: size)
        case UInt8(ascii: "1")...UInt8(ascii: "6"): return .other(size: 0)
        default: return .other(size: size)
        }
    }

    /// What pax records say about the next member.
    package static func readRecords(_ bytes: [UInt8]) throws(Failure) -> (name: [UInt8]?, size: UInt64?) {
        var rest = bytes[...]
        var (name, size): ([UInt8]?, UInt64?) = (nil, nil)
        while let first = rest.first, first != 0 {
            guard let space = rest.prefix(12).firstIndex(of: 0x20), let length = decimal(rest[..<space]),
                length <= UInt64(rest.count), Int(length) > space - rest.startIndex + 1
            else { throw .contradiction }
            let record = rest[space + 1..<rest.startIndex + Int(length)]
            guard record.last == 0x0A, let sign = record.firstIndex(of: UInt8(ascii: "=")) else {
                throw .contradiction
            }
            let value = record[(sign + 1)...].dropLast()
            switch String(decoding: record[..<sign], as: UTF8.self) {
            case "path": name = Array(value)
            case "size":
                guard let number = decimal(value), number <= UInt64(Int64.max) else { throw .contradiction }
                size = number
            default: break
            }
            rest = rest[(rest.startIndex + Int(length))...]
        }
        return (name, size)
    }

    private static func text(_ field: ArraySlice<UInt8>) -> [UInt8] { Array(field.prefix { $0 != 0 }) }

    /// Octal digits, or the binary number of GNU tar if the first bit is set. Returns nil for anything else.
    private static func number(_ field: ArraySlice<UInt8>) -> UInt64? {
        if let first = field.first, first & 0x80 != 0 {
            guard first == 0x80, field.dropFirst().dropLast(8).allSatisfy({ $0 == 0 }) else { return nil }
            return field.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
        let digits = field.drop { $0 == 0x20 }.prefix { $0 != 0x20 && $0 != 0 }
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x37).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 << 3 | UInt64($1 - 0x30) }
    }

    private static func decimal(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return UInt64(String(decoding: digits, as: UTF8.self))
    }
}
