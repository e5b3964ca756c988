package import Glibc

/// Names one object of one store: rises with every object that is stored, and is never used again.
package struct ObjectID: Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static func < (left: ObjectID, right: ObjectID) -> Bool { left.rawValue < right.rawValue }
}

/// Under which quota an object is kept.
package enum StorageClass: UInt8, Sendable, CaseIterable {
    /// Evicted for space.
    case permanent = 1
    /// Kept until it is removed, within a quota of its own.
    case pinned = 2
}

/// What is known of an object without a look at its head: for listings and purges.
package struct ObjectAttributes: Sendable, Equatable {
    package var storageClass: StorageClass
    package var status: UInt16
    /// When it was stored or validated last, in seconds of the wall clock.
    package var storedAt: Int64
    /// When it stops being fresh, in seconds of the wall clock.
    package var expiresAt: Int64
    /// Without parameters, in lower case; at most 127 bytes; empty where there is none.
    package var mediaType: [UInt8]
    /// Each at most 255 bytes.
    package var tags: [[UInt8]]

    package init(
        storageClass: StorageClass, status: UInt16, storedAt: Int64, expiresAt: Int64, mediaType: [UInt8] = [],
        tags: [[UInt8]] = []
    ) {
        self.storageClass = storageClass
        self.status = status
        self.storedAt = storedAt
        self.expiresAt = expiresAt
        self.mediaType = mediaType
        self.tags = tags
    }
}

/// Where the bytes of an object stand.
package struct Place: Hashable, Sendable {
    package enum Kind: UInt8, Sendable {
        /// One record among others in a segment: complete, and read at once.
        case packed = 1
        /// A segment of its own, in blocks at fixed places; parts of it may be missing.
        case large = 2
    }
    package var kind: Kind
    /// Number of the segment: its file.
    package var segment: UInt32
    /// Of the record's first byte in the file, a multiple of 16; zero where it is large.
    package var offset: UInt64
    /// Bytes of header, key, attributes, head and checksums; a multiple of 16 (of 4096 where it is large).
    package var headLength: UInt32
    package var bodyLength: UInt64

    package init(kind: Kind, segment: UInt32, offset: UInt64, headLength: UInt32, bodyLength: UInt64) {
        self.kind = kind
        self.segment = segment
        self.offset = offset
        self.headLength = headLength
        self.bodyLength = bodyLength
    }

    /// Bytes of the whole record in its file, padding included.
    package var recordLength: UInt64 { UInt64(headLength) + (bodyLength + 15) & ~15 }
}

/// An object as the book has it.
package struct BookEntry: Sendable, Equatable {
    package var id: ObjectID
    /// The cache key: most often a normalised URI.
    package var key: [UInt8]
    package var place: Place
    package var attributes: ObjectAttributes
    /// There is a renewed head in the book, which takes the place of the one in the segment.
    package var hasRenewedHead: Bool
    /// All of it is there; false for a large object that misses parts.
    package var isComplete: Bool

    package init(
        id: ObjectID, key: [UInt8], place: Place, attributes: ObjectAttributes, hasRenewedHead: Bool = false,
        isComplete: Bool = true
    ) {
        self.id = id
        self.key = key
        self.place = place
        self.attributes = attributes
        self.hasRenewedHead = hasRenewedHead
        self.isComplete = isComplete
    }
}

/// The bytes of a body that lie in memory and stay as they are: what a store writes from.
package protocol BodyBytes: AnyObject, Sendable {
    var length: Int { get }
    /// Fills `vectors` with the bytes from `offset`, at most `limit`; returns the vectors used. Valid while it is held.
    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int
}

/// How reading went.
package enum DiskRead: Equatable, Sendable {
    /// They are there, and their checksums are right.
    case done
    /// Not in the page cache: read on a thread that may block.
    case wouldBlock
    /// The bytes are not what was written.
    case damaged
    case failed(errno: CInt)
}

/// Bytes of a body between two checksums, and of a block of a large object.
package let blockBytes = 64 << 10
