import Storage

/// What is in the worker's buffer for reads of the back store: whole blocks of one body, which were checked.
struct DiskContent {
    /// The body's `copyNumber`.
    var number: UInt64
    /// The bytes of the body that they are.
    var range: Range<Int>
}

extension Worker {
    /// Reads a range of a body into `diskBuffer` and checks it, unless it is there. Does not block.
    /// - Parameters:
    ///   - body: one that the back store has in one piece.
    ///   - range: the blocks in which it lies (`Body.blocks`) are at most `diskBufferBytes`.
    func readFromDisk(_ body: Body, _ range: Range<Int>) -> BackStoreRead {
        guard let number = body.copyNumber else { preconditionFailure("the back store has the body in one piece") }
        let blocks = body.blocks(around: range)
        if let diskContent, diskContent.number == number, diskContent.range.contains(blocks) { return .done }
        precondition(blocks.count <= Worker.diskBufferBytes, "what is read fits the buffer")
        diskContent = nil
        let result = unsafe body.read(
            from: blocks.lowerBound, into: UnsafeMutableRawBufferPointer(rebasing: diskBuffer[..<blocks.count]))
        if result == .done { diskContent = DiskContent(number: number, range: blocks) }
        return result
    }

    /// What `diskBuffer` holds of a body from `offset` on; nil: nothing.
    func heldFromDisk(_ body: Body, from offset: Int) -> UnsafeRawBufferPointer? {
        guard let diskContent, diskContent.number == body.copyNumber, diskContent.range.contains(offset) else {
            return nil
        }
        let start = offset - diskContent.range.lowerBound
        precondition(start < diskContent.range.count, "what is held is in the buffer")
        return unsafe UnsafeRawBufferPointer(rebasing: diskBuffer[start..<diskContent.range.count])
    }
}
