/// A large object in a segment of its own: header, head, a table with a checksum per block, then the blocks at fixed
/// places, each there or not. Used by any thread at once.
package final class LargeObject: @unchecked Sendable {
    package let id: ObjectID
    package let place: Place
    package let length: Int

    init(id: ObjectID, place: Place, length: Int) {
        self.id = id
        self.place = place
        self.length = length
    }

    package var blockCount: Int { (length + blockBytes - 1) / blockBytes }

    /// The blocks that can be read, as ranges of bytes: in order, never adjacent.
    package var extents: [Range<Int>] { fatalError() }

    /// Takes a whole block (the last may be shorter) to be written soon; `source` is held until then. `then` is called on the
    /// writer's thread when it can be read, or could not be written.
    package func write(block: Int, from source: any BodyBytes, at offset: Int, then: @escaping @Sendable (Bool) -> Void)
    {
        fatalError()
    }

    /// Bytes taken and not yet written, of this object.
    package var waitingBytes: Int { fatalError() }

    /// Reads blocks that are there, from the beginning of a block on: fills `room` (a multiple of `blockBytes`, or up to the
    /// end). A block that is damaged is no longer there afterwards.
    package func read(from offset: Int, into room: UnsafeMutableRawBufferPointer, waits: Bool) -> DiskRead {
        fatalError()
    }

    /// Tells the kernel that the bytes from `offset` will be wanted soon.
    package func readAhead(from offset: Int, length: Int) { fatalError() }
}
