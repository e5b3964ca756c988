import Storage

/// What `Worker.diskBuffer` holds: whole blocks of one body, whose checksums were verified.
struct DiskContent {
    /// The body's `copyNumber`.
    var number: UInt64
    /// The range of the body that the blocks cover.
    var range: Range<Int>
}

extension Worker {
    /// Reads the blocks around a range of a body into `diskBuffer` and verifies them, unless the buffer holds them already. Does not block.
    ///
    /// - Parameters:
    ///   - body: a body that the back store has in one piece.
    ///   - range: its blocks (`Body.blocks`) must fit `diskBufferBytes`.
    func readFromDisk(_ body: Body, _ range: Range<Int>) -> BackStoreRead {
        guard let number = body.copyNumber else {
            preconditionFailure("the back store does not have the body in one piece")
        }
        let blocks = body.blocks(around: range)
        if let diskContent, diskContent.number == number, diskContent.range.contains(blocks) { return .done }
        precondition(blocks.count <= Worker.diskBufferBytes, "the blocks do not fit the buffer")
        diskContent = nil
        let result = unsafe body.read(
            from: blocks.lowerBound, into: UnsafeMutableRawBufferPointer(rebasing: diskBuffer[..<blocks.count]))
        if result == .done { diskContent = DiskContent(number: number, range: blocks) }
        return result
    }

    /// The bytes of a body from `offset` on, if `diskBuffer` holds them; nil otherwise.
    func heldFromDisk(_ body: Body, from offset: Int) -> UnsafeRawBufferPointer? {
        guard let diskContent, diskContent.number == body.copyNumber, diskContent.range.contains(offset) else {
            return nil
        }
        let start = offset - diskContent.range.lowerBound
        precondition(start < diskContent.range.count, "the offset lies outside the blocks")
        return unsafe UnsafeRawBufferPointer(rebasing: diskBuffer[start..<diskContent.range.count])
    }
}
