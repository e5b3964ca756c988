import Disk

/// What the book knew when the verification began, in 24 bytes for each object and without keys: small enough for many millions.
struct KnownObjects: Sendable {
    private struct Known: Sendable {
        var segment: UInt32
        /// In units of 16 bytes.
        var offset: UInt32
        /// Computed from key and lengths: shows whether book and record mean the same object.
        var digest: UInt32
        var wasSeen: Bool
    }
    private var objects: [ObjectID: Known] = [:]
    /// The numbers of the files of large objects.
    private(set) var largeFiles: Set<UInt32> = []

    var count: Int { objects.count }

    /// Returns false if the number occurred before.
    mutating func insert(_ entry: BookEntry) -> Bool {
        let known = Known(
            segment: entry.place.segment, offset: UInt32(truncatingIfNeeded: entry.place.offset / 16),
            digest: Self.digest(entry.key, entry.place), wasSeen: false)
        if entry.place.kind == .large { largeFiles.insert(entry.place.segment) }
        return objects.updateValue(known, forKey: entry.id) == nil
    }

    /// Notes that a whole record was found. Returns false if it is not the one that the book refers to.
    mutating func markSeen(_ head: StoredHead) -> Bool {
        guard isLive(head) else { return false }
        objects[head.id]?.wasSeen = true
        return true
    }

    /// Whether the book has this object at this place.
    func isLive(_ head: StoredHead) -> Bool {
        guard let known = objects[head.id] else { return false }
        return known.segment == head.place.segment && known.offset == head.place.offset / 16
            && known.digest == Self.digest(head.key, head.place)
    }

    func contains(_ id: ObjectID) -> Bool { objects[id] != nil }

    /// Returns nil if the book did not have the object at the beginning.
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
