/// Names one response of one back store: rises with every response that is stored.
package struct StoredID: RawRepresentable, Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static func < (left: StoredID, right: StoredID) -> Bool { left.rawValue < right.rawValue }
}

/// Under which quota a response is kept.
package enum Retention: CaseIterable, Sendable {
    /// Evicted for space.
    case permanent
    /// Kept until it is removed, within a quota of its own.
    case pinned
}

/// What is known of a stored response without a look at its head: for listings and purges.
package struct StoredAttributes: Equatable, Sendable {
    package var retention: Retention
    package var status: UInt16
    /// When it was stored or validated last, in seconds of the wall clock.
    package var storedAt: Int64
    /// When it stops being fresh, in seconds of the wall clock.
    package var expiresAt: Int64
    /// Without parameters, in lower case, at most 127 bytes; empty where there is none.
    package var mediaType: [UInt8]
    /// Each at most 255 bytes.
    package var tags: [[UInt8]]

    package init(
        retention: Retention, status: UInt16, storedAt: Int64, expiresAt: Int64, mediaType: [UInt8] = [],
        tags: [[UInt8]] = []
    ) {
        self.retention = retention
        self.status = status
        self.storedAt = storedAt
        self.expiresAt = expiresAt
        self.mediaType = mediaType
        self.tags = tags
    }
}

/// Where a back store has a response. It may be moved: a place is good for a look, not for keeping.
package struct StoredPlace: Hashable, Sendable {
    package enum Form: Sendable {
        /// The body in one piece, complete.
        case whole
        /// The body in blocks, each there or not.
        case blocks
    }
    package let form: Form
    package let bodyBytes: Int
    /// Bytes on the medium, with all that belongs to the response.
    package let bytes: Int
    /// Two numbers that mean something to the back store that gave them, and to nobody else.
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
    /// Places of responses whose key may be the one asked for, newest first.
    case found([StoredPlace])
    /// It is not loaded yet, and has found nothing so far.
    case loading
}

/// A stored response as a back store has it, without its body.
package struct StoredCopy: Sendable {
    package let id: StoredID
    package let place: StoredPlace
    package let keyBytes: [UInt8]
    package let attributes: StoredAttributes
    /// As `ResponseForm.head`; the renewed one where it was renewed.
    package let head: [UInt8]
    /// Of a body in one piece: a checksum of each block, or nothing where the back store needs none. It gets them back
    /// with each read.
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

/// A response on its way to a back store, without its body.
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

/// What of a stored response a back store gets beside its key and its body.
package struct ResponseForm: Sendable {
    package var attributes: StoredAttributes
    /// Bytes that only `ResponseFormat` reads.
    package var head: [UInt8]

    package init(attributes: StoredAttributes, head: [UInt8]) {
        self.attributes = attributes
        self.head = head
    }
}

/// How the module above writes its stored responses for a back store, and makes them again.
package struct ResponseFormat: Sendable {
    /// Returns nil for a response that is for this process alone.
    package let form: @Sendable (StoredRecord) -> ResponseForm?
    /// Returns nil where the head cannot be read; another version wrote it, most likely.
    package let record: @Sendable (StorageKey, StoredCopy, Body) -> StoredRecord?

    package init(
        form: @escaping @Sendable (StoredRecord) -> ResponseForm?,
        record: @escaping @Sendable (StorageKey, StoredCopy, Body) -> StoredRecord?
    ) {
        self.form = form
        self.record = record
    }
}

// MARK: listing

/// A stored response in a listing of a back store.
package struct ListedResponse: Equatable, Sendable {
    package let id: StoredID
    package let keyBytes: [UInt8]
    package let attributes: StoredAttributes
    /// The body's length.
    package let bodyBytes: Int
    /// Bytes on the medium.
    package let bytes: Int
    /// All of the body is there.
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

/// What of a back store is to be listed. A back store may give more than was asked for, never less.
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
    /// Where the next page begins; nil: this was the last.
    package let next: ListingCursor?

    package init(_ responses: [ListedResponse], next: ListingCursor?) {
        self.responses = responses
        self.next = next
    }
}

// MARK: numbers

/// What a back store holds and has done.
package struct BackStoreStatistics: Equatable, Sendable {
    package var sizeBytes: UInt64 = 0
    /// Of all that it takes on the medium.
    package var usedBytes: UInt64 = 0
    package var liveBytes: UInt64 = 0
    package var pinnedLimitBytes: UInt64 = 0
    package var pinnedBytes: UInt64 = 0
    package var objectCount = 0
    package var largeCount = 0
    package var segmentCount = 0
    package var bookBytes: UInt64 = 0
    /// Bytes that wait to be written.
    package var waitingBytes = 0
    // Since the start.
    package var storedObjects: UInt64 = 0
    package var storedBytes: UInt64 = 0
    package var refusedBusy: UInt64 = 0
    package var refusedPinned: UInt64 = 0
    /// Accepted and not written after all: there was no room, or an error.
    package var droppedObjects: UInt64 = 0
    package var evictedObjects: UInt64 = 0
    package var evictedBytes: UInt64 = 0
    /// Bytes copied to free space.
    package var movedBytes: UInt64 = 0
    package var damagedObjects: UInt64 = 0
    package var readErrors: UInt64 = 0
    package var writeErrors: UInt64 = 0
    package var commits: UInt64 = 0

    package init() {}
}
