import Disk
import Storage

extension Worker {
    /// Reads a whole body from the disk into `diskBuffer`, and checks it, if it is not there yet.
    ///
    /// - Parameter body: packed, and no longer than `diskBufferBytes`.
    func readFromDisk(_ body: Body) -> DiskRead {
        if diskContent === body { return .done }
        diskContent = nil
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: diskBuffer[..<body.length])
        let result = unsafe body.read(into: room)
        if result == .done { diskContent = body }
        return result
    }
}
