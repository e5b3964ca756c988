/// An object to be stored in one piece.
package struct PackedObject: Sendable {
    package var id: ObjectID
    package var hash: UInt64
    package var key: [UInt8]
    package var attributes: ObjectAttributes
    /// What the module above keeps of the response's head: bytes of its own.
    package var head: [UInt8]
    /// Held until it is written.
    package var body: any BodyBytes

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

/// The head of a stored object, as it was read.
package struct StoredHead: Sendable {
    package var id: ObjectID
    package var place: Place
    package var key: [UInt8]
    package var attributes: ObjectAttributes
    /// The renewed one, where there is one.
    package var head: [UInt8]
    /// CRC-32C of each block of the body (`blockBytes`); empty where it is large: those are in `LargeObject`.
    package var checksums: [UInt32]
}

package enum DiskReadError: Error, Equatable, Sendable {
    case wouldBlock
    /// What stands there is not what was written, or no longer.
    case damaged
    case failed(errno: CInt)
}
