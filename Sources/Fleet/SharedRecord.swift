/// A stored response as the nodes of a fleet share it: a head part, and for a longer body the parts of the body.
///
/// Whoever can write to Redis could poison every node, so nothing of a record is believed before its code was compared. The code of the head part
/// covers zone and cache key, so that a value which was copied under another name is refused. The code of a body part covers the id of the record
/// and the number of the part. There are no other checksums: a code finds damage as well.
///
/// A code does not say that a record is the newest one. Whoever can write to Redis can put an earlier record back, and a node that is slow can
/// write one after a purge. The reader compares `storedAt` with the purges that it knows.
package struct SharedRecord: Equatable, Sendable {
    package let id: SharedRecordID
    /// The name of the zone of the cache.
    package let zone: String
    /// The bytes of the cache key.
    package let key: [UInt8]
    package let status: UInt16
    /// When the response was stored, in seconds since 1970 by the clock of the writer, as all times that the head has.
    package let storedAt: Int64
    /// When the response becomes stale, likewise.
    package let expiresAt: Int64
    /// When it was written, by two clocks.
    package let written: Moment
    /// Up to which entry of the stream the writer had applied purges. Later ones may concern the record.
    package let position: StreamPosition
    package let mediaType: [UInt8]
    /// The names of the groups that the response belongs to, for purges.
    package let tags: [[UInt8]]
    /// The head of the response in a form that the caller defines.
    package let head: [UInt8]
    package let bodyLength: Int
    /// The body if it has `shortBodyBytesMax` at most. Otherwise it is empty, and the body is in `parts`.
    package let shortBody: [UInt8]

    /// One moment as two clocks show it, in milliseconds since 1970: that of the Redis, and that of the node. So a reader knows how long ago the record was written, and by how much
    /// its clock differs from the writer's.
    package struct Moment: Equatable, Sendable {
        package let byServer: Int64
        package let byNode: Int64

        package init(byServer: Int64, byNode: Int64) {
            self.byServer = byServer
            self.byNode = byNode
        }

        static let bounds: ClosedRange<Int64> = 0...(1 << 53 - 1)
    }

    package static let zoneBytesMax = 32
    package static let positionBytesMax = 255
    package static let keyBytesMax = 64 << 10
    package static let headBytesMax = 256 << 10
    package static let mediaTypeBytesMax = 255
    package static let tagCountMax = 64
    package static let tagBytesMax = 255
    package static let bodyBytesMax = 1 << 20
    /// A body up to this length is in the head part, so that one command reads the whole response.
    package static let shortBodyBytesMax = 16 << 10
    /// A server reads and writes one value at a time, and nobody else is served meanwhile. So long bodies are in pieces.
    package static let partBytesMax = 256 << 10

    /// Returns nil if something is larger than its bound. Such a response is not shared.
    ///
    /// - Parameter shortBody: the body if it has `shortBodyBytesMax` at most, otherwise nothing.
    package init?(
        id: SharedRecordID, zone: String, key: [UInt8], status: UInt16, storedAt: Int64, expiresAt: Int64,
        written: Moment, position: StreamPosition, mediaType: [UInt8], tags: [[UInt8]], head: [UInt8], bodyLength: Int,
        shortBody: [UInt8]
    ) {
        guard (1...SharedRecord.zoneBytesMax).contains(zone.utf8.count), key.count <= SharedRecord.keyBytesMax,
            100...999 ~= status, Moment.bounds.contains(written.byServer), Moment.bounds.contains(written.byNode),
            position.bytes.count <= SharedRecord.positionBytesMax,
            mediaType.count <= SharedRecord.mediaTypeBytesMax,
            tags.count <= SharedRecord.tagCountMax,
            tags.allSatisfy({ (1...SharedRecord.tagBytesMax).contains($0.count) }),
            head.count <= SharedRecord.headBytesMax, (0...SharedRecord.bodyBytesMax).contains(bodyLength)
        else { return nil }
        precondition(
            shortBody.count == (bodyLength <= SharedRecord.shortBodyBytesMax ? bodyLength : 0),
            "a short body comes with its record, a long one in parts")
        self.id = id
        self.zone = zone
        self.key = key
        self.status = status
        self.storedAt = storedAt
        self.expiresAt = expiresAt
        self.written = written
        self.position = position
        self.mediaType = mediaType
        self.tags = tags
        self.head = head
        self.bodyLength = bodyLength
        self.shortBody = shortBody
    }

    /// By how many seconds the clock of a reader is ahead of that of the writer, rounded down: times of the record with these seconds added are those that the reader would have
    /// noted, or a little earlier. So its age is never underestimated.
    ///
    /// - Parameters:
    ///   - serverNow: the latest time that the clock of the Redis may show, in milliseconds since 1970.
    ///   - now: the time of the reader, likewise.
    package func clockAhead(serverNow: Int64, now: Int64) -> Int64 {
        let age = max(serverNow - written.byServer, 0)
        let ahead = now - age - written.byNode
        return ahead >= 0 ? ahead / 1000 : -((999 - ahead) / 1000)
    }

    /// The parts that the body is in. Empty if it is in the head part.
    package var parts: [SharedPart] {
        guard bodyLength > SharedRecord.shortBodyBytesMax else { return [] }
        return stride(from: 0, to: bodyLength, by: SharedRecord.partBytesMax).enumerated().map { number, start in
            SharedPart(number: number, range: start..<min(start + SharedRecord.partBytesMax, bodyLength))
        }
    }
}

/// One part of a body.
package struct SharedPart: Equatable, Sendable {
    /// From 0.
    package let number: Int
    /// Its bytes in the body.
    package let range: Range<Int>
}

/// Why a value of Redis is not the record that was asked for. The response counts as missing.
package enum SharedRecordError: String, Error, CaseIterable, Sendable {
    /// The value does not begin like a record.
    case notARecord = "not-a-record"
    /// Another release of Larder wrote the value in another layout.
    case unknownVersion = "unknown-version"
    /// Bytes are missing at the end.
    case truncated
    /// There are more bytes than the record says.
    case trailingBytes = "trailing-bytes"
    /// The value was damaged, or somebody who does not have the secret wrote it, or it is a part of another write.
    case wrongCode = "wrong-code"
    /// The code is right, but a length or a number is not one that Larder writes.
    case malformed
    /// The record is right, but it belongs to another cache key or zone.
    case wrongKey = "wrong-key"
}
