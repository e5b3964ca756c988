import EventLoop

/// An object to be stored in one record. It is a class because queues and lists copy it: a copy counts one reference instead of five.
package final class PackedObject: WaitingObject, Sendable {
    package let id: ObjectID
    package let hash: UInt64
    package let key: [UInt8]
    package let attributes: ObjectAttributes
    /// What the caller keeps of the response's head. The store does not look into it.
    package let head: [UInt8]
    /// Held until it is written.
    package let body: any BodyBytes

    package init(
        id: ObjectID, hash: UInt64, key: [UInt8], attributes: ObjectAttributes, head: [UInt8], body: any BodyBytes
    ) {
        self.id = id
        self.hash = hash
        self.key = key
        self.attributes = attributes
        self.head = head
        self.body = body
    }
}

/// The head of an object that waits to be written.
package struct WaitingHead: Sendable {
    package var id: ObjectID
    package var key: [UInt8]
    package var attributes: ObjectAttributes
    /// The renewed head, if there is one.
    package var head: [UInt8]
}

/// The head of an object, as read from the disk.
package struct StoredHead: Sendable {
    package var id: ObjectID
    package var place: Place
    package var key: [UInt8]
    package var attributes: ObjectAttributes
    /// The renewed head, if there is one.
    package var head: [UInt8]
    /// The CRC-32C of each block of the body. Empty for a large object, whose file has a table of them.
    package var checksums: [UInt32]
}

/// Why something cannot be read.
package enum DiskReadError: Error, Equatable, Sendable, CustomStringConvertible {
    case wouldBlock
    /// The bytes are not what was written, or no longer there.
    case damaged
    case failed(errno: CInt)

    package var description: String {
        switch self {
        case .wouldBlock: "it is not in the page cache"
        case .damaged: "it is damaged"
        case .failed(let code): systemErrorText(code)
        }
    }
}
