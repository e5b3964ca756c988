import EventLoop
import Storage
import Transport

extension Transport {
    /// Writes `head`, and behind it bytes of the file of a body, see `send(_:file:from:_:)`. The file stays open until then.
    func send(_ head: UnsafeRawBufferPointer, _ range: FileRange) -> IOResult {
        withExtendedLifetime(range) {
            unsafe send(head, file: range.descriptor, from: range.offset, range.count)
        }
    }
}
