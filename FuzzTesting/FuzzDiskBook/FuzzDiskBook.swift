import FuzzSupport

@testable import Disk

/// Any input is an entry of the book, or none; what is an entry is the same one when it is written again, and every key has its
/// order key, and back.
///
/// Few inputs would pass the checksum. So the first byte says how the rest is taken: as a key, as an order key, or, with the checksum
/// that belongs to it, as a value of the book under a key that the second byte chooses.

private let keys: [[UInt8]] = [
    Array("http://a.example/b?c".utf8), Array("https://192.0.2.1:8443/".utf8), Array("urn:x".utf8),
    Array("http://a.example/".utf8) + [UInt8](repeating: 0x61, count: 700),
]
private let id = ObjectID(rawValue: 7)

private func checkKey(_ key: [UInt8]) {
    let order = BookOrder.orderKey(of: key)
    let again = unsafe order.withUnsafeBytes { unsafe BookOrder.key(ofOrder: $0) }
    precondition(again == key, "back it is another key")
    precondition(BookOrder.bookKey(id, key).bytes.count <= BookOrder.bookKeyBytesMax, "longer than LMDB takes")
}

private func checkOrder(_ order: [UInt8]) {
    guard let key = unsafe order.withUnsafeBytes({ unsafe BookOrder.key(ofOrder: $0) }) else { return }
    checkKey(key)
}

private func checkValue(_ content: [UInt8], under key: [UInt8]) {
    let bookKey = BookOrder.bookKey(id, key).bytes
    let value = sealed(content, bookKey)
    var shared = BookShared()
    let entry = unsafe bookKey.withUnsafeBytes { bookKey in
        unsafe value.withUnsafeBytes { unsafe BookCodec.entry(bookKey: bookKey, value: $0, sharing: &shared) }
    }
    if let entry {
        precondition(entry.id == id, "the key names another object")
        let (newKey, newValue) = BookCodec.encode(entry)
        let again = unsafe newKey.withUnsafeBytes { key in
            unsafe newValue.withUnsafeBytes { unsafe BookCodec.entry(bookKey: key, value: $0, sharing: &shared) }
        }
        precondition(again == entry, "written again it is another entry")
    }
    let renewalKey = BookCodec.renewalKey(id)
    let renewed = sealed(content, renewalKey)
    let renewal = unsafe renewalKey.withUnsafeBytes { key in
        unsafe renewed.withUnsafeBytes { unsafe BookCodec.renewal(bookKey: key, value: $0) }
    }
    if let renewal {
        precondition(BookCodec.encode(renewal, bookKey: renewalKey) == renewed, "written again it differs")
    }
    let segmentKey = BookCodec.segmentKey(3)
    let segment = sealed(content, segmentKey)
    let state = unsafe segmentKey.withUnsafeBytes { key in
        unsafe segment.withUnsafeBytes { unsafe BookCodec.segment(bookKey: key, value: $0) }
    }
    if let state {
        precondition(state.number == 3, "the key names another segment")
        precondition(BookCodec.encode(state.state, bookKey: segmentKey) == segment, "written again it differs")
    }
    _ = BookMeta.number(UInt64.self, key: BookMeta.idsKey, value: sealed(content, BookMeta.idsKey))
    // As it is, most likely it is none.
    _ = BookMeta.bytes(key: BookMeta.storeKey, value: content)
}

private func sealed(_ content: [UInt8], _ key: [UInt8]) -> [UInt8] {
    var value = content
    BookSeal.append(to: &value, key: key)
    return value
}

@_cdecl("FuzzDiskBook_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        switch bytes.first {
        case nil: break
        case 0: checkKey(Array(bytes.dropFirst()))
        case 1: checkOrder(Array(bytes.dropFirst()))
        default: checkValue(Array(bytes.dropFirst(2)), under: keys[Int(bytes.dropFirst().first ?? 0) % keys.count])
        }
        return 0
    }
}
