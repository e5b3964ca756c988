package import Glibc

/// The number of an object in its store. Numbers increase with every stored object and are never used again.
package struct ObjectID: Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static func < (left: ObjectID, right: ObjectID) -> Bool { left.rawValue < right.rawValue }

    /// The highest number that a store counts up from. No store gives out so many, so a higher one stands in a damaged file.
    package static let countedMax = ObjectID(rawValue: 1 << 62)
}

/// The quota that an object belongs to.
package enum StorageClass: UInt8, Sendable, CaseIterable {
    /// May be evicted for space.
    case permanent = 1
    /// Kept until it is removed, within a quota of its own.
    case pinned = 2
}

/// What listings and purges need to know of an object without reading its head.
package struct ObjectAttributes: Sendable, Equatable {
    package var storageClass: StorageClass
    package var status: UInt16
    /// When the object was stored or last validated, in seconds of the wall clock.
    package var storedAt: Int64
    /// When it stops being fresh, in seconds of the wall clock.
    package var expiresAt: Int64
    /// Lower case, without parameters; at most 127 bytes; empty if there is none.
    package var mediaType: [UInt8]
    /// Each has at most 255 bytes. Addresses are among them (`AddressTag`).
    package var tags: [[UInt8]]

    /// The addresses by which listings find the object, in place of its key.
    package var addresses: [[UInt8]] { tags.compactMap { AddressTag.address(of: $0) } }

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

/// Where the bytes of an object are.
package struct Place: Hashable, Sendable {
    package enum Kind: UInt8, Sendable {
        /// One record among others in a segment: complete, read in one call.
        case packed = 1
        /// A file of its own, with blocks at fixed places; some of them may be absent.
        case large = 2
    }
    package var kind: Kind
    /// The number of the file.
    package var segment: UInt32
    /// Where the record begins in the file: a multiple of 16; zero for a large object.
    package var offset: UInt64
    /// The length of header, key, attributes, head and checksums: a multiple of 16, or of 4096 for a large object.
    package var headLength: UInt32
    package var bodyLength: UInt64

    package init(kind: Kind, segment: UInt32, offset: UInt64, headLength: UInt32, bodyLength: UInt64) {
        self.kind = kind
        self.segment = segment
        self.offset = offset
        self.headLength = headLength
        self.bodyLength = bodyLength
    }

    /// The length of the whole record in its file, padding included.
    package var recordLength: UInt64 { UInt64(headLength) + (bodyLength + 15) & ~15 }
}

/// An entry of the book.
package struct BookEntry: Sendable, Equatable {
    package var id: ObjectID
    /// The cache key, which usually is a normalised URI.
    package var key: [UInt8]
    package var place: Place
    package var attributes: ObjectAttributes
    /// The book has a renewed head, which replaces the one in the record.
    package var hasRenewedHead: Bool
    /// False for a large object without some of its blocks.
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

/// The bytes of a body in memory, which never change: what a store writes from.
package protocol BodyBytes: AnyObject, Sendable {
    /// The length of the whole body, even if some of it is still missing.
    var byteCount: Int { get }
    /// Fills `vectors` with at most `limit` bytes from `offset` on and returns how many vectors it used. They are valid while this
    /// object is held.
    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int
}

/// The outcome of a read.
package enum DiskRead: Equatable, Sendable {
    /// The bytes are in the buffer, and their checksums match.
    case done
    /// The bytes are not in the page cache. Read them on a thread that may block.
    case wouldBlock
    /// The bytes are not what was written.
    case damaged
    case failed(errno: CInt)
}

/// The length of a block: each block of a body has a checksum, and large objects are written block by block.
package let blockBytes = 64 << 10
