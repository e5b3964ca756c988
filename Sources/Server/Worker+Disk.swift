import Disk
import Storage

/// What is in the worker's buffer for the disk, whole blocks that were checked.
struct DiskContent {
    /// `Body.copyNumber`.
    var number: UInt64
    /// Of the body.
    var range: Range<Int>
}

extension Worker {
    /// Reads a range of a body from the disk into `diskBuffer`, and checks it, if it is not there yet.
    ///
    /// - Parameter range: the blocks in which it lies (`Body.blocks`) are no more than `diskBufferBytes`; the body is packed.
    func readFromDisk(_ body: Body, _ range: Range<Int>) -> DiskRead {
        guard let number = body.copyNumber else { preconditionFailure("the body is on the disk in one piece") }
        let blocks = body.blocks(around: range)
        if let diskContent, diskContent.number == number, diskContent.range.contains(blocks) { return .done }
        diskContent = nil
        let result = unsafe body.read(
            from: blocks.lowerBound, into: UnsafeMutableRawBufferPointer(rebasing: diskBuffer[..<blocks.count]))
        if result == .done { diskContent = DiskContent(number: number, range: blocks) }
        return result
    }

    /// What `diskBuffer` has of a body from `offset` on; nil: nothing.
    func heldFromDisk(_ body: Body, from offset: Int) -> UnsafeRawBufferPointer? {
        guard let diskContent, diskContent.number == body.copyNumber, diskContent.range.contains(offset) else {
            return nil
        }
        let start = offset - diskContent.range.lowerBound
        return unsafe UnsafeRawBufferPointer(rebasing: diskBuffer[start..<diskContent.range.count])
    }
}
