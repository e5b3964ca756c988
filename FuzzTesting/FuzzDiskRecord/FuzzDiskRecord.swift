import Disk
import FuzzSupport

/// Any input is a record, a header of a segment, or an error; a record that is written again is the same bytes.
///
/// Few inputs would pass the checksum. So the first byte says in which way the rest is taken: as it is, with the checksum put right,
/// or as parts of which a head part with right lengths is made.

private let home = SegmentIdentity(store: StoreID(high: 1, low: 2), number: 3)

private func check(_ bytes: [UInt8]) {
    do throws(RecordError) {
        let (header, content) = try RecordCodec.decode(unsafe bytes.span.bytes, in: home, at: 0)
        precondition(header.headPartLength <= bytes.count, "more than there is")
        guard case .object(let head) = content else { return }
        let again = try written(head, tableIsBehind: header.tableIsBehind)
        precondition(again == Array(bytes[..<header.headPartLength]), "written again it differs")
    } catch {}
    do throws(RecordError) { _ = try LargeFile.decode(bytes, home) } catch {}
    do throws(RecordError) { _ = try SegmentHeader(unsafe bytes.span.bytes) } catch {}
}

private func written(_ head: StoredHead, tableIsBehind: Bool) throws(RecordError) -> [UInt8] {
    var bytes: [UInt8] = []
    switch head.place.kind {
    case .packed:
        try RecordCodec.append(
            packed: head.id, key: head.key, attributes: head.attributes, head: head.head, checksums: head.checksums,
            bodyLength: Int(head.place.bodyLength), in: home, at: 0, to: &bytes)
    case .large:
        try RecordCodec.append(
            large: head.id, key: head.key, attributes: head.attributes, head: head.head,
            bodyLength: Int(head.place.bodyLength), tableIsBehind: tableIsBehind, in: home, to: &bytes)
    }
    return bytes
}

/// With the checksum that belongs to it, where its length lets it have one.
private func sealed(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.count >= RecordHeader.byteCount else { return bytes }
    var bytes = bytes
    let length = (0..<4).reduce(0) { $0 | Int(bytes[40 + $1]) << (8 * $1) }
    guard length >= RecordHeader.byteCount, length <= bytes.count else { return bytes }
    RecordCodec.seal(&bytes, from: 0, in: home, at: 0)
    return bytes
}

/// Kind, class, body's length (2 bytes), key's length, blocks; then key, attributes and head as one.
private func made(of bytes: [UInt8]) -> [UInt8] {
    guard bytes.count >= 6 else { return [] }
    let rest = Array(bytes[6...])
    let kind = bytes[0]
    let keyLength = kind == 2 ? 0 : min(Int(bytes[4]), rest.count)
    let drops = kind == 2 ? Int(bytes[2]) : 0
    let bodyLength = kind == 2 ? drops : Int(bytes[2]) | Int(bytes[3]) << 8 | Int(bytes[5] & 3) << 16
    let checksums = kind == 1 ? (bodyLength + blockBytes - 1) / blockBytes * 4 : drops * DroppedObject.byteCount
    // The attributes end where the input says, by its last byte.
    let attributes = kind == 2 ? 0 : min(Int(rest.last ?? 0), rest.count - keyLength)
    let head = kind == 2 ? 0 : rest.count - keyLength - attributes
    let unit = kind == 3 ? 4096 : 16
    let length = (RecordHeader.byteCount + keyLength + attributes + head + checksums + unit - 1) / unit * unit
    var result: [UInt8] = Array("LREC".utf8) + [1, kind, bytes[1], 0] + [UInt8](repeating: 7, count: 16)
    result += (0..<8).map { UInt8(truncatingIfNeeded: bodyLength >> (8 * $0)) }
    for number in [keyLength, head, length, attributes] {
        result += (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    result += [UInt8](repeating: 0, count: 16) + rest
    result += [UInt8](repeating: 0, count: max(0, length - result.count))
    return sealed(result)
}

@_cdecl("FuzzDiskRecord_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let rest = Array(bytes.dropFirst())
        switch bytes.first {
        case nil: break
        case 0: check(rest)
        case 1: check(sealed(rest))
        default: check(made(of: rest))
        }
        return 0
    }
}
