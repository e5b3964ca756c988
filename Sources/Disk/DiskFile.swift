/// An open file: closed with its last reference. Meets EINTR and short results; all else is passed on.
package final class DiskFile: Sendable {
    package let fd: CInt
    let calls: any DiskCalls

    init(_ fd: CInt, calls: any DiskCalls) {
        self.fd = fd
        self.calls = calls
    }

    deinit { calls.close(fd) }
}

/// Why a file can not be made, opened or written.
package enum DiskFileError: Error, Equatable, Sendable {
    case failed(errno: CInt)
    /// It is there, and not what it should be.
    case header(RecordError)
}
