/// The number of a response on one back store. Each new response gets a higher number.
package struct StoredID: RawRepresentable, Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static func < (left: StoredID, right: StoredID) -> Bool { left.rawValue < right.rawValue }
}

/// Which quota of the back store a response counts against.
package enum Retention: CaseIterable, Sendable {
    /// May be evicted for space.
    case permanent
    /// Stays until it is removed. Pinned responses have a quota of their own.
    case pinned
}

/// Facts about a stored response that listings and purges need, so that they can do without its head.
package struct StoredAttributes: Equatable, Sendable {
    package var retention: Retention
    package var status: UInt16
    /// When the response was stored or last validated, in seconds of the wall clock, within `timeBounds`.
    package let storedAt: Int64
    /// When the response stops being fresh, in seconds of the wall clock, within `timeBounds`.
    package let expiresAt: Int64
    /// Without parameters, in lower case, at most 127 bytes. Empty if the response has none.
    package var mediaType: [UInt8]
    /// Each tag has at most 255 bytes.
    package var tags: [[UInt8]]
    /// The addresses by which listings find the response, in place of its key: normalised URIs, at most 249 bytes of each. Empty: by its key.
    package var addresses: [[UInt8]]

    /// Differences of such times fit in 64 bits.
    private static let timeBounds: ClosedRange<Int64> = -(1 << 53)...(1 << 53 - 1)

    /// A time outside of `timeBounds`, which a damaged record or another node may have, becomes the nearest one.
    package init(
        retention: Retention, status: UInt16, storedAt: Int64, expiresAt: Int64, mediaType: [UInt8] = [],
        tags: [[UInt8]] = [], addresses: [[UInt8]] = []
    ) {
        self.retention = retention
        self.status = status
        self.storedAt = min(max(storedAt, Self.timeBounds.lowerBound), Self.timeBounds.upperBound)
        self.expiresAt = min(max(expiresAt, Self.timeBounds.lowerBound), Self.timeBounds.upperBound)
        self.mediaType = mediaType
        self.tags = tags
        self.addresses = addresses
    }
}

/// Where a back store has a response. Use a place soon and do not keep it: the store may move the response at any time.
package struct StoredPlace: Hashable, Sendable {
    package enum Form: Sendable {
        /// The body is complete and in one piece.
        case whole
        /// The body is in blocks, each of them present or absent.
        case blocks
    }
    package let form: Form
    package let bodyBytes: Int
    /// All bytes that the response takes on the medium.
    package let bytes: Int
    /// Two numbers whose meaning only the back store knows.
    package let location: Location

    package struct Location: Hashable, Sendable {
        package let first, second: UInt64

        package init(_ first: UInt64, _ second: UInt64) {
            self.first = first
            self.second = second
        }
    }

    package init(form: Form, bodyBytes: Int, bytes: Int, location: Location) {
        precondition(bodyBytes >= 0 && bytes >= 0, "bytes are counted")
        self.form = form
        self.bodyBytes = bodyBytes
        self.bytes = bytes
        self.location = location
    }
}

package enum StoredPlaces: Equatable, Sendable {
    case nothing
    /// Places of responses that may have the key, newest first: their hashes are equal.
    case found([StoredPlace])
    /// The index is not complete yet, and nothing was found so far.
    case loading
}

/// What a back store has of a response, without the body.
package struct StoredCopy: Sendable {
    package let id: StoredID
    package let place: StoredPlace
    package let keyBytes: [UInt8]
    package let attributes: StoredAttributes
    /// The head, as in `ResponseForm.head`. If it was renewed, the latest one.
    package let head: [UInt8]
    /// The checksum of each block, for a body in one piece. Empty if the back store needs none. Pass them to `readBody`.
    package let checksums: [UInt32]

    package init(
        id: StoredID, place: StoredPlace, keyBytes: [UInt8], attributes: StoredAttributes, head: [UInt8],
        checksums: [UInt32]
    ) {
        self.id = id
        self.place = place
        self.keyBytes = keyBytes
        self.attributes = attributes
        self.head = head
        self.checksums = checksums
    }
}

/// A response to be written to a back store, without the body.
package struct ResponseToStore: Sendable {
    package let id: StoredID
    package let key: StorageKey
    package let keyBytes: [UInt8]
    package let form: ResponseForm

    package init(id: StoredID, key: StorageKey, keyBytes: [UInt8], form: ResponseForm) {
        self.id = id
        self.key = key
        self.keyBytes = keyBytes
        self.form = form
    }
}

