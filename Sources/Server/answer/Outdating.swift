import Message
import Storage

extension Tiers {
    /// Has the variants of a key that came, or were validated, until a time validated before they are served again.
    ///
    /// - Parameter loads: whether those that are on the disk alone count. Blocks then.
    func outdate(_ key: StorageKey, _ keyBytes: [UInt8], until time: WallTime, loads: Bool) {
        if loads { _ = load(key, keyBytes, waits: true) }
        let records = unsafe keyBytes.withUnsafeBytes { unsafe lookup(key, $0) }
        for case let record as StoredResponse in records
        where record.cached.responseTime <= time && !record.terms.isOutdated {
            _ = replace(record, with: record.outdated)
        }
    }
}

extension Body {
    /// Whether the content is that of another body. False also where one of them is not complete, or not in memory.
    func hasBytes(of other: Body) -> Bool {
        guard isComplete, other.isComplete, length == other.length else { return false }
        if self === other { return true }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * Body.blockBytes, alignment: 4096)
        defer { unsafe room.deallocate() }
        let (left, right) = unsafe (
            UnsafeMutableRawBufferPointer(rebasing: room[..<Body.blockBytes]),
            UnsafeMutableRawBufferPointer(rebasing: room[Body.blockBytes...])
        )
        var offset = 0
        while offset < length {
            guard
                case .bytes(let one) = unsafe piece(from: offset, limit: length - offset, room: left, waits: false),
                case .bytes(let two) = unsafe other.piece(
                    from: offset, limit: length - offset, room: right, waits: false)
            else { return false }
            let count = min(one.count, two.count)
            guard unsafe one[..<count].elementsEqual(two[..<count]) else { return false }
            offset += count
        }
        return true
    }
}
