package import Glibc

/// The system calls of the disk tier, in one place, so that tests can let them fail. Each result is as of the call, or
/// `-errno` where it failed. EINTR and short results are met by those who call.
package protocol DiskCalls: Sendable {
    func open(_ path: String, flags: CInt, mode: mode_t) -> Int
    func close(_ fd: CInt)
    func pwritev(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int) -> Int
    /// - Parameter waits: false: only what is in the page cache (`RWF_NOWAIT`), otherwise `-EAGAIN`.
    func preadv(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool) -> Int
    func synchronize(_ fd: CInt) -> Int
    func truncate(_ fd: CInt, to length: Int) -> Int
    /// Takes room for the range without changing the file's length.
    func allocate(_ fd: CInt, offset: Int, length: Int) -> Int
    /// Bytes of the file.
    func length(_ fd: CInt) -> Int
    /// Tells the kernel that the range will be wanted soon. A hint: nobody is told where it fails.
    func readAhead(_ fd: CInt, offset: Int, length: Int)
    func unlink(_ path: String) -> Int
    func rename(_ from: String, to: String) -> Int
    /// Asked before each transaction of the book is committed: 0, or `-errno` to let it fail. LMDB makes its calls itself.
    func mayCommit() -> Int
    /// Bytes free for us in the file system of `path`.
    func free(_ path: String) -> Int
}
