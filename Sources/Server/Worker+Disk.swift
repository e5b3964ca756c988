import Disk
import Storage

extension Worker {
    /// Reads a whole body from the disk into `diskBuffer`, and checks it, if it is not there yet.
    ///
    /// - Parameter body: packed, and no longer than `diskBufferBytes`.
    func readFromDisk(_ body: Body) -> DiskRead {
        if holds(body) { return .done }
        diskContent = nil
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: diskBuffer[..<body.length])
        let result = unsafe body.read(into: room)
        if result == .done { diskContent = body.copyNumber }
        return result
    }

    /// It is in `diskBuffer`, whole and checked.
    func holds(_ body: Body) -> Bool {
        guard let diskContent else { return false }
        return diskContent == body.copyNumber
    }
}
