import Disk

/// What the book knew of its objects when the verification began, small enough for many millions: 24 bytes each, and no keys.
struct KnownObjects: Sendable {
    private struct Known: Sendable {
        var segment: UInt32
        /// In units of 16.
        var offset: UInt32
        /// Over key and lengths: the book and the record mean the same object.
        var digest: UInt32
        var wasSeen: Bool
    }
    private var objects: [ObjectID: Known] = [:]
    /// Numbers of the files of large objects.
    private(set) var largeFiles: Set<UInt32> = []

    var count: Int { objects.count }

    /// False: there was one with this number before.
    mutating func insert(_ entry: BookEntry) -> Bool {
        let known = Known(
            segment: entry.place.segment, offset: UInt32(truncatingIfNeeded: entry.place.offset / 16),
            digest: Self.digest(entry.key, entry.place), wasSeen: false)
        if entry.place.kind == .large { largeFiles.insert(entry.place.segment) }
        return objects.updateValue(known, forKey: entry.id) == nil
    }

    /// A record that is whole was found. False: it is not what the book has in mind.
    mutating func markSeen(_ head: StoredHead) -> Bool {
        guard isLive(head) else { return false }
        objects[head.id]?.wasSeen = true
        return true
    }

    /// The book has this object in this place.
    func isLive(_ head: StoredHead) -> Bool {
        guard let known = objects[head.id] else { return false }
        return known.segment == head.place.segment && known.offset == head.place.offset / 16
            && known.digest == Self.digest(head.key, head.place)
    }

    func contains(_ id: ObjectID) -> Bool { objects[id] != nil }

    /// Nil: the book did not have it then.
    func wasSeen(_ id: ObjectID) -> Bool? { objects[id]?.wasSeen }

    private static func digest(_ key: [UInt8], _ place: Place) -> UInt32 {
        var checksum = Checksum()
        checksum.add(key)
        var lengths: [UInt8] = [place.kind.rawValue]
        lengths.append(number: place.headLength)
        lengths.append(number: place.bodyLength)
        checksum.add(lengths)
        return checksum.value
    }
}