/// What a back store gets of a response in addition to key and body.
package struct ResponseForm: Sendable {
    package var attributes: StoredAttributes
    /// Bytes that only `ResponseFormat` understands.
    package var head: [UInt8]

    package init(attributes: StoredAttributes, head: [UInt8]) {
        self.attributes = attributes
        self.head = head
    }
}

/// How the module above encodes its stored responses for a back store, and decodes them.
package struct ResponseFormat: Sendable {
    /// Returns nil for a response that must not outlive this process.
    package let form: @Sendable (StoredRecord) -> ResponseForm?
    /// Returns nil if the head cannot be decoded, most likely because another version of Larder wrote it.
    package let record: @Sendable (StorageKey, StoredCopy, Body) -> StoredRecord?
    /// The same response, of which nobody knows whether it may still be served (`Tiers.doubtStored`).
    package let doubted: @Sendable (StoredRecord) -> StoredRecord
    /// The same response with times that are so many seconds later, from a clock that differs.
    package let moved: @Sendable (StoredRecord, Int64) -> StoredRecord

    package init(
        form: @escaping @Sendable (StoredRecord) -> ResponseForm?,
        record: @escaping @Sendable (StorageKey, StoredCopy, Body) -> StoredRecord?,
        doubted: @escaping @Sendable (StoredRecord) -> StoredRecord = { $0 },
        moved: @escaping @Sendable (StoredRecord, Int64) -> StoredRecord = { record, _ in record }
    ) {
        self.form = form
        self.record = record
        self.doubted = doubted
        self.moved = moved
    }
}

// MARK: listing

/// A stored response in a listing of a back store.
package struct ListedResponse: Equatable, Sendable {
    package let id: StoredID
    package let keyBytes: [UInt8]
    package let attributes: StoredAttributes
    /// The length of the body.
    package let bodyBytes: Int
    /// Bytes on the medium.
    package let bytes: Int
    /// The whole body is stored.
    package let isComplete: Bool

    package init(
        id: StoredID, keyBytes: [UInt8], attributes: StoredAttributes, bodyBytes: Int, bytes: Int, isComplete: Bool
    ) {
        self.id = id
        self.keyBytes = keyBytes
        self.attributes = attributes
        self.bodyBytes = bodyBytes
        self.bytes = bytes
        self.isComplete = isComplete
    }
}

/// What of a back store is to be listed. A back store may give more than was asked for, never less. What has addresses (`StoredAttributes`) is
/// selected by these, and not by its key; it comes once.
package enum ListingRange: Hashable, Sendable {
    case all
    /// Responses whose key begins so.
    case keyPrefix([UInt8])
    /// Responses of one host, whatever the port and scheme: a name in lower case, or an address as it stands in URIs.
    case host([UInt8])
    /// Responses of the hosts below a name, at any depth, not of the name itself: `*.example.org` without `*.`.
    case below([UInt8])
}

/// A place in the order of a listing. Only the back store that gave it knows what it means.
package struct ListingCursor: Hashable, Sendable {
    package let bytes: [UInt8]
    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

package struct ListingPage: Equatable, Sendable {
    package let responses: [ListedResponse]
    /// Where the next page begins. Nil if this is the last page.
    package let next: ListingCursor?

    package init(_ responses: [ListedResponse], next: ListingCursor?) {
        self.responses = responses
        self.next = next
    }
}

// MARK: numbers

/// What a back store has, and what it has done since its start.
package struct BackStoreStatistics: Equatable, Sendable {
    package var sizeBytes: UInt64 = 0
    /// All bytes that the store takes on the medium.
    package var usedBytes: UInt64 = 0
    package var liveBytes: UInt64 = 0
    package var pinnedLimitBytes: UInt64 = 0
    package var pinnedBytes: UInt64 = 0
    package var objectCount = 0
    package var largeCount = 0
    package var segmentCount = 0
    package var bookBytes: UInt64 = 0
    /// Bytes that are waiting to be written.
    package var waitingBytes = 0
    // Since the start.
    package var storedObjects: UInt64 = 0
    package var storedBytes: UInt64 = 0
    package var refusedBusy: UInt64 = 0
    package var refusedPinned: UInt64 = 0
    /// Responses that were accepted and then not written, for lack of space or because of an error.
    package var droppedObjects: UInt64 = 0
    package var evictedObjects: UInt64 = 0
    package var evictedBytes: UInt64 = 0
    /// Bytes that were copied in order to free space.
    package var movedBytes: UInt64 = 0
    package var damagedObjects: UInt64 = 0
    package var readErrors: UInt64 = 0
    package var writeErrors: UInt64 = 0
    package var commits: UInt64 = 0

    package init() {}
}
